"""Parses server-sent events from a stream of bytes. It knows nothing of their meaning.

It returns only the data of an event: no model's API needs `event`, `id` or `retry`.
"""

from __future__ import annotations

from typing import Final

_BOM: Final = b"\xef\xbb\xbf"


class EventTooLargeError(ValueError):
    """One event is larger than any event of a model, or this is not an event stream."""


class SseParser:
    """Parses chunks of any size; the events do not depend on where the chunks are cut."""

    __slots__ = ("_after_cr", "_data", "_is_first", "_limit", "_line_parts", "_size")

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._line_parts: list[bytes] = []
        """The parts of the current line, joined once, so that a long line takes linear time."""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._is_first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of all events that this chunk completes."""
        if (start := self._start_of_one_event(chunk)) is not None:
            return [chunk[start:-2]]
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._buffer(chunk)
            return []
        if self._line_parts:
            self._line_parts.append(chunk)
            chunk = b"".join(self._line_parts)
            self._line_parts.clear()
        self._size = 0
        lines = chunk.split(b"\n")
        remainder = lines.pop()
        events = self._read_lines(lines)
        self._buffer(remainder)
        return events

    def _start_of_one_event(self, chunk: bytes) -> int | None:
        """Return where the data begins if the chunk is exactly one event, as most chunks are.

        It has one line of data, and at most the name of the event before it.
        """
        start = 6
        if not chunk.startswith(b"data: "):
            start = chunk.find(b"\ndata: ") + 7 if chunk.startswith(b"event:") else 6
            if start == 6:  # noqa: PLR2004 (neither)
                return None
        # The first end of a line after the data is the first of the two at the end of the chunk.
        if chunk.find(b"\n", start) != len(chunk) - 2 or not chunk.endswith(b"\n\n"):
            return None
        if self._line_parts or self._data or self._after_cr or self._is_first or b"\r" in chunk:
            return None
        return start

    def finish(self) -> list[bytes]:
        """Return the last event: some servers leave out the last empty line."""
        remainder = b"".join(self._line_parts)
        self._line_parts.clear()
        return self._read_lines([remainder, b""])

    def _buffer(self, part: bytes) -> None:
        if part:
            self._line_parts.append(part)
            self._size += len(part)
            if self._size > self._limit:
                raise EventTooLargeError(f"no line ended within {self._limit} bytes")

    def _read_lines(self, lines: list[bytes]) -> list[bytes]:
        if self._is_first:
            self._is_first = False
            lines[0] = lines[0].removeprefix(_BOM)
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b" ", 5) else line[5:])
            elif line == b"data":
                data.append(b"")
        return events
