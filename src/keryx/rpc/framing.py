"""Frames on a stream of bytes: a length in four bytes (big-endian), then that many bytes.

`Wire` is the protocol of what carries such a stream. It knows nothing of what is in a frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, Protocol

from keryx.errors import NobodyMustActError

_LENGTH: Final = struct.Struct(">I")
PREFIX: Final = _LENGTH.size
# More than any value that people pass around, and much less than a machine's memory.
LARGEST_FRAME: Final = 256 * 1024 * 1024


class FrameError(NobodyMustActError):
    """The other side sends no frames, or frames that are too large."""


def frame(data: bytes) -> bytes:
    """Return the data as one frame."""
    return _LENGTH.pack(len(data)) + data


class FrameReader:
    """Puts frames together from the pieces in which they arrive."""

    def __init__(self, largest: int = LARGEST_FRAME) -> None:
        self.largest = largest
        self._buffer = bytearray()
        self._needed = _LENGTH.size

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add a piece, and yield the frames that are complete; raise `FrameError` if too large.

        The buffer is read only when it holds a whole frame, so time grows linearly with size.
        """
        self._buffer += data
        if len(self._buffer) < self._needed:
            return
        at = 0
        while len(self._buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            if length > self.largest:
                raise FrameError(
                    f"a frame of {length} bytes is larger than the {self.largest} that are allowed"
                )
            end = at + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            yield bytes(memoryview(self._buffer)[at + _LENGTH.size : end])
            at = end
        del self._buffer[:at]
        self._needed = self._next_size()

    def clear(self) -> None:
        """Forget an unfinished frame."""
        self._buffer.clear()

    def _next_size(self) -> int:
        if len(self._buffer) < _LENGTH.size:
            return _LENGTH.size
        (length,) = _LENGTH.unpack_from(self._buffer)
        return _LENGTH.size + length


class Wire(Protocol):
    """What carries the bytes of a connection."""

    @property
    def unsent(self) -> int:
        """The number of bytes that wait because the other side does not read them."""
        ...

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        """Return once the other side has read enough."""
        ...

    def set_reading_paused(self, *, paused: bool) -> None:
        """Pause reading, if that is possible, or resume it."""
        ...

    def close(self, *, linger: bool = False) -> None:
        """Send what waits, and close. With `linger`, give the other side time to read it."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...

    async def wait_closed(self) -> None:
        """Return once it is closed, without waiting for a side that does not read."""
        ...
