"""Counts the values of a JSON text, and limits how many the calls of a run may hold together.

A text costs as much memory as it has bytes. A decoded value costs far more, and three bytes can be
a value. So values are counted before the text is decoded. This module knows nothing of tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

# Each takes some 100 bytes at most. A script that passes more at once should pass a file.
MOST_VALUES: Final = 1_000_000
# Bytes of a text that is too short to be worth counting.
UNCOUNTED: Final = 1024

# One of these is before each value; after each key of an object is the last one.
_MARKS: Final = (b",", b"[", b"{", b":")
_PIECE: Final = 65_536


def values_in(text: memoryview, most: int = MOST_VALUES) -> int:
    """Return an upper bound of the values in this JSON; counting stops above `most`."""
    count, start, quoted = 1, 0, False
    while start < len(text) and count <= most:
        piece = bytes(text[start : start + _PIECE])
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = bytes(text[start : start + len(piece) + 1])  # with the escaped character
        start += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        plain = b"".join(parts[quoted::2])
        count += sum(plain.count(mark) for mark in _MARKS)
        quoted ^= len(parts) % 2 == 0
    return count


class ValueBudget:
    """The values that all calls of one run may hold at a time. Calls beyond it wait."""

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self._held = 0
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def reserve(self, count: int) -> AsyncGenerator[None]:
        """Hold so many values; wait while others leave no room. A single call always may."""
        while self._held and self._held + count > self._most:
            await self._freed.wait()
        self._held += count
        try:
            yield
        finally:
            self._held -= count
            self._freed.set()
            self._freed = asyncio.Event()
