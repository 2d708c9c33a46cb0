"""What a call emits while it runs: streamed on, and kept, bounded, as its partial result."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from typing import Final

from keryx.aio.capture import Capture
from keryx.aio.scope import call_soon, is_loop_thread
from keryx.engine.redaction import NO_SECRETS, Redactor, StreamRedactor
from keryx.ports.tool import Emitted

# A thread that emits faster than the loop reads waits once this many pieces are under way.
PIECES_UNDER_WAY: Final = 64
PIECE: Final = 65_536
# What a program gets of the output of one call. Who prints more can print into a file.
WHOLE: Final = 16 * 1024 * 1024
# What the calls that one call made may hold together, of output and of files.
MOST_HELD: Final = 64 * 1024 * 1024


class Room:
    """The memory that the calls of one container share. Changes on the loop only."""

    __slots__ = ("_freed", "_held", "_most")

    def __init__(self, most: int = MOST_HELD) -> None:
        self._most = most
        self._held = 0
        self._freed: asyncio.Event | None = None

    def take(self, size: int) -> int:
        """Take so many bytes, or as many as there are."""
        taken = max(0, min(size, self._most - self._held))
        self._held += taken
        return taken

    async def wait(self, size: int) -> None:
        """Take so many bytes, as soon as there are; a call alone gets whatever it needs."""
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
    """Takes text from the call's own thread or from the loop, and bytes from its processes.

    The capture changes on the loop only; a thread hands its pieces over through a bounded queue.
    Of a call that another one made, the beginning is kept whole, as long as there is room.
    """

    __slots__ = (
        "_capture",
        "_handed_over",
        "_held",
        "_left_out",
        "_loop",
        "_publish",
        "_redactor",
        "_redactors",
        "_room",
        "_under_way",
        "_whole",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        publish: Callable[[str, str], None],
        redactor: Redactor = NO_SECRETS,
        room: Room | None = None,
    ) -> None:
        self._loop = loop
        self._publish = publish
        self._redactor = redactor
        self._redactors: dict[str, StreamRedactor] = {}
        self._capture: Capture | None = None
        self._under_way: queue.Queue[tuple[str, bytes]] | None = None
        self._handed_over = False
        self._room = room
        self._whole: bytearray | None = None
        self._left_out = 0
        self._held = 0

    def accept_threads(self) -> None:
        """Make the queue, before the call's thread starts."""
        self._under_way = queue.Queue(PIECES_UNDER_WAY)

    def emit(self, stream: str, text: str) -> None:
        data = text.encode(errors="replace")
        if self._under_way is None or is_loop_thread(self._loop):
            self.feed(stream, data)
            return
        for start in range(0, len(data), PIECE):
            self._under_way.put((stream, data[start : start + PIECE]))
            if not self._handed_over:
                # Set before the loop drains and cleared before it looks, so no piece is forgotten.
                self._handed_over = True
                call_soon(self._loop, self._drain)

    def feed(self, stream: str, data: bytes) -> None:
        if self._capture is None:
            self._capture = Capture(on_data=self._publish)
        if self._room is not None:
            self._keep(self._room, data)
        if self._redactor:
            if stream not in self._redactors:
                self._redactors[stream] = StreamRedactor(self._redactor)
            data = self._redactors[stream].feed(data)
        self._capture.feed(stream, data)

    def text(self) -> str:
        """What was emitted so far: head and tail, with a line that says what is left out."""
        self._drain()
        self._let_go()
        return "" if self._capture is None else self._capture.text()

    def emitted(self) -> Emitted:
        """What was emitted so far, from the beginning, as far as it is kept."""
        self._drain()
        return Emitted(bytes(self._whole or b""), self._left_out)

    async def hold(self, size: int) -> None:
        """Wait for room for something else that the call keeps until its end."""
        if self._room is not None:
            await self._room.wait(size)
            self._held += size

    def close(self) -> None:
        self._let_go()
        if self._room is not None:
            self._room.give_back(self._held)
            # What comes now is for nobody.
            self._room, self._whole, self._held = None, None, 0
        if self._capture is not None:
            self._capture.close()

    def _keep(self, room: Room, data: bytes) -> None:
        """What is kept is the beginning, without a gap."""
        if self._whole is None:
            self._whole = bytearray()
        fits = 0
        if not self._left_out:
            fits = room.take(min(len(data), WHOLE - len(self._whole)))
            self._held += fits
            self._whole += data if fits == len(data) else data[:fits]
        self._left_out += len(data) - fits

    def _let_go(self) -> None:
        """Show what was held back because it looked like the beginning of a secret."""
        for stream, redactor in self._redactors.items():
            if self._capture is not None:
                self._capture.feed(stream, redactor.end())

    def _drain(self) -> None:
        if self._under_way is None:
            return
        self._handed_over = False
        while True:
            try:
                stream, data = self._under_way.get_nowait()
            except queue.Empty:
                return
            self.feed(stream, data)
