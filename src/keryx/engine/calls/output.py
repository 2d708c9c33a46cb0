"""What a call emits while it runs: streamed on, and kept, bounded, as its partial result."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from typing import Final

from keryx.aio.capture import Capture
from keryx.aio.scope import call_soon, is_loop_thread
from keryx.engine.redaction import NO_SECRETS, Redactor, StreamRedactor

# A thread that emits faster than the loop reads waits once this many pieces are under way.
PIECES_UNDER_WAY: Final = 64
PIECE: Final = 65_536


class CallOutput:
    """Takes text from the call's own thread or from the loop, and bytes from its processes.

    The capture changes on the loop only; a thread hands its pieces over through a bounded queue.
    """

    __slots__ = (
        "_capture",
        "_handed_over",
        "_loop",
        "_publish",
        "_redactor",
        "_redactors",
        "_under_way",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        publish: Callable[[str, str], None],
        redactor: Redactor = NO_SECRETS,
    ) -> None:
        self._loop = loop
        self._publish = publish
        self._redactor = redactor
        self._redactors: dict[str, StreamRedactor] = {}
        self._capture: Capture | None = None
        self._under_way: queue.Queue[tuple[str, bytes]] | None = None
        self._handed_over = False

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

    def close(self) -> None:
        self._let_go()
        if self._capture is not None:
            self._capture.close()

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
