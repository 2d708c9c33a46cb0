"""An executor with everything around it, as a host has it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from keryx.aio.bridge import Bridge
from keryx.aio.clock import Clock
from keryx.aio.scope import Scope
from keryx.aio.warden import Warden
from keryx.engine.executor import Batch, Executor
from keryx.engine.lane import Lane
from keryx.engine.witness import CallView, Silent, Witness
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.tool import HttpClient, Tool

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "KERYX_TEST_MARKER": "house"}


class Recorder(Silent):
    """A witness that remembers, and that a test can wait on."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.texts: dict[str, str] = {}
        self._changed: list[asyncio.Future[None]] = []

    def note(self, what: str, call: CallView) -> None:
        self.log.append((what, call.call_id))
        waiting, self._changed = self._changed, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait by event until the condition holds."""
        while not condition():
            future = asyncio.get_running_loop().create_future()
            self._changed.append(future)
            await future

    async def until_noted(self, what: str, call_id: str) -> None:
        await self.until(lambda: (what, call_id) in self.log)

    async def starting(self, call: CallView) -> None:
        self.note("starting", call)

    def output(self, call: CallView, stream: str, text: str) -> None:
        self.texts[call.call_id] = self.texts.get(call.call_id, "") + text
        self.note("output", call)

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None:
        self.note(f"progress {done}/{total} {note}", call)

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        self.note(outcome.outcome, call)

    def settled(self, call: CallView) -> None:
        self.note("settled", call)


class Host:
    """What a host has of the engine today."""

    def __init__(self, workspace: Path, clock: Clock, **slots: int) -> None:
        self.scope = Scope("host", clock=clock)
        self.bridge = Bridge(self.scope)
        self.warden = Warden(self.scope)
        self.executor = Executor(self.scope, self.bridge, **slots)
        self.workspace = workspace
        self._ids = itertools.count(1)

    def lane(
        self,
        *tools: Tool,
        session_id: str = "s1",
        witness: Witness | None = None,
        http: Callable[[], Awaitable[HttpClient]] | None = None,
    ) -> Lane:
        return Lane(
            session_id=session_id,
            tools={each.name: each for each in tools},
            workspace=self.workspace,
            loop=asyncio.get_running_loop(),
            bridge=self.bridge,
            place=self.warden,
            environment=ENVIRONMENT,
            witness=witness or Recorder(),
            http=http,
        )

    def call(self, tool: Tool | str, **arguments: Any) -> ToolCall:
        name = tool if isinstance(tool, str) else tool.name
        return ToolCall(f"c{next(self._ids)}", name, msgspec.json.encode(arguments).decode())

    def start(self, lane: Lane, *calls: ToolCall, scope: Scope | None = None) -> Batch:
        return self.executor.start(lane, calls, scope or self.scope.child("turn"))

    async def run(
        self, lane: Lane, *calls: ToolCall, scope: Scope | None = None
    ) -> Sequence[CallOutcome]:
        return await self.start(lane, *calls, scope=scope).outcomes()

    async def close(self) -> None:
        await self.executor.close()
        await self.warden.close()
        await self.bridge.close()
        assert self.executor.running == 0
        assert self.executor.left_over == ()
        self.scope.close()


def recorder(lane: Lane) -> Recorder:
    assert isinstance(lane.witness, Recorder)
    return lane.witness
