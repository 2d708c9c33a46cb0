"""Server-sent events, parsed from bytes as they come. It knows nothing of what they mean.

Only the data of an event is given out: no model's API says in `event`, `id` or `retry` what its
data does not say too.
"""

from __future__ import annotations

from typing import Final

_BOM: Final = b"\xef\xbb\xbf"


class EventTooLargeError(ValueError):
    """One event is larger than any that a model sends, or it is no event stream at all."""


class SseParser:
    """Feed it what the socket gave, in pieces of any size; the events do not depend on the cuts."""

    __slots__ = ("_after_cr", "_data", "_is_first", "_limit", "_parts", "_size")

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        """The line that has not ended yet. Joined once, so that a long one costs linear time."""
        self._data: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._is_first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of all events that this chunk completes."""
        if self._is_one_event(chunk):
            return [chunk[6:-2]]
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._hold(chunk)
            return []
        if self._parts:
            self._parts.append(chunk)
            chunk = b"".join(self._parts)
            self._parts.clear()
        self._size = 0
        lines = chunk.split(b"\n")
        rest = lines.pop()
        events = self._take(lines)
        self._hold(rest)
        return events

    def _is_one_event(self, chunk: bytes) -> bool:
        """Whether this is what most chunks are: one event of one line, and nothing before it."""
        return (
            chunk.startswith(b"data: ")
            and chunk.endswith(b"\n\n")
            and chunk.count(b"\n") == 2  # noqa: PLR2004 (those at its end)
            and b"\r" not in chunk
            and not (self._parts or self._data or self._after_cr or self._is_first)
        )

    def finish(self) -> list[bytes]:
        """What the end completes: some servers leave out the last empty line."""
        rest = b"".join(self._parts)
        self._parts.clear()
        return self._take([rest, b""])

    def _hold(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
            self._size += len(part)
            if self._size > self._limit:
                raise EventTooLargeError(f"no line ended within {self._limit} bytes")

    def _take(self, lines: list[bytes]) -> list[bytes]:
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
