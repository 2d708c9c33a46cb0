"""The output of a running call: streamed to readers, and kept, up to a limit, as partial result."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from typing import Final

from keryx.aio.capture import Capture
from keryx.aio.scope import call_soon, is_loop_thread
from keryx.engine.redaction import NO_SECRETS, Redactor, StreamRedactor
from keryx.ports.tool_context import Emitted

# A thread that emits faster than the loop reads blocks when the queue holds so many pieces.
QUEUED_PIECES: Final = 64
PIECE: Final = 65_536
# Bytes that a script gets of the output of one call. A tool that prints more can write a file.
OUTPUT_LIMIT: Final = 16 * 1024 * 1024
# Bytes of output and files that the nested calls of one call may hold together.
MOST_HELD: Final = 64 * 1024 * 1024


class MemoryBudget:
    """The memory that the calls of one container share. Changes on the loop only."""

    __slots__ = ("_freed", "_held", "_most")

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._held = 0
        self._freed: asyncio.Event | None = None

    def take(self, size: int) -> int:
        """Reserve up to so many bytes; return how many were free."""
        reserved = max(0, min(size, self._most - self._held))
        self._held += reserved
        return reserved

    async def wait(self, size: int) -> None:
        """Reserve so many bytes once they are free. If nothing is held, any size is granted."""
        while self._held and self._held + size > self._most:
            if self._freed is None:
                self._freed = asyncio.Event()
            await self._freed.wait()
        self._held += size

    def give_back(self, size: int) -> None:
        self._held -= size
        if self._freed is not None:
            self._freed.set()
            self._freed = None


class CallOutput:
    """Collects text from the call's thread or the loop, and bytes from its processes.

    The capture changes on the loop only; a thread passes its pieces through a bounded queue. The
    beginning of a nested call's output is kept in full, as far as the memory budget allows.
    """

    __slots__ = (
        "_beginning",
        "_budget",
        "_capture",
        "_drain_scheduled",
        "_held",
        "_left_out",
        "_loop",
        "_pieces",
        "_publish",
        "_redactor",
        "_redactors",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        publish: Callable[[str, str], None],
        redactor: Redactor = NO_SECRETS,
        budget: MemoryBudget | None = None,
    ) -> None:
        self._loop = loop
        self._publish = publish
        self._redactor = redactor
        self._redactors: dict[str, StreamRedactor] = {}
        self._capture: Capture | None = None
        self._pieces: queue.Queue[tuple[str, bytes]] | None = None
        self._drain_scheduled = False
        self._budget = budget
        self._beginning: bytearray | None = None
        self._left_out = 0
        self._held = 0

    def accept_threads(self) -> None:
        """Create the queue, before the call's thread starts."""
        self._pieces = queue.Queue(QUEUED_PIECES)

    def emit(self, stream: str, text: str) -> None:
        data = text.encode(errors="replace")
        if self._pieces is None or is_loop_thread(self._loop):
            self.feed(stream, data)
            return
        for start in range(0, len(data), PIECE):
            self._pieces.put((stream, data[start : start + PIECE]))
            if not self._drain_scheduled:
                # Set before the loop drains, cleared before it reads the queue: no piece is missed.
                self._drain_scheduled = True
                call_soon(self._loop, self._drain)

    def feed(self, stream: str, data: bytes) -> None:
        if self._capture is None:
            self._capture = Capture(on_data=self._publish)
        if self._budget is not None:
            self._keep_beginning(self._budget, data)
        if self._redactor:
            if stream not in self._redactors:
                self._redactors[stream] = StreamRedactor(self._redactor)
            data = self._redactors[stream].feed(data)
        self._capture.feed(stream, data)

    def text(self) -> str:
        """Return the output so far: head and tail, with a line that says how much is left out."""
        self._drain()
        self._flush_redactors()
        return "" if self._capture is None else self._capture.text()

    def emitted(self) -> Emitted:
        """Return the output so far, from its beginning, as far as it is kept."""
        self._drain()
        return Emitted(bytes(self._beginning or b""), self._left_out)

    async def hold(self, size: int) -> None:
        """Wait for memory for something else that the call holds until its end."""
        if self._budget is not None:
            await self._budget.wait(size)
            self._held += size

    def close(self) -> None:
        self._flush_redactors()
        if self._budget is not None:
            self._budget.give_back(self._held)
            # Later output is dropped.
            self._budget, self._beginning, self._held = None, None, 0
        if self._capture is not None:
            self._capture.close()

    def _keep_beginning(self, budget: MemoryBudget, data: bytes) -> None:
        """Keep the beginning of the output, without gaps."""
        if self._beginning is None:
            self._beginning = bytearray()
        fits = 0
        if not self._left_out:
            fits = budget.take(min(len(data), OUTPUT_LIMIT - len(self._beginning)))
            self._held += fits
            self._beginning += data if fits == len(data) else data[:fits]
        self._left_out += len(data) - fits

    def _flush_redactors(self) -> None:
        """Show what the redactors held back because it looked like the beginning of a secret."""
        for stream, redactor in self._redactors.items():
            if self._capture is not None:
                self._capture.feed(stream, redactor.end())

    def _drain(self) -> None:
        if self._pieces is None:
            return
        self._drain_scheduled = False
        while True:
            try:
                stream, data = self._pieces.get_nowait()
            except queue.Empty:
                return
            self.feed(stream, data)
