"""By when a call must be answered, and who else may end it."""

from __future__ import annotations

import time
from collections.abc import Callable

from keryx_tools._errors import ToolCancelledError, ToolTimeoutError, late


class Deadline:
    """Counts from when it is made. No seconds: for ever."""

    __slots__ = ("_at", "seconds", "tool")

    def __init__(self, tool: str, seconds: float | None) -> None:
        self.tool = tool
        self.seconds = seconds
        self._at = None if seconds is None else time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return self._at is not None and time.monotonic() >= self._at

    def left(self) -> float | None:
        """Seconds until then. `ToolTimeoutError` if it is over."""
        if self._at is None:
            return None
        left = self._at - time.monotonic()
        if left <= 0:
            raise self.over()
        return left

    def over(self) -> ToolTimeoutError:
        return late(self.tool, self.seconds or 0)


class Leash:
    """Lets one thread end what another waits for."""

    def __init__(self) -> None:
        self.pulled = False
        self.hang_up: Callable[[], None] | None = None

    def check(self, tool: str) -> None:
        """Raise if nobody waits for the call any more."""
        if self.pulled:
            raise ToolCancelledError(f"{tool}: the call was given up.", tool)

    def pull(self) -> None:
        self.pulled = True
        hang_up = self.hang_up
        if hang_up is not None:
            hang_up()
