"""One child process and everything below it, as the host sees it."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, Final, Self

import msgspec

from keryx.aio.scope import EXIT_REPORT, GRACE, Registration, Scope
from keryx.errors import KeryxError, SpawnError, ToolCancelledError, WardenLostError
from keryx.warden.link import Link
from keryx.warden.pipes import Streams

# A spawn that is cancelled while a cold warden still starts waits for the end of what it
# ordered: the start of a Python process on a loaded machine, then one kill.
UNDO: Final = 1.0
# All writers are dead when the exit is reported, so both streams end at once. Only what a
# stranger holds stays open, and nobody waits longer for that.
DRAIN: Final = 1.0


class Exit(msgspec.Struct, frozen=True):
    """How a process ended: a code, or the signal that ended it; and the limit that it passed."""

    code: int | None
    signal: int | None
    cause: str = ""
    """Why it was killed, if it was for passing a limit: "it used more than 512 MiB of memory"."""


class Process:
    """A child process and everything below it. Leaving the `async with` ends the whole tree."""

    def __init__(self, order_id: int, scope: Scope, link: Link, streams: Streams) -> None:
        loop = asyncio.get_running_loop()
        self.id: Final = order_id
        self.pid = 0
        """Its number where it runs: confined processes may have numbers of their own."""
        self._scope = scope
        self._link = link
        self._streams = streams
        self._terminated = False
        self._exit: Exit | WardenLostError | None = None
        # Errors travel as values: a future that nobody awaits must not complain.
        self._answer: asyncio.Future[int | KeryxError] = loop.create_future()
        self._ended: asyncio.Future[Exit | WardenLostError] = loop.create_future()
        self._registrations: list[Registration] = []

    @property
    def running(self) -> bool:
        """Whether some of it may still run."""
        return self._exit is None

    async def wait(self) -> Exit:
        """How it ended, once all of it has and its output was read; WardenLostError if unknown."""
        end = await asyncio.shield(self._ended)
        if isinstance(end, WardenLostError):
            raise WardenLostError(*end.args)
        return end

    def terminate(self) -> None:
        """SIGTERM to the whole tree, once."""
        if not self._terminated:
            self._terminated = True
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the whole tree and to whatever else it leaves behind."""
        self._terminated = True
        self._signal(signal.SIGKILL)

    async def write(self, data: bytes) -> None:
        """Write to its stdin; BrokenPipeError once it reads no more."""
        await self._streams.write(data)

    def close_stdin(self) -> None:
        self._streams.close_stdin()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        cancelled: asyncio.CancelledError | None = None
        for rung, patience in ((self.terminate, GRACE), (self.kill, EXIT_REPORT)):
            if self.running:
                rung()
                cancelled = await outlast(self._ended, patience, self._scope) or cancelled
        self._streams.drain()
        if cancelled is not None:
            raise cancelled

    def _signal(self, number: int) -> None:
        if self.running:
            self._link.send({"op": "signal", "id": self.id, "signal": number}, [])

    # -- for the warden and the keeper

    async def begin(self) -> Self:
        """Wait until it runs; if that is no longer wanted, it does not when this raises."""
        scope = self._scope
        self._registrations = [scope.on_cancel(self.terminate), scope.on_kill(self.kill)]
        try:
            answer = await self._answer
        except asyncio.CancelledError:
            await self._undo()
            raise
        if isinstance(answer, KeryxError):
            raise answer
        if scope.reason is not None:
            await self._undo()
            raise ToolCancelledError(scope.reason)
        return self

    def started(self, pid: int) -> None:
        self.pid = pid
        if not self._answer.done():
            self._answer.set_result(pid)

    async def _undo(self) -> None:
        """Nobody will ever see this process: end it at once."""
        self.kill()
        await outlast(self._ended, UNDO, self._scope)

    def refused(self, error: SpawnError) -> None:
        if not self._answer.done():
            self._answer.set_result(error)
        self.finish(WardenLostError("the process was never started"))

    def finish(self, end: Exit | WardenLostError) -> None:
        """The exit is known; what is still in the pipes is read before anyone hears of it."""
        self._exit = end
        for registration in self._registrations:
            registration.remove()
        if isinstance(end, WardenLostError):
            if not self._answer.done():
                self._answer.set_result(end)
            self._streams.drain()
        self._streams.close_stdin()
        if self._streams.reading:
            deadlines, until = self._scope.deadlines, self._scope.clock.monotonic() + DRAIN
            deadline = deadlines.add(until, self._streams.drain)
            self._ended.add_done_callback(lambda _: deadlines.drop(deadline))
        self._streams.on_end(lambda: self._ended.set_result(end))


async def outlast(
    future: asyncio.Future[Any], seconds: float, scope: Scope
) -> asyncio.CancelledError | None:
    """Wait for a future, at most so long, through cancellations; the last one is returned."""
    expired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    until = scope.clock.monotonic() + seconds
    deadline = scope.deadlines.add(until, lambda: expired.set_result(None))
    cancelled: asyncio.CancelledError | None = None
    while not (future.done() or expired.done()):
        try:
            await asyncio.wait((future, expired), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as error:
            cancelled = error
    scope.deadlines.drop(deadline)
    return cancelled
