"""One connection per event loop, shared by all its tasks: answers are matched by id.

A task that is cancelled, or whose deadline is over, sends `cancel` for its own call only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast

from keryx_tools._errors import ToolConnectionError, lost_error, unsent_error
from keryx_tools._transports import packets
from keryx_tools._transports.deadline import Deadline
from keryx_tools._transports.descriptors import CLOSED, OwnedDescriptor
from keryx_tools._transports.forks import ForkAware, point_at_null

if TYPE_CHECKING:
    Answer = dict[str, Any]

# How long to wait if the listen queue is full; the system has no event for that.
FULL_QUEUE = 0.002
# Larger than any answer to a greeting.
CHUNK = 4096

_connections: dict[asyncio.AbstractEventLoop, LoopConnection] = {}


async def call(path: str, secret: str, params: bytes, deadline: Deadline) -> Answer:
    """Make one call on the running loop's connection, and return the packet that answers it."""
    loop = asyncio.get_running_loop()
    while True:
        connection = _connections.get(loop)
        if connection is not None and connection.usable_for(path) and not connection.is_ours:
            connection.hang_up()
            raise unsent_error(deadline.tool, f"{CLOSED}; the next call connects anew")
        if connection is None or not connection.usable_for(path):
            _drop_closed_loops()
            connection = _connections[loop] = LoopConnection(loop, path, secret)
        try:
            await connection.wait_open(deadline)
        except ToolConnectionError:
            if not connection.is_refused_for_now:
                raise
            deadline.remaining()
            await asyncio.sleep(packets.RETRY_PAUSE)
        else:
            return await connection.call(b"call", params, deadline)


def _drop_closed_loops() -> None:
    for loop, connection in list(_connections.items()):
        if loop.is_closed():
            connection.hang_up()
            _connections.pop(loop, None)


