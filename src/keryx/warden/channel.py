"""Frames of JSON, with file descriptors, on the warden's side of a socket to the host.

Used by `main.py`, which loads it by its place: standard library only, Python 3.8 and later.
It passes on what comes and knows nothing of what it means.
"""

from __future__ import annotations

import array
import json
import os
import socket
import sys
from typing import Any

HEADER = 4  # bytes of a frame's length, big-endian
READ_SIZE = 1 << 16
MAX_FDS = 8  # an order brings at most three

encode = json.JSONEncoder(separators=(",", ":")).encode


class Channel:
    """Frames of JSON, with file descriptors, over a stream socket that may close at any time."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.fds: list[int] = []
        self.unread = bytearray()
        self.unsent = bytearray()

    def receive(self) -> list[Any]:
        """The orders of one read; raises EOFError when the other side is gone."""
        try:
            data, ancillary, flags, _ = self.sock.recvmsg(
                READ_SIZE,
                socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize),
                getattr(socket, "MSG_CMSG_CLOEXEC", 0),
            )
        except BlockingIOError:
            return []
        except OSError as error:
            raise EOFError from error
        for _, _, raw in ancillary:
            fds = array.array("i")
            fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
            self.fds += fds
            if sys.platform != "linux":
                for fd in fds:
                    os.set_inheritable(fd, False)
        if flags & socket.MSG_CTRUNC:
            raise RuntimeError("file descriptors were lost on the way: too many are open")
        if not data:
            raise EOFError
        self.unread += data
        return self.split()

    def split(self) -> list[Any]:
        orders: list[Any] = []
        while len(self.unread) >= HEADER:
            end = HEADER + int.from_bytes(self.unread[:HEADER], "big")
            if end > len(self.unread):
                break
            orders.append(json.loads(self.unread[HEADER:end]))
            del self.unread[:end]
        return orders

    def take_fds(self, count: int) -> list[int]:
        """The descriptors that came with a frame; the socket keeps both in order."""
        taken, self.fds = self.fds[:count], self.fds[count:]
        return taken

    def send(self, report: dict[str, object]) -> None:
        body = encode(report).encode()
        self.unsent += len(body).to_bytes(HEADER, "big") + body
        self.flush()

    def flush(self) -> None:
        try:
            del self.unsent[: self.sock.send(self.unsent)]
        except BlockingIOError:
            return
        except OSError:
            self.unsent.clear()  # nobody reads any more; the next read says so
