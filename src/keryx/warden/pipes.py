"""The pipes of a child on the loop: what it writes goes to a sink, what it reads is fed to it.

Nothing here knows of processes, signals or exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from keryx.aio.capture import OutputSink

# Empties the pipe of a fast writer in few events, and bounds what one event costs the loop.
PIPE_SIZE: Final = 256 * 1024


class _Outlet:
    """The reading end of a child's stdout or stderr."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        sink: OutputSink,
        on_end: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._name = name
        self._sink = sink
        self._on_end = on_end
        self._fd, self.theirs = os.pipe()
        self.open = True
        os.set_blocking(self._fd, False)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # a user may have only so much in pipes
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        loop.add_reader(self._fd, self._read)

    def drain(self) -> None:
        """Take what is there, at most a pipe full, and close."""
        if self.open:
            self._read()
            self.close()

    def close(self) -> None:
        if self.open:
            self.open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._on_end()

    def _read(self) -> None:
        # One read per event: an endless writer gets its turn and no more.
        try:
            data = os.read(self._fd, PIPE_SIZE)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        try:
            self._sink.feed(self._name, data)
        except Exception as error:  # noqa: BLE001 (a foreign sink; it is reported, and the reading goes on)
            self._loop.call_exception_handler(
                {"message": f"a sink failed to take {self._name}", "exception": error}
            )


class _Inlet:
    """The writing end of a child's stdin. Writes go out whole, in the order of the calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.theirs, self._fd = os.pipe()
        os.set_blocking(self._fd, False)
        self._waiting: deque[tuple[memoryview, asyncio.Future[bool]]] = deque()
        self.open = True

    async def write(self, data: bytes) -> None:
        if not self.open:
            raise BrokenPipeError("stdin of the process is closed")
        done: asyncio.Future[bool] = self._loop.create_future()
        self._waiting.append((memoryview(data), done))
        if len(self._waiting) == 1:
            self._loop.add_writer(self._fd, self._flush)
            self._flush()
        if not await done:
            raise BrokenPipeError("the process has closed its stdin")

    def close(self) -> None:
        if not self.open:
            return
        self.open = False
        self._loop.remove_writer(self._fd)
        os.close(self._fd)
        for _, done in self._waiting:
            if not done.done():
                done.set_result(False)
        self._waiting.clear()

    def _flush(self) -> None:
        while self._waiting:
            data, done = self._waiting[0]
            try:
                # A cancelled write stops where it is.
                count = len(data) if done.done() else os.write(self._fd, data)
            except BlockingIOError:
                return
            except OSError:
                self.close()
                return
            if count < len(data):
                self._waiting[0] = (data[count:], done)
                continue
            self._waiting.popleft()
            if not done.done():
                done.set_result(True)
        self._loop.remove_writer(self._fd)


class Streams:
    """The pipes of one child: what it reads, and what it writes into a sink."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, output: OutputSink | None, *, stdin: bool
    ) -> None:
        self._outlets: list[_Outlet] = []
        self._inlet: _Inlet | None = None
        self._on_end: Callable[[], None] | None = None
        self.ends: Final[dict[int, int]] = {}
        """The child's ends, by their numbers there. Whoever takes them closes them."""
        try:
            if output is not None:
                for number, name in ((1, "stdout"), (2, "stderr")):
                    outlet = _Outlet(loop, name, output, self._check_end)
                    self._outlets.append(outlet)
                    self.ends[number] = outlet.theirs
            if stdin:
                self._inlet = _Inlet(loop)
                self.ends[0] = self._inlet.theirs
        except OSError:
            close_all(self.ends.values())
            self.drain()
            raise

    @property
    def reading(self) -> bool:
        """Whether more output may come."""
        return any(outlet.open for outlet in self._outlets)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Run the callback once all output was read; now, if it was."""
        self._on_end = callback
        self._check_end()

    async def write(self, data: bytes) -> None:
        if self._inlet is None:
            raise BrokenPipeError("the process was started without stdin")
        await self._inlet.write(data)

    def close_stdin(self) -> None:
        if self._inlet is not None:
            self._inlet.close()

    def drain(self) -> None:
        """Take what has been written so far, and close."""
        for outlet in self._outlets:
            outlet.drain()
        self.close_stdin()

    def _check_end(self) -> None:
        if self._on_end is not None and not self.reading:
            callback, self._on_end = self._on_end, None
            callback()


def close_all(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
