"""Blocking calls over a Unix socket: one connection per thread, made on its first call.

A connection is taken out of its thread's keeping for the length of a call and put back only after a
whole answer. Whatever else happens (an alarm, a deadline, Ctrl+C) closes it, the host cancels what
it had asked for, and no later caller can meet an answer that is not its own. The same makes calls
from a signal handler in mid-call safe: they find nothing to share.

The host takes only so many connections. Past that, a thread takes over one that another thread of
its process keeps and does not use, or waits.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
import weakref
from typing import Any

from keryx_tools._errors import ToolConnectionError, ToolError, explained, gone, unsent
from keryx_tools._ways import packets
from keryx_tools._ways.deadline import Deadline, Leash
from keryx_tools._ways.descriptors import CLOSED, Held
from keryx_tools._ways.forks import Inherited

# Most answers fit; larger ones are read into a buffer of exactly their size.
BUFFER = 16 * 1024
# How long to wait when more connect at once than the system queues; it cannot be waited for.
FULL_QUEUE = 0.002
# Well below what `poll` can count to.
LONGEST_WAIT = 1_000_000


class _Shelf:
    """Where a thread keeps its connection between two calls."""

    def __init__(self) -> None:
        self.idle: list[Connection] = []

    def take(self, path: str) -> Connection | None:
        """What is taken is nobody else's: of two threads that try, one finds nothing."""
        with contextlib.suppress(IndexError):
            connection = self.idle.pop()
            if connection.usable_for(path):
                return connection
        return None

    def put(self, connection: Connection) -> None:
        self.idle[:] = [connection]


_shelves: weakref.WeakSet[_Shelf] = weakref.WeakSet()


class _Kept(threading.local):
    """What each thread has of its own; it goes when the thread ends."""

    def __init__(self) -> None:
        self.shelf = _Shelf()
        self.leash: Leash | None = None
        _shelves.add(self.shelf)


_kept = _Kept()


def leash_thread(leash: Leash) -> None:
    """Let others end the calls of this thread."""
    _kept.leash = leash


def leash_of_thread() -> Leash | None:
    return _kept.leash


def call(path: str, secret: str, params: bytes, deadline: Deadline) -> dict[str, Any]:
    """Make one call, and return the packet that answers it."""
    connection = _take(path, secret, deadline)
    leash = _kept.leash
    try:
        if leash is not None:
            leash.hang_up = connection.hang_up
            leash.check(deadline.tool)
        answer = connection.call(params, deadline)
        if leash is not None:
            leash.hang_up = None
    except BaseException:
        connection.close()
        raise
    _kept.shelf.put(connection)
    return answer


def _take(path: str, secret: str, deadline: Deadline) -> Connection:
    connection = _kept.shelf.take(path)
    if connection is not None and not connection.is_ours:
        connection.close()
        raise unsent(deadline.tool, f"{CLOSED}; the next call connects anew")
    while connection is None:
        connection = _opened(path, secret, deadline) or _taken_over(path)
        if connection is None:
            if _kept.leash is not None:
                _kept.leash.check(deadline.tool)
            deadline.left()
            time.sleep(packets.CROWDED_PAUSE)
    return connection


def _opened(path: str, secret: str, deadline: Deadline) -> Connection | None:
    connection = Connection(path)
    try:
        connection.open(secret, deadline)
    except packets.CrowdedError:
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def _taken_over(path: str) -> Connection | None:
    with contextlib.suppress(RuntimeError):  # a thread has just come, or gone
        for shelf in _shelves:
            connection = shelf.take(path)
            if connection is not None and connection.is_ours:
                return connection
    return None


