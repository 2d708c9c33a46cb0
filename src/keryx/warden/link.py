"""The host's end of a socket to the warden or to a keeper: it sends orders and reads reports.

It passes frames and descriptors on and knows nothing of what they mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Literal

import msgspec

from keryx.decoding import json_decoder
from keryx.errors import SpawnError
from keryx.warden.pipes import close_all

# The kernel accepts 6 MB of arguments at most, and a character may need six bytes in a frame.
MAX_FRAME: Final = 64 * 1024 * 1024
_HEADER: Final = 4
# Reports are short: so many reads are needed only if the other side floods us, and then other
# callbacks of the loop run in between.
READS: Final = 64


class Report(msgspec.Struct):
    """A message of the warden or a keeper; `id` is that of the order it is about."""

    op: Literal["started", "refused", "exit", "confined", "unopened", "orphaned", "broken"]
    id: int = 0
    pid: int = 0
    code: int | None = None
    signal: int | None = None
    cause: str = ""
    level: Literal["full", "partial", "none"] = "none"
    gaps: tuple[str, ...] = ()
    tmp: str = ""
    uploads: str = ""
    error: str = ""


_decode = json_decoder(Report).decode


class Link:
    """A socket to the warden or to a keeper. `on_end` is called once, when it closes."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        on_report: Callable[[Report], None],
        on_end: Callable[[], None],
    ) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._on_report = on_report
        self._on_end = on_end
        self._unread = bytearray()
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()
        self.open = True
        loop.add_reader(sock.fileno(), self._read)

    def send(self, order: Mapping[str, object], fds: list[int]) -> None:
        """Send an order. This side's copies of the descriptors are closed once they are sent."""
        # json and not msgspec: file names may hold bytes that are not text; json escapes them.
        body = json.dumps(order).encode()
        if len(body) > MAX_FRAME or not self.open:
            close_all(fds)
            if self.open:
                raise SpawnError("the arguments are too long; pass long text by stdin or a file")
            return
        self._unsent.append((memoryview(len(body).to_bytes(_HEADER, "big") + body), fds))
        if len(self._unsent) == 1 and not self._flush():
            self._loop.add_writer(self._sock.fileno(), self._write)

    def is_alive(self) -> bool:
        """Return whether the other side is open, even before the loop has read its end."""
        try:
            return self.open and self._sock.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def finish(self) -> None:
        """Close our sending direction; the other side then kills its children and closes."""
        if self.open:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        if not self.open:
            return
        self.open = False
        fileno = self._sock.fileno()
        self._loop.remove_reader(fileno)
        self._loop.remove_writer(fileno)
        self._sock.close()
        for _, fds in self._unsent:
            close_all(fds)
        self._unsent.clear()
        self._on_end()

    def _flush(self) -> bool:
        """Send as much as the socket takes; return True if all was sent."""
        while self._unsent:
            data, fds = self._unsent[0]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
            try:
                count = self._sock.sendmsg([data], rights)
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                count = len(data)  # the last reports of the dead other side must still be read
            except OSError:
                self.end()  # out of memory or of room for descriptors: an order must not get lost
                return True
            close_all(fds)
            if count == len(data):
                self._unsent.popleft()
            else:
                self._unsent[0] = (data[count:], [])
        return True

    def _write(self) -> None:
        if self._flush() and self.open:
            self._loop.remove_writer(self._sock.fileno())

    def _read(self) -> None:
        # Until nothing is there: if the other side died with unread orders, a loop signals that
        # once and never again, and its last reports must be read as well as the end.
        for _ in range(READS):
            try:
                data = self._sock.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.end()
                return
            self._take(data)
            if not self.open:
                return

    def _take(self, data: bytes) -> None:
        self._unread += data
        while len(self._unread) >= _HEADER:
            end = _HEADER + int.from_bytes(self._unread[:_HEADER], "big")
            if end > len(self._unread):
                break
            report = _decode(self._unread[_HEADER:end])
            del self._unread[:end]
            self._on_report(report)
