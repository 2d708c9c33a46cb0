"""Decides which idle sessions are closed. A closed session loses nothing: its log is in the store.

Opening a session again reads its log, so those that were used last stay open, within limits for
the number of sessions, the number of their facts, and time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final

import msgspec

from keryx.aio.clock import Deadline, Deadlines
from keryx.engine.session import Session

MOST_SESSIONS: Final = 64
MOST_FACTS: Final = 5_000
"""The facts of all idle sessions together: a fact takes about a kilobyte."""
LEAST_SESSIONS: Final = 4
"""So many sessions that were used last stay open, however long their logs are."""
AT_ONCE: Final = 16
"""How many sessions are closed in one step; more follow when the next session becomes idle."""
LONGEST: Final = 600.0
"""Seconds that a session may be idle. Opening it again later takes some milliseconds."""


class _Entry(msgspec.Struct, frozen=True, eq=False):
    """An idle session: since when, and how many facts it had then."""

    session: Session
    since: float
    facts: int

    def is_old(self, now: float) -> bool:
        return self.since + LONGEST <= now


class IdleSessions:
    """The open sessions that are idle, the longest idle first. Belongs to one loop."""

    def __init__(self, deadlines: Deadlines, close_session: Callable[[str], None]) -> None:
        """`close_session` closes the session of that id."""
        self._deadlines = deadlines
        self._close_session = close_session
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._facts = 0
        """The number of facts of all entries."""
        self._deadline: Deadline | None = None

    def add(self, session_id: str, session: Session) -> None:
        """Note that a session became idle, or was used while it was idle."""
        self.remove(session_id)
        now = self._deadlines.clock.monotonic()
        self._put(session_id, _Entry(session, now, session.fold.last_seq))
        self._trim(now)

    def remove(self, session_id: str) -> None:
        """Note that a session is used, or closed."""
        entry = self._entries.pop(session_id, None)
        if entry is not None:
            self._facts -= entry.facts

    def close(self) -> None:
        self._entries.clear()
        if self._deadline is not None:
            self._deadlines.drop(self._deadline)
            self._deadline = None

    def _put(self, session_id: str, entry: _Entry) -> None:
        self._entries[session_id] = entry
        self._facts += entry.facts

    @property
    def _is_over_limit(self) -> bool:
        return len(self._entries) > MOST_SESSIONS or self._facts > MOST_FACTS

    def _trim(self, now: float) -> None:
        """Close the sessions that are idle longest, until the others are within the limits."""
        # Never the last ones: a caller that has just opened a session is about to use it.
        most = min(AT_ONCE, max(0, len(self._entries) - LEAST_SESSIONS))
        for session_id, entry in list(islice(self._entries.items(), most)):
            if not (self._is_over_limit or entry.is_old(now)):
                break
            self.remove(session_id)
            if entry.session.is_idle:
                self._close_session(session_id)
            else:
                # Something still runs, such as a background process: checked again later.
                self._put(session_id, _Entry(entry.session, now, entry.facts))
        self._schedule_check()

    def _schedule_check(self) -> None:
        if self._deadline is None and self._entries:
            oldest = next(iter(self._entries.values()))
            self._deadline = self._deadlines.add(oldest.since + LONGEST, self._check)

    def _check(self) -> None:
        self._deadline = None
        self._trim(self._deadlines.clock.monotonic())
