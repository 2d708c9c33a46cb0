"""The running calls of one step: their outcomes, and how one of them is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from keryx.aio.scope import Reason
from keryx.engine.calls.call import Call
from keryx.messages import CallOutcome


class Batch:
    """The running calls of one step."""

    def __init__(self) -> None:
        self._ended: dict[str, asyncio.Future[CallOutcome]] = {}
        self._calls: dict[str, Call] = {}

    def add(self, call_id: str, ended: asyncio.Future[CallOutcome], call: Call | None) -> None:
        self._ended[call_id] = ended
        if call is not None:
            self._calls[call_id] = call

    async def outcomes(self) -> list[CallOutcome]:
        """Wait for all outcomes and return them in call order."""
        return [await asyncio.shield(ended) for ended in self._ended.values()]

    async def as_ended(self) -> AsyncIterator[CallOutcome]:
        """Yield each outcome as its call ends."""
        outcomes: asyncio.Queue[CallOutcome] = asyncio.Queue()
        for ended in self._ended.values():
            ended.add_done_callback(lambda done: outcomes.put_nowait(done.result()))
        for _ in self._ended:
            yield await outcomes.get()

    def holds(self, call_id: str) -> bool:
        """Return whether the call is in this batch, also as a nested one, and has not ended."""
        call = self._find(call_id)
        return call is not None and not call.ended.done()

    def is_step_call(self, call_id: str) -> bool:
        """Return whether it is one of the step's own calls, not a nested one."""
        return call_id in self._calls

    def cancel(self, call_id: str, reason: Reason = "interrupt", *, by: str = "") -> bool:
        """Cancel one call while the others go on. False if it ended, or is not in this batch."""
        call = self._find(call_id)
        if call is None or call.ended.done():
            return False
        return call.scope.cancel(reason, by=by)

    def _find(self, call_id: str) -> Call | None:
        """Find a call by its id, which begins with the id of its container."""
        level: Iterable[Call] = self._calls.values()
        while True:
            ancestor = next((call for call in level if _is_within(call_id, call.call_id)), None)
            if ancestor is None or ancestor.call_id == call_id:
                return ancestor
            level = ancestor.nested


def _is_within(call_id: str, container: str) -> bool:
    return call_id == container or call_id.startswith(f"{container}.")
