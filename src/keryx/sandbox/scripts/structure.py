"""How many values a JSON text holds, and how many the calls of a run may hold together.

Text costs as much memory as it has bytes; a value costs memory by itself, and three bytes can be
one. So the values are counted before anything is made of them. It knows nothing of tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

# At most some 100 bytes each. Whoever passes more at once should pass a file.
MOST_VALUES: Final = 1_000_000
# Bytes of a text that is too short to be worth counting.
UNCOUNTED: Final = 1024

# Before each value comes one of these, and after each name of one the last.
_MARKS: Final = (b",", b"[", b"{", b":")
_PIECE: Final = 65_536


def values_in(text: memoryview, most: int = MOST_VALUES) -> int:
    """No less than there are in this JSON; some number above the most if there are more."""
    found, start, quoted = 1, 0, False
    while start < len(text) and found <= most:
        piece = bytes(text[start : start + _PIECE])
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = bytes(text[start : start + len(piece) + 1])  # with what is escaped
        start += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        plain = b"".join(parts[quoted::2])
        found += sum(plain.count(mark) for mark in _MARKS)
        quoted ^= len(parts) % 2 == 0
    return found


class Allowance:
    """What all calls of one run may hold at a time. Those that would hold more wait."""

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self._held = 0
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def holding(self, count: int) -> AsyncGenerator[None]:
        """Alone, a call may hold whatever it has."""
        while self._held and self._held + count > self._most:
            await self._freed.wait()
        self._held += count
        try:
            yield
        finally:
            self._held -= count
            self._freed.set()
            self._freed = asyncio.Event()
