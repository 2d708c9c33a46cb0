"""Blocking calls over a Unix socket: one connection per thread, opened by its first call.

A call takes the connection out of its thread's slot and puts it back only after a complete answer.
Anything else (an alarm, a deadline, Ctrl+C) closes the connection: the host then cancels the call,
and no later caller can read an answer that is not its own. So calls from a signal handler are safe
too: they find an empty slot and open a connection of their own.

The host accepts a limited number of connections. Beyond it, a thread takes over an idle connection
of another thread of its process, or waits.
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

from keryx_tools._errors import ToolConnectionError, ToolError, lost_error, os_error, unsent_error
from keryx_tools._transports import packets
from keryx_tools._transports.deadline import CallStopper, Deadline
from keryx_tools._transports.descriptors import CLOSED, OwnedDescriptor
from keryx_tools._transports.forks import ForkAware

# Most answers fit; larger ones are read into a buffer of exactly their size.
BUFFER = 16 * 1024
# How long to wait if the listen queue is full; the system has no event for that.
FULL_QUEUE = 0.002
# Much less than the largest timeout of `poll`.
LONGEST_WAIT = 1_000_000


class _IdleSlot:
    """Holds a thread's connection between two calls."""

    def __init__(self) -> None:
        self.idle: list[Connection] = []

    def take(self, path: str) -> Connection | None:
        """Remove and return the idle connection; of two threads that try, one gets None."""
        with contextlib.suppress(IndexError):
            connection = self.idle.pop()
            if connection.usable_for(path):
                return connection
        return None

    def put(self, connection: Connection) -> None:
        self.idle[:] = [connection]


_slots: weakref.WeakSet[_IdleSlot] = weakref.WeakSet()


class _ThreadState(threading.local):
    """The state of each thread; it ends with the thread."""

    def __init__(self) -> None:
        self.slot = _IdleSlot()
        self.stopper: CallStopper | None = None
        _slots.add(self.slot)


_thread = _ThreadState()


def set_thread_stopper(stopper: CallStopper) -> None:
    """Let other threads stop the calls of this thread."""
    _thread.stopper = stopper


def thread_stopper() -> CallStopper | None:
    return _thread.stopper


def call(path: str, secret: str, params: bytes, deadline: Deadline) -> dict[str, Any]:
    """Make one call, and return the packet that answers it."""
    connection = _take(path, secret, deadline)
    stopper = _thread.stopper
    try:
        if stopper is not None:
            stopper.hang_up = connection.hang_up
            stopper.check(deadline.tool)
        answer = connection.call(params, deadline)
        if stopper is not None:
            stopper.hang_up = None
    except BaseException:
        connection.close()
        raise
    _thread.slot.put(connection)
    return answer


def _take(path: str, secret: str, deadline: Deadline) -> Connection:
    connection = _thread.slot.take(path)
    if connection is not None and not connection.is_ours:
        connection.close()
        raise unsent_error(deadline.tool, f"{CLOSED}; the next call connects anew")
    while connection is None:
        connection = _open(path, secret, deadline) or _take_idle_of_other_thread(path)
        if connection is None:
            if _thread.stopper is not None:
                _thread.stopper.check(deadline.tool)
            deadline.remaining()
            time.sleep(packets.RETRY_PAUSE)
    return connection


def _open(path: str, secret: str, deadline: Deadline) -> Connection | None:
    connection = Connection(path)
    try:
        connection.open(secret, deadline)
    except packets.TooManyConnectionsError:
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def _take_idle_of_other_thread(path: str) -> Connection | None:
    with contextlib.suppress(RuntimeError):  # a thread has just started or ended
        for slot in _slots:
            connection = slot.take(path)
            if connection is not None and connection.is_ours:
                return connection
    return None


