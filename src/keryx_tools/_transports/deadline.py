"""The deadline of a call, and how another thread may stop it."""

from __future__ import annotations

import time
from collections.abc import Callable

from keryx_tools._errors import ToolCancelledError, ToolTimeoutError, timeout_error


class Deadline:
    """A deadline that starts when it is created. None: wait for ever."""

    __slots__ = ("_at", "seconds", "tool")

    def __init__(self, tool: str, seconds: float | None) -> None:
        self.tool = tool
        self.seconds = seconds
        self._at = None if seconds is None else time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return self._at is not None and time.monotonic() >= self._at

    def remaining(self) -> float | None:
        """Return the seconds that remain; raise `ToolTimeoutError` if none do."""
        if self._at is None:
            return None
        remaining = self._at - time.monotonic()
        if remaining <= 0:
            raise self.timeout_error()
        return remaining

    def timeout_error(self) -> ToolTimeoutError:
        return timeout_error(self.tool, self.seconds or 0)


class CallStopper:
    """Lets one thread stop the calls of another."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.hang_up: Callable[[], None] | None = None

    def check(self, tool: str) -> None:
        """Raise `ToolCancelledError` if the calls were stopped."""
        if self.is_stopped:
            raise ToolCancelledError(f"{tool}: the call was given up.", tool)

    def stop(self) -> None:
        self.is_stopped = True
        hang_up = self.hang_up
        if hang_up is not None:
            hang_up()