class LoopConnection(ForkAware, asyncio.Protocol):
    """The connection of a loop. Only that loop may use it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: str, secret: str) -> None:
        super().__init__()
        self._loop = loop
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self.descriptor = OwnedDescriptor(self._socket.fileno())
        self._transport: asyncio.Transport | None = None
        self._frames = packets.Assembler()
        self._calls: dict[int, asyncio.Future[Answer]] = {}
        self._last = 0
        self._lost = ""
        self.is_refused_for_now = False
        self._drained: asyncio.Future[None] | None = None
        self._closer = self._close_with_loop()
        self._opening = loop.create_task(self._open(secret))
        self._opening.add_done_callback(_mark_read)

    def usable_for(self, path: str) -> bool:
        return not self._lost and self._path == path and self.pid == os.getpid()

    async def wait_open(self, deadline: Deadline) -> None:
        """Return once calls can be made; the first caller opens the connection for all."""
        if not self._opening.done():
            await asyncio.wait({self._opening}, timeout=deadline.remaining())
        if not self._opening.done():
            raise deadline.timeout_error()
        if self._opening.cancelled():
            raise unsent_error(deadline.tool, "the loop is ending")
        error = self._opening.exception()
        if error is not None:
            raise unsent_error(deadline.tool, error) from None

    async def call(self, method: bytes, params: bytes, deadline: Deadline) -> Answer:
        answer: asyncio.Future[Answer] = self._loop.create_future()
        seconds = deadline.remaining()
        timer = (
            None if seconds is None else self._loop.call_later(seconds, _expire, answer, deadline)
        )
        id_ = 0
        try:
            while self._drained is not None and not answer.done():
                await asyncio.wait({self._drained, answer}, return_when=asyncio.FIRST_COMPLETED)
            if self._lost:
                raise unsent_error(deadline.tool, self._lost)
            if answer.done():
                return answer.result()
            self._last = id_ = self._last + 1
            self._calls[id_] = answer
            self._write(packets.call(id_, method, params))
            try:
                return await answer
            except packets.PacketError as error:
                raise lost_error(deadline.tool, error) from None
        finally:
            if timer is not None:
                timer.cancel()
            if self._calls.pop(id_, None) is not None and not self._lost:
                self._write(packets.cancel(id_))
            _mark_read(answer)

    def hang_up(self) -> None:
        """Close the connection; the host cancels its calls."""
        if self.pid != os.getpid():
            return
        self._fail("this side closed it" if self.is_ours else CLOSED)
        if not self.is_ours:
            # The number belongs to a file of the script by now, or to none.
            self._socket.detach()
        with contextlib.suppress(OSError):
            # A forked child may hold a copy; shutdown closes the connection also then.
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._transport is not None and not self._loop.is_closed():
            self._transport.abort()
        elif self._transport is None:
            self._socket.close()

    def close_in_child(self) -> None:
        self._lost = "the process was forked"
        if self.is_ours:
            point_at_null(self._socket.fileno())

    # -- opening and ending

    async def _open(self, secret: str) -> None:
        try:
            self._socket.setblocking(False)
            while True:
                try:
                    self._socket.connect(self._path)
                    break
                except BlockingIOError:
                    await asyncio.sleep(FULL_QUEUE)
            await self._greet(secret)
            await self._loop.create_unix_connection(lambda: self, sock=self._socket)
            await self._closer.asend(None)
        except (OSError, packets.PacketError) as error:
            self.is_refused_for_now = isinstance(error, packets.TooManyConnectionsError)
            self.hang_up()
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise packets.PacketError(f"{self._path}: {why}") from None
        except BaseException:
            self.hang_up()
            raise

    async def _greet(self, secret: str) -> None:
        """Greet before a transport has the socket: one that cannot write reads no goodbye."""
        self._last += 1
        hello = packets.call(self._last, b"hello", packets.hello_params(secret))
        with contextlib.suppress(BrokenPipeError):
            await self._loop.sock_sendall(self._socket, packets.frame(hello))
        try:
            answer = await self._first_packet()
            packets.check_goodbye(answer)
        except packets.TooManyConnectionsError:
            raise
        except packets.PacketError:
            raise packets.PacketError("it hung up on our greeting") from None
        if "error" in answer:
            raise packets.PacketError(f"it refused us: {answer['error'].get('message')}")

    async def _first_packet(self) -> Answer:
        while True:
            data = await self._loop.sock_recv(self._socket, CHUNK)
            if not data:
                raise packets.PacketError("it was closed")
            for frame in self._frames.feed(data):
                return packets.decode(frame)

    async def _close_with_loop(self) -> AsyncGenerator[None, None]:
        """Close the connection when the loop ends: loops then close their open generators."""
        try:
            yield
        finally:
            self.hang_up()
            if _connections.get(self._loop) is self:
                del _connections[self._loop]
            await asyncio.sleep(0)  # lets the transport call connection_lost

    # -- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._take(packets.decode(frame))
        except packets.PacketError as error:
            self._fail(str(error))
            self.hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(str(exc or "it was closed"))

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def _take(self, packet: Answer) -> None:
        if "method" in packet:
            return  # progress
        packets.check_goodbye(packet)
        # None: it was given up.
        answer = self._calls.pop(cast("int", packet.get("id")), None)
        if answer is not None and not answer.done():
            answer.set_result(packet)

    def _fail(self, why: str) -> None:
        self._lost = self._lost or why
        if self._loop.is_closed():
            return
        self.resume_writing()
        calls, self._calls = self._calls, {}
        for answer in calls.values():
            if not answer.done():
                answer.set_exception(packets.PacketError(self._lost))

    def _write(self, packet: bytes) -> None:
        assert self._transport is not None
        self._transport.write(packets.frame(packet))


def _expire(answer: asyncio.Future[Answer], deadline: Deadline) -> None:
    if not answer.done():
        answer.set_exception(deadline.timeout_error())


def _mark_read(done: asyncio.Future[Any]) -> None:
    """Read the exception: asyncio prints errors that nobody reads."""
    if done.done() and not done.cancelled():
        done.exception()
