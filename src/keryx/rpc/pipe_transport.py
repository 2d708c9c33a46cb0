"""A peer over the stdin and stdout of a process, for places that share nothing else.

The process writes frames to stdout; its stderr goes to another sink. Its output cannot be paused,
so a process that sends more than the peer may hold loses the connection.

It knows nothing of where the process runs and who ends it.
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
from keryx.rpc.memory_transport import WriteBuffer
from keryx.rpc.peer import Peer

# How long the process may take to read the goodbye; it reads it at once or not at all.
LINGER: Final = 1.0


class Exit(Protocol):
    """How a process ended."""

    @property
    def code(self) -> int | None: ...

    @property
    def signal(self) -> int | None: ...


class Process(Protocol):
    """The part of a process that this transport uses."""

    async def write(self, data: bytes) -> None: ...

    def close_stdin(self) -> None: ...

    async def wait(self) -> Exit: ...


class PipeTransport:
    """The sink for a process's output, and its peer: create it, spawn with it, `attach`, `end`."""

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
        """Take output of the process."""
        if stream == "stdout":
            self.peer.received(data)
        elif self._errors is not None:
            self._errors.feed(stream, data)

    def attach(self, process: Process) -> None:
        """Connect the process: what waits to be sent is written to it from now on."""
        self._group.start(self._wire.write_all(process), name="write to the process")
        self._group.start(self._watch(process), name="wait for the process")

    async def end(self) -> None:
        """Close the connection and wait for its calls. The process itself is not ended."""
        self.peer.close()
        await self.peer.wait_ended()
        await self._group.leave()
        self._scope.close()

    async def _watch(self, process: Process) -> None:
        try:
            exit_ = await process.wait()
        except KeryxError as error:
            self.peer.lost(PeerLostError(f"the connection is lost: {error}"))
            return
        how = f"code {exit_.code}" if exit_.signal is None else f"signal {exit_.signal}"
        self.peer.lost(PeerLostError(f"the connection is lost: the process ended with {how}"))
        self._wire.abort()


class _Wire(WriteBuffer):
    """Writes to the process, in order."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope
        self._woken: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._closing: Deadline | None = None
        self._attached = False
        self._closed = False

    def write(self, data: bytes) -> None:
        if not self._closed:
            self._add(data)
            self._wake()

    def set_reading_paused(self, *, paused: bool) -> None:
        """Do nothing: the output of a process cannot be paused."""

    def close(self, *, linger: bool = False) -> None:
        del linger  # written data stays in the pipe until it is read
        if self._closed:
            return
        self._closed = True
        if self._attached:
            until = self._scope.clock.monotonic() + LINGER
            self._closing = self._scope.deadlines.add(until, self.abort)
            self._wake()

    def abort(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._scope.cancel("parent", by="the connection is over")

    async def wait_closed(self) -> None:
        if self._attached:
            await asyncio.shield(self._ended)

    async def write_all(self, process: Process) -> None:
        """Write what waits, until this side closes; then close the stdin of the process."""
        self._attached = True
        try:
            while self._waiting or not self._closed:
                if self._waiting:
                    await process.write(self._waiting[0])
                    self._pop_first()
                    self._resume_if_drained()
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
        self._resume_if_drained()
        if self._closing is not None:
            self._scope.deadlines.drop(self._closing)
        if not self._ended.done():
            self._ended.set_result(None)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)
