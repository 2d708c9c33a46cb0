"""Which of the turns that go on after a restart have shown that they can.

A turn that was resumed and logged nothing since may be what killed its host. Its second attempt
begins when little is at stake: once every other resumed turn has logged a fact or rests, one such
turn after the other. Then a turn that kills its host again and again is parked alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from keryx.aio.scope import Scope
from keryx.events import CallFinished, LoggedEvent, StepReplied, TurnFinished

# A neighbour may wait for a person, or for a slow model: it holds nobody for longer than this.
PATIENCE: Final = 10.0


class ResumeGuard:
    """The resumed turns of one host, by session. Belongs to the host's loop."""

    def __init__(self) -> None:
        self.unproven: set[str] = set()
        """Sessions whose resumed turn has shown nothing yet."""
        self.waiting: dict[str, asyncio.Future[None]] = {}
        """Turns that wait until no other one is unproven, by session."""

    def expect(self, session_ids: Iterable[str]) -> None:
        """These sessions are about to go on."""
        self.unproven.update(session_ids)

    def saw(self, fact: LoggedEvent) -> None:
        """A fact that is durable. Those that recovery itself writes prove nothing."""
        match fact:
            case StepReplied() | TurnFinished():
                self.rests(fact.session_id)
            case CallFinished() if fact.reason != "crash":
                self.rests(fact.session_id)
            case _:
                return

    def rests(self, session_id: str) -> None:
        """Nothing of this session is at stake any more."""
        self.unproven.discard(session_id)
        self._let_next_go()

    async def wait_alone(self, session_id: str, scope: Scope) -> None:
        """Return once no other turn is at stake, or after the patience, or if cancelled."""
        alone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def go() -> None:
            if not alone.done():
                alone.set_result(None)

        deadline = scope.deadlines.add(scope.clock.monotonic() + PATIENCE, go)
        cancelled = scope.on_cancel(go)
        self.waiting[session_id] = alone
        self.rests(session_id)
        try:
            await alone
        finally:
            scope.deadlines.drop(deadline)
            cancelled.remove()
            self.waiting.pop(session_id, None)

    def _let_next_go(self) -> None:
        if self.unproven:
            return
        for session_id, alone in self.waiting.items():
            if not alone.done():
                self.unproven.add(session_id)
                alone.set_result(None)
                return
