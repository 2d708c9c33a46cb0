"""What ripgrep prints, collected up to a limit. It refuses to know how matches are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from keryx.errors import ToolFailedError

MAX_ERRORS: Final = 4_000
"""The most bytes that are collected of ripgrep's error messages."""


class RipgrepOutput:
    """Collects the output of one run, and stops the process when there is enough."""

    def __init__(self, marker: bytes, max_matches: int | None, max_bytes: int) -> None:
        """`marker` is in the output once for each match."""
        self._marker = marker
        self._max_matches = max_matches
        self._max_bytes = max_bytes
        self._count = 0
        self._stop: Callable[[], None] | None = None
        self._errors = bytearray()
        self.data = bytearray()
        self.full = False
        self.failed = False

    def stop_when_full(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self.full:
            stop()

    def feed(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._errors += data[: MAX_ERRORS - len(self._errors)]
            return
        if self.full:
            return
        self.data += data
        self._count += data.count(self._marker)
        # One match more than the limit shows that there are more.
        is_past_limit = self._max_matches is not None and self._count > self._max_matches
        if is_past_limit or len(self.data) > self._max_bytes:
            self.full = True
            del self.data[self._max_bytes :]
            if self._stop is not None:
                self._stop()

    def errors(self) -> str:
        """Return ripgrep's error messages; raise `ToolFailedError` if it could not search."""
        errors = self._errors.decode(errors="replace").strip()
        if self.failed and not self.data:
            raise ToolFailedError(f"ripgrep could not search: {errors}")
        return errors
