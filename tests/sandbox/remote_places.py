"""Places on this machine that are reached as if they were remote: by files or by stdio only.

KERYX_GUEST_PYTHON names the Python of these places; any since 3.8 will do.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.app import SessionHandle
from keryx.messages import NO_NEEDS, Json, Needs
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.place import NothingSharedError, PrivateFolder, Process
from keryx.sandbox import Bounds, LocalPlace
from keryx.sandbox.scripts import ExecuteCode
from keryx.sandbox.scripts.tool import MOST_CALLS
from keryx.tools.toolsets import built_in
from keryx.warden import Warden
from tests.guest.script_processes import PYTHON

PATIENCE = 50.0  # long enough for any machine; only reached by a test that fails


class StandInPlace:
    """The local place, which records what was started there."""

    instances: ClassVar[list[StandInPlace]] = []

    def __init__(
        self,
        warden: Warden,
        bridge: Bridge,
        bounds: Bounds,
        *,
        workspace: Path,
        tmp: Callable[[], Path],
        uploads: Callable[[], Path],
        read_only: bool,
    ) -> None:
        readable = (*bounds.readable, Path(PYTHON).parent.parent)
        bounds = msgspec.structs.replace(bounds, readable=readable)
        self._local = LocalPlace(
            warden,
            bridge,
            bounds,
            workspace=workspace,
            tmp=tmp,
            uploads=uploads,
            read_only=read_only,
        )
        self._bridge = bridge
        self._tmp = tmp
        self.started: list[tuple[Sequence[str], Mapping[str, str]]] = []
        self.instances.append(self)

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
        if argv[0] == sys.executable:
            argv = [PYTHON, *argv[1:]]  # a place has a Python of its own
        self.started.append((argv, env))
        return await self._local.spawn(
            argv, env=env, cwd=cwd, scope=scope, output=output, stdin=stdin, granted=granted
        )

    async def private(self) -> PrivateFolder:
        return await self._local.private()

    async def temporary(self) -> Path:
        """Return the temporary folder of its processes."""
        return await self._bridge.to_thread(self._tmp)


class OnlyFiles(StandInPlace):
    """A place that shares a folder in which sockets do not work."""

    async def private(self) -> PrivateFolder:
        return msgspec.structs.replace(await self._local.private(), sockets=False)


class OnlyStdio(StandInPlace):
    """A place that shares nothing: only stdin and stdout reach its processes."""

    async def private(self) -> PrivateFolder:
        raise NothingSharedError("only stdin and stdout lead there")


PLACES: dict[str, type[StandInPlace]] = {
    "socket": StandInPlace,
    "files": OnlyFiles,
    "stdio": OnlyStdio,
}


@tool(effects=NO_EFFECTS)
async def echo(text: str, times: int = 1) -> dict[str, str]:
    """Say it again."""
    await asyncio.sleep(0)
    return {"said": text * times}


class ScriptRunner:
    """Runs scripts in sessions that live in such places."""

    def __init__(self, base: Path, way: str) -> None:
        self.way = way
        self.workspace = base / "workspace"
        self.workspace.mkdir()
        self._home = base / "home"
        self._tools = [tool_ for tools in built_in(None).values() for tool_ in tools]
        StandInPlace.instances.clear()

    @property
    def place(self) -> StandInPlace:
        (place,) = StandInPlace.instances
        return place

    async def left_over_files(self) -> list[str]:
        """Return what runs have left in the temporary folder of their place."""
        names = [path.name for path in (await self.place.temporary()).iterdir()]
        return [name for name in names if name.startswith(("run-", "keryx"))]

    @asynccontextmanager
    async def session(
        self, code: str, *, most_calls: int = MOST_CALLS, scripts: int = 1, **arguments: Any
    ) -> AsyncGenerator[SessionHandle]:
        """Open a session whose model runs this script, so often, and then replies "Done."."""
        call = ScriptedCall("execute_code", {"code": code, **arguments})
        replies = [ScriptedReply(calls=[call])] * scripts
        model = ScriptedModel([*replies, ScriptedReply(text="Done.")])
        tools = [*self._tools, ExecuteCode(most_calls=most_calls), echo]
        async with (
            asyncio.timeout(PATIENCE),
            Keryx(model=model, tools=tools, home=self._home, workspace=self.workspace) as app,
        ):
            yield await app.open()

    async def call(self, code: str, **options: Any) -> ev.CallFinished:
        """Run the script and return how it ended; check that it left nothing."""
        async with self.session(code, **options) as handle:
            call = (await (await handle.send("Go")).result()).calls[0]
            assert await self.left_over_files() == [], await self.left_over_files()
        return call

    async def run(self, code: str, **options: Any) -> dict[str, Any]:
        """Run the script and return its result."""
        return value(await self.call(code, **options))

    async def printed(self, code: str, **options: Any) -> str:
        """Run the script, check that it succeeded, and return what it printed."""
        result = await self.run(code, **options)
        assert result["exit_code"] == 0, result
        return result["output"]


def value(finished: ev.CallFinished) -> dict[str, Any]:
    assert finished.outcome == "completed", finished
    (part,) = finished.result
    assert isinstance(part, Json), part
    return msgspec.json.decode(bytes(part.value))


@pytest.fixture(params=PLACES)
def runner(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ScriptRunner:
    monkeypatch.setattr("keryx.app.services.places.LocalPlace", PLACES[request.param])
    return ScriptRunner(tmp_path, request.param)
