"""Which of the open sessions rest, and which of them are let go: what they hold is in the store.

Opening a session again reads its log, so those that were used last stay open for a while: so many
sessions, so many facts, so long.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from keryx.aio.clock import Deadline, Deadlines
from keryx.engine.session import Session

MOST_SESSIONS: Final = 64
MOST_FACTS: Final = 5_000
"""Of all that rest together: a fact takes about a kilobyte."""
LEAST_SESSIONS: Final = 4
"""Those that were used last stay open, however long they are."""
LONGEST: Final = 600.0
"""Seconds. Who comes back later waits some milliseconds for the log to be read."""


class Resting:
    """The open sessions that rest, the longest first. Belongs to one loop."""

    def __init__(self, deadlines: Deadlines, let_go: Callable[[str], None]) -> None:
        """`let_go` closes a session that this has decided on."""
        self._deadlines = deadlines
        self._let_go = let_go
        self._since: OrderedDict[str, tuple[Session, float]] = OrderedDict()
        self._due: Deadline | None = None

    def add(self, session_id: str, session: Session) -> None:
        """It rests from now on, or was used while it did."""
        self.remove(session_id)
        self._since[session_id] = (session, self._deadlines.clock.monotonic())
        self._trim()

    def remove(self, session_id: str) -> None:
        """It is used, or closed."""
        self._since.pop(session_id, None)

    def close(self) -> None:
        self._since.clear()
        if self._due is not None:
            self._deadlines.drop(self._due)
            self._due = None

    def _trim(self) -> None:
        """Let go of those that rest longest, until the rest is within its bounds."""
        now = self._deadlines.clock.monotonic()
        facts = sum(session.fold.last_seq for session, _ in self._since.values())
        # Never the last ones: whoever has just asked for one is about to use it.
        for session_id, (session, since) in list(self._since.items())[:-LEAST_SESSIONS]:
            is_old = since + LONGEST <= now
            if not (is_old or len(self._since) > MOST_SESSIONS or facts > MOST_FACTS):
                break
            if session.is_idle:
                facts -= session.fold.last_seq
                del self._since[session_id]
                self._let_go(session_id)
            elif is_old:
                # Something of it still runs, such as a background process: looked at again later.
                self._since[session_id] = (session, now)
                self._since.move_to_end(session_id)
        self._look_later()

    def _look_later(self) -> None:
        if self._due is None and self._since:
            _, oldest = next(iter(self._since.values()))
            self._due = self._deadlines.add(oldest + LONGEST, self._look)

    def _look(self) -> None:
        self._due = None
        self._trim()
