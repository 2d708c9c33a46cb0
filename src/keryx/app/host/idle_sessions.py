"""Which of the open sessions rest, and which of them are let go: what they hold is in the store.

Opening a session again reads its log, so those that were used last stay open for a while: so many
sessions, so many facts, so long.
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
"""Of all that rest together: a fact takes about a kilobyte."""
LEAST_SESSIONS: Final = 4
"""Those that were used last stay open, however long they are."""
AT_ONCE: Final = 16
"""Sessions that are let go at a time; the rest when the next one rests."""
LONGEST: Final = 600.0
"""Seconds. Who comes back later waits some milliseconds for the log to be read."""


class _Entry(msgspec.Struct, frozen=True, eq=False):
    """A session that rests: since when, and how many facts it had then."""

    session: Session
    since: float
    facts: int

    def is_old(self, now: float) -> bool:
        return self.since + LONGEST <= now


class IdleSessions:
    """The open sessions that rest, the longest first. Belongs to one loop."""

    def __init__(self, deadlines: Deadlines, let_go: Callable[[str], None]) -> None:
        """`let_go` closes a session that this has decided on."""
        self._deadlines = deadlines
        self._let_go = let_go
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._facts = 0
        """Of all of them together."""
        self._due: Deadline | None = None

    def add(self, session_id: str, session: Session) -> None:
        """It rests from now on, or was used while it did."""
        self.remove(session_id)
        now = self._deadlines.clock.monotonic()
        self._put(session_id, _Entry(session, now, session.fold.last_seq))
        self._trim(now)

    def remove(self, session_id: str) -> None:
        """It is used, or closed."""
        entry = self._entries.pop(session_id, None)
        if entry is not None:
            self._facts -= entry.facts

    def close(self) -> None:
        self._entries.clear()
        if self._due is not None:
            self._deadlines.drop(self._due)
            self._due = None

    def _put(self, session_id: str, entry: _Entry) -> None:
        self._entries[session_id] = entry
        self._facts += entry.facts

    @property
    def _are_many(self) -> bool:
        return len(self._entries) > MOST_SESSIONS or self._facts > MOST_FACTS

    def _trim(self, now: float) -> None:
        """Let go of those that rest longest, until the rest is within its bounds."""
        # Never the last ones: whoever has just asked for one is about to use it.
        most = min(AT_ONCE, max(0, len(self._entries) - LEAST_SESSIONS))
        for session_id, entry in list(islice(self._entries.items(), most)):
            if not (self._are_many or entry.is_old(now)):
                break
            self.remove(session_id)
            if entry.session.is_idle:
                self._let_go(session_id)
            else:
                # Something of it still runs, such as a background process: looked at again later.
                self._put(session_id, _Entry(entry.session, now, entry.facts))
        self._look_later()

    def _look_later(self) -> None:
        if self._due is None and self._entries:
            oldest = next(iter(self._entries.values()))
            self._due = self._deadlines.add(oldest.since + LONGEST, self._look)

    def _look(self) -> None:
        self._due = None
        self._trim(self._deadlines.clock.monotonic())
