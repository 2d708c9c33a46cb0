"""Sessions with workers, in a host of their own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from keryx.aio.capture import OutputSink
from keryx.aio.clock import Clock, RealClock
from keryx.aio.scope import Scope
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.messages import NO_NEEDS, CallOutcome, Needs
from keryx.ports.place import Place, PrivateFolder, Process
from keryx.ports.tool import Tool
from keryx.sandbox.workers import Workers
from tests.engine.host import ENVIRONMENT, Host


class Ledger:
    """A place that remembers what was started in another one."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.started: list[Process] = []
        self.granted: list[Needs] = []

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        scope: Scope | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
        granted: Needs = NO_NEEDS,
    ) -> Process:
        self.granted.append(granted)
        process = await self._place.spawn(
            argv, env=env, cwd=cwd, scope=scope, output=output, stdin=stdin, granted=granted
        )
        self.started.append(process)
        return process

    async def private(self) -> PrivateFolder:
        return await self._place.private()


class Shop(Host):
    """A host whose sessions have workers."""

    def __init__(self, workspace: Path, clock: Clock | None = None) -> None:
        super().__init__(workspace, clock or RealClock())
        self.log = Ledger(super().environment().place or _missing())
        self._workers: dict[str, Workers] = {}
        self._marker = uuid.uuid4().hex

    def session(
        self, *tools: Tool, session_id: str = "s1", place: Place | None = None
    ) -> CallEnvironment:
        """Another turn of the session, with these tools."""
        environment = self.environment(*tools, session_id=session_id)
        environment.place = place or self.log
        environment.workers = self.workers(session_id)
        environment.env = {**ENVIRONMENT, "KERYX_TEST_MARKER": self._marker}
        return environment

    def workers(self, session_id: str = "s1") -> Workers:
        if session_id not in self._workers:
            self._workers[session_id] = Workers(self.scope.child(session_id))
        return self._workers[session_id]

    async def one(
        self, environment: CallEnvironment, tool: Tool | str, **arguments: object
    ) -> CallOutcome:
        (outcome,) = await self.run(environment, self.call(tool, **arguments))
        return outcome

    def survivors(self) -> list[str]:
        """Processes that still run of all that the sessions started."""
        marker = f"KERYX_TEST_MARKER={self._marker}".encode()
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if marker in (entry / "environ").read_bytes():
                        found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
                except OSError:
                    continue  # it has just ended
        return found

    async def close(self) -> None:
        for workers in self._workers.values():
            await workers.close()
        await super().close()


def _missing() -> Place:
    raise AssertionError("a host has a place")
