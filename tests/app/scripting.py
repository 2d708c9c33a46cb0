"""Scripts in whole sessions: a user with secrets, a host of theirs, tools, and what a run gave."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.messages import Json
from keryx.ports.model import Model
from keryx.ports.tool import Tool
from keryx.sandbox.scripts import ExecuteCode
from keryx.tools.toolsets import built_in

PATIENCE: Final = 50.0  # long enough for any machine; only reached by a test that fails
SECRET: Final = "the-contents-of-a-secret-file"


class Den:
    """A user's folder with secrets and the home of Keryx in it, and a workspace beside it.

    Not below /tmp: inside, that is a private folder, and nothing there would prove anything.
    """

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="den-"))
        self.workspace = self.base / "workspace"
        self.outside = self.base / "outside"
        self.home = self.outside / "keryx"
        for folder in (self.workspace, self.home, self.outside / ".ssh"):
            folder.mkdir(parents=True)
        for name in ("secret", "named", ".ssh/id_rsa"):
            (self.outside / name).write_text(SECRET)
        built = [tested_tool for tools in built_in(self.outside).values() for tested_tool in tools]
        self.tools: list[Tool] = [*built, ExecuteCode()]
        """Those that every host has."""

    def snapshot(self) -> dict[str, tuple[int, str]]:
        """All that is outside, but the home of Keryx, which the host itself changes."""
        return {
            str(path): (path.lstat().st_mode, path.read_text() if path.is_file() else "")
            for path in self.outside.rglob("*")
            if not path.is_relative_to(self.home)
        }

    def close(self) -> None:
        shutil.rmtree(self.base)


@asynccontextmanager
async def hosting(
    den: Den,
    *more: Tool,
    confinement: str = "required",
    patience: float = PATIENCE,
    model: Model | None = None,
) -> AsyncGenerator[Keryx]:
    """A host of that user's. Their HOME is what the environment says."""
    (den.home / "config.toml").write_text(f'confinement = "{confinement}"\n')
    tools = [*den.tools, *more]
    async with (
        asyncio.timeout(patience),
        Keryx(
            tools=tools, model=model, home=den.home, workspace=den.workspace, resume=False
        ) as app,
    ):
        yield app


async def call(
    handle: SessionHandle,
    tool_name: str,
    /,
    *,
    printed: Callable[[str], None] | None = None,
    **arguments: Any,
) -> ev.CallFinished:
    """Run a tool by hand, and hear what it prints meanwhile."""
    finished: ev.CallFinished | None = None
    async for event in handle.run(tool_name, json.dumps(arguments)):
        if isinstance(event, ev.CallOutput) and event.parent is None and printed is not None:
            printed(event.text)
        if isinstance(event, ev.CallFinished):
            finished = event
    assert finished is not None
    return finished


def value(finished: ev.CallFinished) -> dict[str, Any]:
    assert finished.outcome == "completed", finished
    (part,) = finished.result
    assert isinstance(part, Json), part
    return msgspec.json.decode(bytes(part.value))


async def execute(handle: SessionHandle, code: str, *words: str, **options: Any) -> dict[str, Any]:
    """What a script gave that ended by itself, and well."""
    result = value(await call(handle, "execute_code", code=code, arguments=words, **options))
    assert result["exit_code"] == 0, result
    return result


class Waiting:
    """A script of another session that runs until it is let go."""

    def __init__(self, handle: SessionHandle, gate: Path) -> None:
        self.handle = handle
        self._gate = gate
        os.mkfifo(gate)
        # Both ends, so that neither side ever waits for the other to open it.
        self._door = os.open(gate, os.O_RDWR)
        self._said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run())

    async def _run(self) -> dict[str, Any]:
        code = f"""
import os
print(os.environ["KERYX_TOOLS_SECRET"], flush=True)
open({str(self._gate)!r}).readline()
"""
        return value(await call(self.handle, "execute_code", printed=self._hear, code=code))

    def _hear(self, text: str) -> None:
        if not self._said.done():
            self._said.set_result(text.strip())

    async def secret(self) -> str:
        """The run's secret, once it runs."""
        return await self._said

    @property
    def private(self) -> Path:
        """The folder of its session, as the host sees it."""
        (folder,) = Path(tempfile.gettempdir()).glob(f"keryx*/{self.handle.session_id}")
        return folder

    @property
    def socket(self) -> Path:
        (socket,) = self.private.glob("run-*/s")
        return socket

    async def pid(self) -> int:
        """Its process, as the host sees it: the one with the run's secret in its environment."""
        marker = (await self.secret()).encode()
        return next(pid for pid in _processes() if marker in _environment(pid))

    async def let_go(self) -> dict[str, Any]:
        os.write(self._door, b"go\n")
        try:
            return await self._running
        finally:
            os.close(self._door)
            self._gate.unlink()


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""  # it has just ended


# -- tools of a program's own, which workers import by the name of this module


@tool(isolation="process", effects=NO_EFFECTS)
def run_python(program: str, facts: str) -> str:
    """Run a program in this tool's own process, and return what it prints."""
    before, sys.argv = sys.argv, ["program", facts]
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, {"__name__": "program"})
    finally:
        sys.argv = before
    return printed.getvalue()


@tool(isolation="process", effects=NO_EFFECTS)
def echo_in_process(text: str) -> str:
    """Say it again, from a process of its own."""
    return text


@tool(isolation="thread", effects=NO_EFFECTS)
def echo_in_thread(text: str) -> str:
    """Say it again, from a thread."""
    return text


@tool(effects=NO_EFFECTS)
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(effects=NO_EFFECTS)
async def echo_value(value: Any) -> dict[str, Any]:
    """Give it back as a value."""
    return {"value": value}
