"""One connection per event loop, shared by all tasks there: answers are matched by id.

A task that is cancelled, or whose deadline is over, sends `cancel` and leaves the others alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast

from keryx_tools._errors import ToolConnectionError, gone, unsent
from keryx_tools._ways import packets
from keryx_tools._ways.deadline import Deadline
from keryx_tools._ways.descriptors import CLOSED, Held
from keryx_tools._ways.forks import Inherited, blank

if TYPE_CHECKING:
    Answer = dict[str, Any]

# How long to wait when more connect at once than the system queues; it cannot be waited for.
FULL_QUEUE = 0.002
# More than any answer to a greeting has.
CHUNK = 4096

_lines: dict[asyncio.AbstractEventLoop, Line] = {}


async def call(path: str, secret: str, params: bytes, deadline: Deadline) -> Answer:
    """Make one call on the running loop's connection, and return the packet that answers it."""
    loop = asyncio.get_running_loop()
    while True:
        line = _lines.get(loop)
        if line is not None and line.usable_for(path) and not line.is_ours:
            line.hang_up()
            raise unsent(deadline.tool, f"{CLOSED}; the next call connects anew")
        if line is None or not line.usable_for(path):
            _drop_closed_loops()
            line = _lines[loop] = Line(loop, path, secret)
        try:
            await line.wait_open(deadline)
        except ToolConnectionError:
            if not line.crowded_out:
                raise
            deadline.left()
            await asyncio.sleep(packets.CROWDED_PAUSE)
        else:
            return await line.call(b"call", params, deadline)


def _drop_closed_loops() -> None:
    for loop, line in list(_lines.items()):
        if loop.is_closed():
            line.hang_up()
            _lines.pop(loop, None)


class Line(Inherited, asyncio.Protocol):
    """A loop's connection. Nothing but that loop may touch it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: str, secret: str) -> None:
        super().__init__()
        self._loop = loop
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self.held = Held(self._socket.fileno())
        self._transport: asyncio.Transport | None = None
        self._frames = packets.Assembler()
        self._calls: dict[int, asyncio.Future[Answer]] = {}
        self._last = 0
        self._lost = ""
        self.crowded_out = False
        self._drained: asyncio.Future[None] | None = None
        self._end = self._until_the_loop_ends()
        self._opening = loop.create_task(self._open(secret))
        self._opening.add_done_callback(_heard)

    def usable_for(self, path: str) -> bool:
        return not self._lost and self._path == path and self.pid == os.getpid()

    async def wait_open(self, deadline: Deadline) -> None:
        """Return once calls can be made; the first to come opens it for all."""
        if not self._opening.done():
            await asyncio.wait({self._opening}, timeout=deadline.left())
        if not self._opening.done():
            raise deadline.over()
        if self._opening.cancelled():
            raise unsent(deadline.tool, "the loop is ending")
        error = self._opening.exception()
        if error is not None:
            raise unsent(deadline.tool, error) from None

    async def call(self, method: bytes, params: bytes, deadline: Deadline) -> Answer:
        answer: asyncio.Future[Answer] = self._loop.create_future()
        seconds = deadline.left()
        timer = (
            None if seconds is None else self._loop.call_later(seconds, _expire, answer, deadline)
        )
        id_ = 0
        try:
            while self._drained is not None and not answer.done():
                await asyncio.wait({self._drained, answer}, return_when=asyncio.FIRST_COMPLETED)
            if self._lost:
                raise unsent(deadline.tool, self._lost)
            if answer.done():
                return answer.result()
            self._last = id_ = self._last + 1
            self._calls[id_] = answer
            self._write(packets.call(id_, method, params))
            try:
                return await answer
            except packets.PacketError as error:
                raise gone(deadline.tool, error) from None
        finally:
            if timer is not None:
                timer.cancel()
            if self._calls.pop(id_, None) is not None and not self._lost:
                self._write(packets.cancel(id_))
            _heard(answer)

    def hang_up(self) -> None:
        """The host cancels whatever was asked for."""
        if self.pid != os.getpid():
            return
        self._fail("this side closed it" if self.is_ours else CLOSED)
        if not self.is_ours:
            # The number is that of a file of the script by now, or of none.
            self._socket.detach()
        with contextlib.suppress(OSError):
            # A child that was forked meanwhile may hold a copy; this reaches past it.
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._transport is not None and not self._loop.is_closed():
            self._transport.abort()
        elif self._transport is None:
            self._socket.close()

    def forget(self) -> None:
        self._lost = "the process was forked"
        if self.is_ours:
            blank(self._socket.fileno())

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
            await self._end.asend(None)
        except (OSError, packets.PacketError) as error:
            self.crowded_out = isinstance(error, packets.CrowdedError)
            self.hang_up()
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise packets.PacketError(f"{self._path}: {why}") from None
        except BaseException:
            self.hang_up()
            raise

    async def _greet(self, secret: str) -> None:
        """Before a transport has the socket: one that cannot write reads no last words either."""
        self._last += 1
        hello = packets.call(self._last, b"hello", packets.hello_params(secret))
        with contextlib.suppress(BrokenPipeError):
            await self._loop.sock_sendall(self._socket, packets.frame(hello))
        try:
            answer = await self._first_packet()
            packets.check_goodbye(answer)
        except packets.CrowdedError:
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
                return packets.decoded(frame)

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        """Loops close the generators that are still open when they end; this one hangs up then."""
        try:
            yield
        finally:
            self.hang_up()
            if _lines.get(self._loop) is self:
                del _lines[self._loop]
            await asyncio.sleep(0)  # for the transport to take its leave

    # -- what the loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._take(packets.decoded(frame))
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
            return  # something passing
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
        answer.set_exception(deadline.over())


def _heard(done: asyncio.Future[Any]) -> None:
    """Nobody may be left to hear of it, and asyncio would print that."""
    if done.done() and not done.cancelled():
        done.exception()
