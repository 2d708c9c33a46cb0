"""Output of any length in bounded memory: head and tail stay in memory, the middle goes to a file.

A `Capture` joins all streams of one child into one, in the order in which data arrives.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

HEAD: Final = 32 * 1024
TAIL: Final = 32 * 1024
# Enough for the log of a long build, and small against the disk of any machine.
SPILL_LIMIT: Final = 256 * 1024 * 1024

OnData = Callable[[str, str], None]


class OutputSink(Protocol):
    """Takes the output of a process or a tool as it arrives."""

    def feed(self, stream: str, data: bytes) -> None: ...


class Capture:
    """Keeps the first and the last bytes in memory, and the middle in the spill file if any."""

    def __init__(
        self,
        *,
        head: int = HEAD,
        tail: int = TAIL,
        spill: Path | None = None,
        spill_limit: int = SPILL_LIMIT,
        on_data: OnData | None = None,
    ) -> None:
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        # Holds up to twice its limit, so that each byte is moved a bounded number of times.
        self._tail = bytearray()
        self._overflowing = False
        self._spill = None if spill is None else _Spill(spill, spill_limit)
        self._on_data = on_data
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._total = 0
        self._closed = False

    @property
    def total(self) -> int:
        """The number of bytes that were fed."""
        return self._total

    @property
    def truncated(self) -> bool:
        """Whether the text lacks some of these bytes."""
        return self._total > len(self._head) + self._tail_limit

    def feed(self, stream: str, data: bytes) -> None:
        if self._closed:
            return
        self._total += len(data)
        self._keep(data)
        if self._on_data is not None:
            self._stream(stream, data, self._on_data)

    def text(self) -> str:
        """Return head and tail, with one line in place of the bytes that were left out."""
        self._trim()
        left_out = self._total - len(self._head) - len(self._tail)
        if not left_out:
            return (self._head + self._tail).decode(errors="replace")
        head = self._head.decode(errors="replace")
        if head and not head.endswith("\n"):
            head += "\n"
        where = "" if self._spill is None else self._spill.describe(left_out)
        tail = self._tail.decode(errors="replace")
        return f"{head}[... {left_out} bytes left out{where} ...]\n{tail}"

    def close(self) -> None:
        """End the output; data that is fed later is dropped."""
        if self._closed:
            return
        self._closed = True
        self._trim()
        if self._spill is not None:
            self._spill.close()
        if self._on_data is not None:
            for stream, decoder in self._decoders.items():
                text = decoder.decode(b"", final=True)
                if text:
                    self._on_data(stream, text)

    def _keep(self, data: bytes) -> None:
        if not self._overflowing:
            room = self._head_limit - len(self._head)
            self._head += data[:room]
            if len(data) <= room:
                return
            data = data[room:]
            self._overflowing = True
            self._tail += self._cut_off_head()
        self._tail += data
        if len(self._tail) > 2 * self._tail_limit:
            self._trim()

    def _cut_off_head(self) -> bytes:
        """Remove and return the bytes of a character that does not end inside the head."""
        cut = _unfinished(self._head)
        if not cut:
            return b""
        character_start = bytes(self._head[-cut:])
        del self._head[-cut:]
        return character_start

    def _trim(self) -> None:
        """Cut the tail to its limit, at the start of a character."""
        excess = len(self._tail) - self._tail_limit
        if excess <= 0:
            return
        for _ in range(_LONGEST - 1):
            if excess < len(self._tail) and self._tail[excess] & 0xC0 == _CONTINUATION:
                excess += 1
        if self._spill is not None:
            self._spill.write(memoryview(self._tail)[:excess])
        del self._tail[:excess]

    def _stream(self, stream: str, data: bytes, on_data: OnData) -> None:
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._decoders[stream] = decoder
        text = decoder.decode(data)
        if text:
            on_data(stream, text)


class _Spill:
    """The file for the middle: created when first needed, bounded; its errors stop nobody."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._fd: int | None = None
        self._written = 0
        self._error = ""

    def write(self, data: memoryview) -> None:
        room = self._limit - self._written
        try:
            if not self._error and room > 0:
                self._append(data[:room])
        except OSError as error:
            # A full disk must not stop the process whose output this is.
            self._error = error.strerror or str(error)
        finally:
            data.release()

    def _append(self, data: memoryview) -> None:
        # The one place that writes to a file on the loop: short writes into the page cache.
        if self._fd is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o600)
        while data:
            count = os.write(self._fd, data)
            self._written += count
            data = data[count:]

    def describe(self, left_out: int) -> str:
        if self._written >= left_out:
            return f"; they are in {self._path}"
        because = f": {self._error}" if self._error else ""
        return f"; the first {self._written} of them are in {self._path}{because}"

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


_LONGEST: Final = 4  # bytes of a character in UTF-8
_CONTINUATION: Final = 0x80
_FIRST_BYTES: Final = (0x00, 0xC0, 0xE0, 0xF0)  # from each on, a character has one more byte


def _unfinished(data: bytearray) -> int:
    """Return how many bytes at the end belong to a character that is not complete."""
    for back in range(1, min(_LONGEST, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 != _CONTINUATION:
            length = sum(byte >= first for first in _FIRST_BYTES)
            return back if length > back else 0
    return 0
