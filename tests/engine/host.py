"""An executor with everything around it, as a host has it."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from keryx.aio.clock import Clock
from keryx.aio.scope import Scope
from keryx.app import Runtime
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallHooks, CallView, NoHooks
from keryx.engine.steps.batch import Batch
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.tool import Tool

# Another run of the tests at the same time has other children.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "KERYX_TEST_MARKER": f"house {os.getpid()}"}


class Recorder(NoHooks):
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

    def settled(self, call: CallView, duration: float) -> None:
        self.note("settled", call)


class Host:
    """A runtime, and short ways to use it."""

    def __init__(self, workspace: Path, clock: Clock) -> None:
        self.runtime = Runtime(clock=clock)
        self.scope = self.runtime.scope
        self.bridge = self.runtime.bridge
        self.executor = self.runtime.executor
        self.workspace = workspace
        self._ids = itertools.count(1)

    def environment(
        self, *tools: Tool, session_id: str = "s1", hooks: CallHooks | None = None
    ) -> CallEnvironment:
        return self.runtime.call_environment(
            session_id,
            tools,
            workspace=self.workspace,
            hooks=hooks or Recorder(),
            env=ENVIRONMENT,
        )

    def call(self, tool: Tool | str, **arguments: Any) -> ToolCall:
        name = tool if isinstance(tool, str) else tool.name
        return ToolCall(f"c{next(self._ids)}", name, msgspec.json.encode(arguments).decode())

    def start(
        self, environment: CallEnvironment, *calls: ToolCall, scope: Scope | None = None
    ) -> Batch:
        return self.executor.start(environment, calls, scope or self.scope.child("turn"))

    async def run(
        self, environment: CallEnvironment, *calls: ToolCall, scope: Scope | None = None
    ) -> Sequence[CallOutcome]:
        return await self.start(environment, *calls, scope=scope).outcomes()

    async def close(self) -> None:
        await self.runtime.close()
        assert self.executor.running == 0


def recorder(environment: CallEnvironment) -> Recorder:
    assert isinstance(environment.hooks, Recorder)
    return environment.hooks
