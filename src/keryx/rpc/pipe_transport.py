"""A peer over the stdin and stdout of a process: for places that are reached in no other way.

What the process writes to stdout are frames; its stderr goes to another sink. A process cannot be
asked to write later, so what comes is bounded by what the peer may hold, and past that it ends.

It refuses to know where the process runs and who ends it.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from keryx.aio.capture import OutputSink
from keryx.aio.clock import Deadline
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.errors import KeryxError
from keryx.rpc.incoming_calls import LIMITS, Handler, Limits, PeerLostError, no_calls
from keryx.rpc.memory_transport import Backlog
from keryx.rpc.peer import Peer

# How long the process may take to read the last words; it reads them at once or not at all.
LINGER: Final = 1.0


class Exit(Protocol):
    """How a process ended."""

    @property
    def code(self) -> int | None: ...

    @property
    def signal(self) -> int | None: ...


class Process(Protocol):
    """What is needed of a process."""

    async def write(self, data: bytes) -> None: ...

    def close_stdin(self) -> None: ...

    async def wait(self) -> Exit: ...


class Pipes:
    """The sink for a process's output, then its peer: make it, spawn with it, `carry`, `end`."""

    def __init__(
        self,
        scope: Scope,
        handler: Handler = no_calls,
        *,
        errors: OutputSink | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        """`errors` takes what the process writes to stderr."""
        self._scope = scope.child("pipes")
        self._group = Group(self._scope)
        self._errors = errors
        self._wire = _Wire(self._scope)
        self.peer = Peer(self._wire, scope, handler, limits=limits)
        self._wire.peer = self.peer

    def feed(self, stream: str, data: bytes) -> None:
        """Output came."""
        if stream == "stdout":
            self.peer.received(data)
        elif self._errors is not None:
            self._errors.feed(stream, data)

    def carry(self, process: Process) -> None:
        """This is the process: what was said so far is written to it now."""
        self._group.start(self._wire.write_all(process), name="write to the process")
        self._group.start(self._watch(process), name="wait for the process")

    async def end(self) -> None:
        """Hang up, and wait for what ran for the process; whoever started it ends it."""
        self.peer.close()
        await self.peer.wait_ended()
        await self._group.leave()
        self._scope.close()

    async def _watch(self, process: Process) -> None:
        try:
            ended = await process.wait()
        except KeryxError as error:
            self.peer.lost(PeerLostError(f"the connection is lost: {error}"))
            return
        how = f"code {ended.code}" if ended.signal is None else f"signal {ended.signal}"
        self.peer.lost(PeerLostError(f"the connection is lost: the process ended with {how}"))
        self._wire.abort()


class _Wire(Backlog):
    """What is written to the process, in order."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope
        self._woken: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._closing: Deadline | None = None
        self._carried = False
        self._closed = False

    def write(self, data: bytes) -> None:
        if not self._closed:
            self._add(data)
            self._wake()

    def hold(self, *, held: bool) -> None:
        """What a process writes comes when it comes."""

    def close(self, *, linger: bool = False) -> None:
        del linger  # what was written stays in the pipe until it is read
        if self._closed:
            return
        self._closed = True
        if self._carried:
            until = self._scope.clock.monotonic() + LINGER
            self._closing = self._scope.deadlines.add(until, self.abort)
            self._wake()

    def abort(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._scope.cancel("parent", by="the connection is over")

    async def wait_closed(self) -> None:
        if self._carried:
            await asyncio.shield(self._ended)

    async def write_all(self, process: Process) -> None:
        """Until the end: what waits is written, and then no more comes on its stdin."""
        self._carried = True
        try:
            while self._waiting or not self._closed:
                if self._waiting:
                    await process.write(self._waiting[0])
                    self._taken()
                    self._go_on_if_drained()
                else:
                    self._woken = self._loop.create_future()
                    await self._woken
        except (OSError, KeryxError) as error:
            if self.peer is not None:
                self.peer.lost(PeerLostError(f"the connection is lost: {error}"))
        finally:
            self._end()
            process.close_stdin()

    def _end(self) -> None:
        self._closed = True
        self._drop_all()
        self._go_on_if_drained()
        if self._closing is not None:
            self._scope.deadlines.drop(self._closing)
        if not self._ended.done():
            self._ended.set_result(None)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)
