"""How a script gets to its place, and its calls from there to here: one function for each way.

    socket   a folder is shared, and sockets in it connect both sides
    files    a folder is shared, and that is all
    stdio    nothing is shared; stdin and stdout of the process lead there

Each starts the script, serves its calls, and leaves nothing behind: no process, folder or thread.
They refuse to know what the calls mean (`guests`).
"""

from __future__ import annotations

import codecs
import secrets
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.errors import ToolCancelledError, ToolFailedError
from keryx.ports.place import NothingSharedError, PrivateFolder, Process
from keryx.ports.tool import ToolContext
from keryx.rpc import GREETED, Listener
from keryx.rpc.file_transport import FileTransport
from keryx.rpc.pipe_transport import Pipes
from keryx.sandbox.scripts.bundle import GRANTED, SCRIPT, Bundle
from keryx.sandbox.scripts.folder import Folder
from keryx.sandbox.scripts.script_calls import ScriptCalls

SOCKET: Final = "s"
CALLS: Final = "calls"
BACKLOG: Final = 512
_PYTHON: Final = (sys.executable, "-u")


async def started(
    context: ToolContext, guests: ScriptCalls, kit: Bundle
) -> AbstractAsyncContextManager[Process]:
    """The script, in the way that its place allows; leaving it ends all of it."""
    try:
        shared = await context.place.private()
    except NothingSharedError:
        return over_stdio(context, guests, kit)
    way = over_socket if shared.sockets else over_files
    return way(context, guests, kit, shared)


class _Spot(NamedTuple):
    """A run's folder, from both sides."""

    here: Path
    inside: str

    def environment(self, guests: ScriptCalls, address: str) -> dict[str, str]:
        return {
            "PYTHONPATH": self.inside,
            "PYTHONDONTWRITEBYTECODE": "1",
            "KERYX_TOOLS_ADDRESS": address,
            "KERYX_TOOLS_SECRET": guests.secret,
            "KERYX_TOOLS_GRANTED": f"{self.inside}/{GRANTED}",
        }


@asynccontextmanager
async def over_socket(
    context: ToolContext, guests: ScriptCalls, kit: Bundle, shared: PrivateFolder
) -> AsyncGenerator[Process]:
    async with _laid_out(context, kit, shared) as spot:
        listener = Listener(context.scope, guests.connection, limits=GREETED)
        try:
            listener.listen(_listening(spot.here / SOCKET))
            address = f"unix:{spot.inside}/{SOCKET}"
            async with await _spawned(context, guests, kit, spot, address) as process:
                yield process
        finally:
            await listener.close()


@asynccontextmanager
async def over_files(
    context: ToolContext, guests: ScriptCalls, kit: Bundle, shared: PrivateFolder
) -> AsyncGenerator[Process]:
    async with _laid_out(context, kit, shared) as spot:
        # Not the call's own scope: what was called hears of its end, also when that is cancelled.
        disk = Scope("a script's folder", clock=context.scope.clock)
        bridge = Bridge(disk)
        try:
            calls = spot.here / CALLS
            server = await FileTransport.open(calls, context.scope, bridge, guests.letter)
            try:
                address = f"files:{spot.inside}/{CALLS}"
                async with await _spawned(context, guests, kit, spot, address) as process:
                    yield process
            finally:
                await server.close()
        finally:
            await bridge.close()
            disk.close()


@asynccontextmanager
async def over_stdio(
    context: ToolContext, guests: ScriptCalls, kit: Bundle
) -> AsyncGenerator[Process]:
    pipes = Pipes(context.scope, guests.connection(), errors=_Printed(context))
    try:
        # Through the pipe: there may be people who see what processes are started with.
        own = {"KERYX_TOOLS_ADDRESS": "stdio:0,1", "KERYX_TOOLS_SECRET": guests.secret}
        packed = await context.to_thread(kit.packed, own)
        env = {**context.environment, "PYTHONDONTWRITEBYTECODE": "1"}
        async with await context.place.spawn(
            [*_PYTHON, "-c", kit.arrival], env=env, output=pipes, stdin=True
        ) as process:
            with suppress(BrokenPipeError):  # it has ended, and its exit says more
                await process.write(packed)
            pipes.carry(process)
            yield process
    finally:
        await pipes.end()


@asynccontextmanager
async def _laid_out(
    context: ToolContext, kit: Bundle, shared: PrivateFolder
) -> AsyncGenerator[_Spot]:
    name = f"run-{secrets.token_hex(8)}"
    folder = Folder(shared.here / name)
    try:
        await context.to_thread(folder.lay_out, kit.files)
        yield _Spot(folder.way, f"{shared.inside}/{name}")
    finally:
        folder.let_go()
        await context.to_thread(folder.remove)


async def _spawned(
    context: ToolContext, guests: ScriptCalls, kit: Bundle, spot: _Spot, address: str
) -> Process:
    env = {**context.environment, **spot.environment(guests, address)}
    argv = [*_PYTHON, f"{spot.inside}/{SCRIPT}", *kit.arguments]
    return await context.place.spawn(argv, env=env)


def _listening(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(path))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ToolFailedError(f"the script's socket cannot be made: {error}") from error
    return listening


class _Printed:
    """What a script prints where its stdout is taken for calls: it comes over stderr, all of it."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, stream: str, data: bytes) -> None:
        del stream
        text = self._decoder.decode(data)
        with suppress(ToolCancelledError):  # the call is over, and nobody listens
            self._context.emit(text)
