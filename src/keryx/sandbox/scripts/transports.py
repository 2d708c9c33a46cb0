"""Starts a script in its place and carries its calls: one function per transport.

    socket   host and place share a folder, and sockets in it connect both
    files    host and place share a folder, but sockets in it do not work
    stdio    nothing is shared; calls go through the stdin and stdout of the process

Each starts the script, serves its calls, and leaves no process, folder or thread behind.
They know nothing of what the calls mean (`script_calls`).
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
from keryx.ports.tool_context import ToolContext
from keryx.rpc import GREETING_REQUIRED, Listener
from keryx.rpc.file_transport import FileTransport
from keryx.rpc.pipe_transport import PipeTransport
from keryx.sandbox.scripts.bundle import GRANTED, SCRIPT, Bundle
from keryx.sandbox.scripts.run_folder import RunFolder
from keryx.sandbox.scripts.script_calls import ScriptCalls

SOCKET: Final = "s"
CALLS: Final = "calls"
BACKLOG: Final = 512
_PYTHON: Final = (sys.executable, "-u")


async def start_script(
    context: ToolContext, script_calls: ScriptCalls, bundle: Bundle
) -> AbstractAsyncContextManager[Process]:
    """Start the script with the transport that its place allows; leaving the context ends it."""
    try:
        shared = await context.place.private()
    except NothingSharedError:
        return over_stdio(context, script_calls, bundle)
    transport = over_socket if shared.sockets else over_files
    return transport(context, script_calls, bundle, shared)


class _RunPaths(NamedTuple):
    """The paths of a run's folder, on the host and inside the place."""

    here: Path
    inside: str

    def environment(self, script_calls: ScriptCalls, address: str) -> dict[str, str]:
        return {
            "PYTHONPATH": self.inside,
            "PYTHONDONTWRITEBYTECODE": "1",
            "KERYX_TOOLS_ADDRESS": address,
            "KERYX_TOOLS_SECRET": script_calls.secret,
            "KERYX_TOOLS_GRANTED": f"{self.inside}/{GRANTED}",
        }


@asynccontextmanager
async def over_socket(
    context: ToolContext, script_calls: ScriptCalls, bundle: Bundle, shared: PrivateFolder
) -> AsyncGenerator[Process]:
    async with _laid_out(context, bundle, shared) as run_paths:
        listener = Listener(context.scope, script_calls.connection, limits=GREETING_REQUIRED)
        try:
            listener.listen(_listening(run_paths.here / SOCKET))
            address = f"unix:{run_paths.inside}/{SOCKET}"
            async with await _spawned(context, script_calls, bundle, run_paths, address) as process:
                yield process
        finally:
            await listener.close()


@asynccontextmanager
async def over_files(
    context: ToolContext, script_calls: ScriptCalls, bundle: Bundle, shared: PrivateFolder
) -> AsyncGenerator[Process]:
    async with _laid_out(context, bundle, shared) as run_paths:
        # Not the call's own scope: answers must be written also when that is cancelled.
        disk = Scope("a script's folder", clock=context.scope.clock)
        bridge = Bridge(disk)
        try:
            calls = run_paths.here / CALLS
            server = await FileTransport.open(calls, context.scope, bridge, script_calls.file_call)
            try:
                address = f"files:{run_paths.inside}/{CALLS}"
                async with await _spawned(
                    context, script_calls, bundle, run_paths, address
                ) as process:
                    yield process
            finally:
                await server.close()
        finally:
            await bridge.close()
            disk.close()


@asynccontextmanager
async def over_stdio(
    context: ToolContext, script_calls: ScriptCalls, bundle: Bundle
) -> AsyncGenerator[Process]:
    pipes = PipeTransport(context.scope, script_calls.connection(), errors=_PrintSink(context))
    try:
        # Through the pipe: other users may see the environment that a process starts with.
        tools_env = {"KERYX_TOOLS_ADDRESS": "stdio:0,1", "KERYX_TOOLS_SECRET": script_calls.secret}
        packed = await context.to_thread(bundle.packed, tools_env)
        env = {**context.environment, "PYTHONDONTWRITEBYTECODE": "1"}
        async with await context.place.spawn(
            [*_PYTHON, "-c", bundle.launcher], env=env, output=pipes, stdin=True
        ) as process:
            with suppress(BrokenPipeError):  # it has ended, and its exit says why
                await process.write(packed)
            pipes.attach(process)
            yield process
    finally:
        await pipes.end()


@asynccontextmanager
async def _laid_out(
    context: ToolContext, bundle: Bundle, shared: PrivateFolder
) -> AsyncGenerator[_RunPaths]:
    name = f"run-{secrets.token_hex(8)}"
    folder = RunFolder(shared.here / name)
    try:
        await context.to_thread(folder.lay_out, bundle.files)
        yield _RunPaths(folder.path, f"{shared.inside}/{name}")
    finally:
        folder.release()
        await context.to_thread(folder.remove)


async def _spawned(
    context: ToolContext,
    script_calls: ScriptCalls,
    bundle: Bundle,
    run_paths: _RunPaths,
    address: str,
) -> Process:
    env = {**context.environment, **run_paths.environment(script_calls, address)}
    argv = [*_PYTHON, f"{run_paths.inside}/{SCRIPT}", *bundle.arguments]
    return await context.place.spawn(argv, env=env)


def _listening(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(path))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ToolFailedError(f"the script's socket cannot be created: {error}") from error
    return listening


class _PrintSink:
    """Takes what a script prints if its stdout carries calls: all of it comes over stderr."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, stream: str, data: bytes) -> None:
        del stream
        text = self._decoder.decode(data)
        with suppress(ToolCancelledError):  # the call has ended, and nobody reads the output
            self._context.emit(text)
