"""Decides when turns are resumed after a restart, so that one bad turn does not stop the others.

A turn that was resumed and logged nothing since may have killed its host. Its second attempt waits
until every other resumed turn has logged a fact or rests; such turns go one after the other. So a
turn that kills its host again and again is parked alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from keryx.aio.scope import Scope
from keryx.events import CallFinished, LoggedEvent, StepReplied, TurnFinished

# Seconds. Another turn may wait for a person or a slow model; it delays nobody longer than this.
PATIENCE: Final = 10.0


class ResumeGuard:
    """The resumed turns of one host, by session. Belongs to the host's loop."""

    def __init__(self) -> None:
        self.unproven: set[str] = set()
        """Sessions whose resumed turn has logged nothing yet."""
        self.waiting: dict[str, asyncio.Future[None]] = {}
        """Turns that wait until no other turn is unproven, by session."""

    def expect(self, session_ids: Iterable[str]) -> None:
        """Mark the sessions that are about to be resumed."""
        self.unproven.update(session_ids)

    def note_fact(self, fact: LoggedEvent) -> None:
        """Note a durable fact. Facts that recovery itself writes prove nothing."""
        match fact:
            case StepReplied() | TurnFinished():
                self.mark_resting(fact.session_id)
            case CallFinished() if fact.reason != "crash":
                self.mark_resting(fact.session_id)
            case _:
                return

    def mark_resting(self, session_id: str) -> None:
        """Mark a session as proven or at rest: its turn delays no other."""
        self.unproven.discard(session_id)
        self._release_next()

    async def wait_alone(self, session_id: str, scope: Scope) -> None:
        """Return once no other turn is unproven, or after the timeout, or if cancelled."""
        alone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def proceed() -> None:
            if not alone.done():
                alone.set_result(None)

        deadline = scope.deadlines.add(scope.clock.monotonic() + PATIENCE, proceed)
        cancelled = scope.on_cancel(proceed)
        self.waiting[session_id] = alone
        self.mark_resting(session_id)
        try:
            await alone
        finally:
            scope.deadlines.drop(deadline)
            cancelled.remove()
            self.waiting.pop(session_id, None)

    def _release_next(self) -> None:
        if self.unproven:
            return
        for session_id, alone in self.waiting.items():
            if not alone.done():
                self.unproven.add(session_id)
                alone.set_result(None)
                return