class Connection(Inherited):
    """One thread's connection."""

    # An alarm of the script may end `__init__` at any instruction. What holds a descriptor is
    # therefore kept here before it has one, and `close` finds whatever was made.
    _socket: socket.SocketType | None = None

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._socket = socket.SocketType.__new__(socket.SocketType)
        self._socket.__init__(socket.AF_UNIX)
        self.held = Held(self._socket.fileno())
        # It never blocks; what waits is `poll`, which says by its result that the time is over. A
        # timeout of the socket raises what a signal handler of the script may raise just as well.
        self._socket.setblocking(False)
        self._last = 0
        self._buffer = bytearray(BUFFER)
        self._start = self._end = 0

    def usable_for(self, path: str) -> bool:
        return self._socket is not None and self._path == path and self.pid == os.getpid()

    def open(self, secret: str, deadline: Deadline) -> None:
        """Connect and say the secret."""
        try:
            self._connect(deadline)
        except ToolError:
            raise
        except OSError as error:
            raise explained(error, deadline.tool, sent=False)  # noqa: B904 (it may be the same one)
        try:
            answer = self._exchange(b"hello", packets.hello_params(secret), deadline)
        except ToolConnectionError:
            raise unsent(deadline.tool, "it hung up on our greeting") from None
        if "error" in answer:
            raise unsent(deadline.tool, f"it refused us: {answer['error'].get('message')}")

    def call(self, params: bytes, deadline: Deadline) -> dict[str, Any]:
        return self._exchange(b"call", params, deadline)

    def hang_up(self) -> None:
        """From another thread: whoever waits here finds the connection ended."""
        connected = self._socket
        if connected is not None and self.is_ours:
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up; the host cancels what was asked for."""
        connected = self._socket
        if connected is None:
            return
        if not self.is_ours:
            connected.detach()  # the number is that of a file of the script by now, or of none
        elif self.pid == os.getpid():
            # A child that was forked at the wrong moment may hold a copy; this reaches past it.
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
        connected.close()
        self._socket = None

    def forget(self) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    # -- bytes

    def _connect(self, deadline: Deadline) -> None:
        assert self._socket is not None
        while True:
            deadline.left()
            try:
                return self._socket.connect(self._path)
            except BlockingIOError:
                time.sleep(FULL_QUEUE)

    def _exchange(self, method: bytes, params: bytes, deadline: Deadline) -> dict[str, Any]:
        self._last += 1
        sent = False
        try:
            # A frame that is not taken whole is no call.
            self._send_whole(packets.frame(packets.call(self._last, method, params)), deadline)
            sent = True
            return self._answer(deadline)
        except ToolError:
            raise
        except OSError as error:
            raise explained(error, deadline.tool, sent)  # noqa: B904 (it may be the same one)
        except packets.CrowdedError:
            raise
        except packets.PacketError as error:
            raise (gone if sent else unsent)(deadline.tool, error) from None

    def _answer(self, deadline: Deadline) -> dict[str, Any]:
        while True:
            packet = packets.decoded(self._receive(deadline))
            if "method" in packet:
                continue  # something passing
            packets.check_goodbye(packet)
            if packet.get("id") != self._last:
                raise packets.PacketError(f"it answered call {packet.get('id')}")
            return packet

    def _connected(self) -> socket.SocketType:
        if self._socket is None:
            raise packets.PacketError("the process was forked in mid-call")
        return self._socket

    def _send_whole(self, data: bytes, deadline: Deadline) -> None:
        try:
            self._send(data, deadline)
        except BrokenPipeError as error:
            if error.errno is not None:
                self._answer(deadline)  # whoever hung up may have said why, and that raises it
            raise

    def _send(self, data: bytes, deadline: Deadline) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._connected().send(view) :]
            except BlockingIOError:  # noqa: PERF203 (it is how a socket says that it is full)
                self._wait(select.POLLOUT, deadline)

    def _wait(self, event: int, deadline: Deadline) -> None:
        poll = select.poll()
        poll.register(self._connected(), event)
        ready = False
        while not ready:
            left = deadline.left()
            ready = bool(poll.poll(None if left is None else min(left, LONGEST_WAIT) * 1000 + 1))

    def _receive(self, deadline: Deadline) -> bytearray:
        while self._end - self._start < packets.HEADER.size:
            self._fill(deadline)
        body = self._start + packets.HEADER.size
        length = packets.length_of(self._buffer[self._start : body])
        if self._end - body >= length:
            self._start = body + length
            return self._buffer[body : self._start]
        large = bytearray(length)
        view, filled = memoryview(large), self._end - body
        view[:filled] = memoryview(self._buffer)[body : self._end]
        self._start = self._end = 0
        while filled < length:
            filled += self._read(view[filled:], deadline)
        return large

    def _fill(self, deadline: Deadline) -> None:
        rest = self._buffer[self._start : self._end]
        self._buffer[: len(rest)] = rest
        self._start, self._end = 0, len(rest)
        self._end += self._read(memoryview(self._buffer)[self._end :], deadline)

    def _read(self, into: memoryview, deadline: Deadline) -> int:
        self._wait(select.POLLIN, deadline)
        if not self.is_ours:
            raise packets.PacketError(CLOSED)
        count = self._connected().recv_into(into)
        if count == 0:
            raise packets.PacketError("it was closed")
        return count