class Connection(ForkAware):
    """One thread's connection."""

    # An alarm of the script may end `__init__` at any instruction. So the socket object is stored
    # here before it opens a descriptor, and `close` finds it in any case.
    _socket: socket.SocketType | None = None

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._socket = socket.SocketType.__new__(socket.SocketType)
        self._socket.__init__(socket.AF_UNIX)
        self.descriptor = OwnedDescriptor(self._socket.fileno())
        # The socket never blocks; `poll` waits, and its result says that the time is over. A socket
        # timeout raises an error that a signal handler of the script may raise as well.
        self._socket.setblocking(False)
        self._last = 0
        self._buffer = bytearray(BUFFER)
        self._start = self._end = 0

    def usable_for(self, path: str) -> bool:
        return self._socket is not None and self._path == path and self.pid == os.getpid()

    def open(self, secret: str, deadline: Deadline) -> None:
        """Connect and send the secret."""
        try:
            self._connect(deadline)
        except ToolError:
            raise
        except OSError as error:
            raise os_error(error, deadline.tool, sent=False)  # noqa: B904 (it may be the same one)
        try:
            answer = self._exchange(b"hello", packets.hello_params(secret), deadline)
        except ToolConnectionError:
            raise unsent_error(deadline.tool, "it hung up on our greeting") from None
        if "error" in answer:
            raise unsent_error(deadline.tool, f"it refused us: {answer['error'].get('message')}")

    def call(self, params: bytes, deadline: Deadline) -> dict[str, Any]:
        return self._exchange(b"call", params, deadline)

    def hang_up(self) -> None:
        """Shut the connection down, from another thread; its waiting call then fails."""
        sock = self._socket
        if sock is not None and self.is_ours:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; the host cancels its calls."""
        sock = self._socket
        if sock is None:
            return
        if not self.is_ours:
            sock.detach()  # the number belongs to a file of the script by now, or to none
        elif self.pid == os.getpid():
            # A forked child may hold a copy; shutdown closes the connection also then.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        sock.close()
        self._socket = None

    def close_in_child(self) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    # -- bytes

    def _connect(self, deadline: Deadline) -> None:
        assert self._socket is not None
        while True:
            deadline.remaining()
            try:
                return self._socket.connect(self._path)
            except BlockingIOError:
                time.sleep(FULL_QUEUE)

    def _exchange(self, method: bytes, params: bytes, deadline: Deadline) -> dict[str, Any]:
        self._last += 1
        sent = False
        try:
            # The host ignores an incomplete frame, so until all is sent the call cannot run.
            self._send_call(packets.frame(packets.call(self._last, method, params)), deadline)
            sent = True
            return self._answer(deadline)
        except ToolError:
            raise
        except OSError as error:
            raise os_error(error, deadline.tool, sent)  # noqa: B904 (it may be the same one)
        except packets.TooManyConnectionsError:
            raise
        except packets.PacketError as error:
            raise (lost_error if sent else unsent_error)(deadline.tool, error) from None

    def _answer(self, deadline: Deadline) -> dict[str, Any]:
        while True:
            packet = packets.decode(self._receive(deadline))
            if "method" in packet:
                continue  # progress
            packets.check_goodbye(packet)
            if packet.get("id") != self._last:
                raise packets.PacketError(f"it answered call {packet.get('id')}")
            return packet

    def _open_socket(self) -> socket.SocketType:
        if self._socket is None:
            raise packets.PacketError("the process was forked during the call")
        return self._socket

    def _send_call(self, data: bytes, deadline: Deadline) -> None:
        try:
            self._send(data, deadline)
        except BrokenPipeError as error:
            if error.errno is not None:
                self._answer(deadline)  # the host may have sent a goodbye, which raises its reason
            raise

    def _send(self, data: bytes, deadline: Deadline) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._open_socket().send(view) :]
            except BlockingIOError:  # noqa: PERF203 (it is how a socket says that it is full)
                self._wait(select.POLLOUT, deadline)

    def _wait(self, event: int, deadline: Deadline) -> None:
        poll = select.poll()
        poll.register(self._open_socket(), event)
        ready = False
        while not ready:
            wait = deadline.remaining()
            ready = bool(poll.poll(None if wait is None else min(wait, LONGEST_WAIT) * 1000 + 1))

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
        unread = self._buffer[self._start : self._end]
        self._buffer[: len(unread)] = unread
        self._start, self._end = 0, len(unread)
        self._end += self._read(memoryview(self._buffer)[self._end :], deadline)

    def _read(self, into: memoryview, deadline: Deadline) -> int:
        self._wait(select.POLLIN, deadline)
        if not self.is_ours:
            raise packets.PacketError(CLOSED)
        count = self._open_socket().recv_into(into)
        if count == 0:
            raise packets.PacketError("it was closed")
        return count
