"""The pipes of a child, on the loop: its output goes to a sink, and its stdin can be written.

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

# Large enough to empty the pipe of a fast writer in few events; bounds what one event costs.
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
        self._fd, self.child_fd = os.pipe()
        self.open = True
        os.set_blocking(self._fd, False)
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # the total size of a user's pipes is limited
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        loop.add_reader(self._fd, self._read)

    def drain(self) -> None:
        """Read what is in the pipe, at most PIPE_SIZE, and close."""
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
        # One read per event, so that an endless writer does not block the loop.
        try:
            data = os.read(self._fd, PIPE_SIZE)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        try:
            self._sink.feed(self._name, data)
        except Exception as error:  # noqa: BLE001 (foreign code; it is reported, and reading goes on)
            self._loop.call_exception_handler(
                {"message": f"a sink failed to take {self._name}", "exception": error}
            )


class _Inlet:
    """The writing end of a child's stdin. Writes keep the order of the calls and never mix."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.child_fd, self._fd = os.pipe()
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
                # The rest of a cancelled write is skipped.
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
    """The pipes of one child: its stdin, and its stdout and stderr, which go to a sink."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, output: OutputSink | None, *, stdin: bool
    ) -> None:
        self._outlets: list[_Outlet] = []
        self._inlet: _Inlet | None = None
        self._on_end: Callable[[], None] | None = None
        self.ends: Final[dict[int, int]] = {}
        """The child's ends, by their descriptor numbers there. `Link.send` closes them."""
        try:
            if output is not None:
                for number, name in ((1, "stdout"), (2, "stderr")):
                    outlet = _Outlet(loop, name, output, self._check_end)
                    self._outlets.append(outlet)
                    self.ends[number] = outlet.child_fd
            if stdin:
                self._inlet = _Inlet(loop)
                self.ends[0] = self._inlet.child_fd
        except OSError:
            close_all(self.ends.values())
            self.drain()
            raise

    @property
    def reading(self) -> bool:
        """Whether more output may come."""
        return any(outlet.open for outlet in self._outlets)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Run the callback once all output is read; now, if it already is."""
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
        """Read what has been written so far, and close."""
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
