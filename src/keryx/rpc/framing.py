"""Frames on a stream of bytes: a length of four bytes, the largest first, then that many bytes.

And what carries such a stream. It knows nothing of what is in a frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, Protocol

from keryx.errors import NobodyMustActError

_LENGTH: Final = struct.Struct(">I")
PREFIX: Final = _LENGTH.size
# More than any value that people pass around, and far from what a machine has in memory.
LARGEST_FRAME: Final = 256 * 1024 * 1024


class FrameError(NobodyMustActError):
    """The other side does not speak in frames, or in larger ones than are taken."""


def frame(data: bytes) -> bytes:
    """The data as one frame."""
    return _LENGTH.pack(len(data)) + data


class FrameReader:
    """Puts frames together from the pieces in which they come."""

    def __init__(self, largest: int = LARGEST_FRAME) -> None:
        self.largest = largest
        self._buffer = bytearray()
        self._needed = _LENGTH.size

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take a piece; hand out the frames that are whole now. `FrameError` if it cannot be one.

        The buffer is looked at only when it holds enough, so time grows linearly with size.
        """
        self._buffer += data
        if len(self._buffer) < self._needed:
            return
        at = 0
        while len(self._buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            if length > self.largest:
                raise FrameError(
                    f"a frame of {length} bytes is larger than the {self.largest} that are taken"
                )
            end = at + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            yield bytes(memoryview(self._buffer)[at + _LENGTH.size : end])
            at = end
        del self._buffer[:at]
        self._needed = self._wanted()

    def clear(self) -> None:
        """Forget what is half here."""
        self._buffer.clear()

    def _wanted(self) -> int:
        if len(self._buffer) < _LENGTH.size:
            return _LENGTH.size
        (length,) = _LENGTH.unpack_from(self._buffer)
        return _LENGTH.size + length


class Wire(Protocol):
    """What carries the bytes."""

    @property
    def unsent(self) -> int:
        """How many bytes wait because the other side does not take them."""
        ...

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        """Return once the other side keeps up."""
        ...

    def hold(self, *, held: bool) -> None:
        """Read nothing more for a while, if that is possible, or go on."""
        ...

    def close(self, *, linger: bool = False) -> None:
        """Send what waits, and close. To linger: also give the other side time to read it."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...

    async def wait_closed(self) -> None:
        """Return once it is closed; whoever does not read what was sent last is not waited for."""
        ...
