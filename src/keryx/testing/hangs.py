"""Tools that hang in every possible way, for tests that cancel must work nevertheless.

Each tool emits "hanging" when it hangs, so that a test knows when to cancel. Tools that cannot be
stopped from outside end when `Hangs.release` is called.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from keryx.aio.scope import get_token
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool

HANGING: Final = "hanging\n"

Ends = Literal["at once", "by a signal", "left over"]
"""When a hanging tool ends: at once when cancelled, when its processes die, or never."""


@dataclass(frozen=True, slots=True)
class Hang:
    """One way to hang."""

    tool: Tool
    ends: Ends
    blocked_in: str

    @property
    def name(self) -> str:
        return self.tool.name


class Hangs:
    """One tool of each kind. `release` ends those that resist."""

    def __init__(self) -> None:
        self._released = threading.Event()
        self._release_async: list[Callable[[], object]] = []
        self._pipe = os.pipe()
        self.acted_late: list[str] = []
        self.all: tuple[Hang, ...] = (
            Hang(self._async_wait(), "at once", "an await"),
            Hang(self._socket(), "at once", "a socket read"),
            Hang(self._cooperative(), "at once", "a thread that asks its token"),
            Hang(self._child(), "by a signal", "a child process"),
            Hang(self._stubborn_child(), "by a signal", "a child that ignores SIGTERM"),
            Hang(self._grandchild(), "by a signal", "a grandchild with a session of its own"),
            Hang(self._python(), "left over", "a Python loop"),
            Hang(self._c(), "left over", "a C call"),
            Hang(self._swallowing(), "left over", "an await that swallows cancellation"),
        )

    def release(self) -> None:
        """End the tools that still hang. Call it on the loop, and wait for the left-overs."""
        if not self._released.is_set():
            self._released.set()
            os.write(self._pipe[1], b"x" * 64)
        for wake in self._release_async:
            wake()

    def close(self) -> None:
        for descriptor in self._pipe:
            os.close(descriptor)

    def _act_late(self, context: ToolContext) -> None:
        """Try to continue after the outcome, as a left-over does; it must be refused."""
        context.emit("too late\n")
        self.acted_late.append(context.call_id)

    # -- ends at once

    def _async_wait(self) -> Tool:
        @tool(effects=NO_EFFECTS)
        async def hang_in_await(context: ToolContext) -> None:
            """Await what never comes."""
            context.emit(HANGING)
            await asyncio.get_running_loop().create_future()

        return hang_in_await

    def _socket(self) -> Tool:
        @tool(effects=NO_EFFECTS)
        async def hang_in_socket(context: ToolContext) -> None:
            """Read from a server that never answers."""
            closed = asyncio.Event()

            async def never_answer(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter
            ) -> None:
                await reader.read()
                writer.close()
                closed.set()

            server = await asyncio.start_server(never_answer, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                context.emit(HANGING)
                await reader.read()
            finally:
                writer.close()
                server.close()
                await closed.wait()

        return hang_in_socket

    def _cooperative(self) -> Tool:
        @tool(effects=NO_EFFECTS)
        def hang_until_told(context: ToolContext) -> str:
            """Block, but listen to the token."""
            context.emit(HANGING)
            token = get_token()
            assert token is not None
            token.wait_cancelled_sync()
            return f"stopped: {token.reason}"

        return hang_until_told

    # -- ends by a signal

    def _child(self) -> Tool:
        return _shell_tool("hang_in_child", "echo hanging; exec sleep 1000")

    def _stubborn_child(self) -> Tool:
        script = "trap '' TERM; echo hanging; while :; do sleep 1000; done"
        return _shell_tool("hang_in_stubborn_child", script)

    def _grandchild(self) -> Tool:
        # The shell in the middle is gone when the grandchild says that it hangs.
        escaped = "trap '' TERM; echo hanging; sleep 1000; sleep 1000"
        script = f'(setsid sh -c "{escaped}" &); exec sleep 1000'
        return _shell_tool("hang_in_grandchild", script)

    # -- is left over

    def _python(self) -> Tool:
        @tool(effects=NO_EFFECTS)
        def hang_in_python(context: ToolContext) -> None:
            """Run a loop that looks at nothing."""
            context.emit(HANGING)
            while not self._released.is_set():
                sum(range(100))
            self._act_late(context)

        return hang_in_python

    def _c(self) -> Tool:
        @tool(effects=NO_EFFECTS)
        def hang_in_c(context: ToolContext) -> None:
            """Block in a system call that no signal of ours can end."""
            context.emit(HANGING)
            os.read(self._pipe[0], 1)
            self._act_late(context)

        return hang_in_c

    def _swallowing(self) -> Tool:
        @tool(effects=NO_EFFECTS)
        async def hang_swallowing(context: ToolContext) -> None:
            """Swallow every cancellation."""
            free = asyncio.Event()
            self._release_async.append(free.set)
            context.emit(HANGING)
            while not free.is_set():
                try:
                    await free.wait()
                except asyncio.CancelledError:
                    continue
            self._act_late(context)

        return hang_swallowing


def _shell_tool(name: str, script: str) -> Tool:
    @tool(name=name, effects=NO_EFFECTS)
    async def hang_in_process(context: ToolContext) -> None:
        """Wait for a process that never ends."""
        async with await context.place.spawn(["/bin/sh", "-c", script]) as process:
            await process.wait()

    return hang_in_process
