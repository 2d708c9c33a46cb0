"""The seam for processes that outlive the call that started them, and end with their session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from keryx.ports.place import Exit


class BackgroundProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One background process."""

    name: str
    command: str
    running_for: float
    """Seconds; for one that has ended, how long it ran."""
    ended: Exit | None
    lost: str = ""
    """Why its end is unknown, if it is."""


class Printed(msgspec.Struct, frozen=True):
    """A piece of a process's output, and where to read on."""

    data: bytes
    """Whole characters, as far as it is UTF-8."""
    next: int
    left_out: int
    """Bytes between the place that was asked for and these, which are kept no more."""


class Background(Protocol):
    """The background processes of one session. Refuses names that it does not know."""

    async def start(self, argv: Sequence[str], *, command: str, cwd: str | None = None) -> str:
        """Start one, in the session's place and environment; returns its name."""
        ...

    def processes(self) -> list[BackgroundProcess]:
        """Return all processes, also those that have ended."""
        ...

    def read(self, name: str, *, after: int = 0) -> Printed: ...

    async def write(self, name: str, text: str) -> None: ...

    async def wait(self, name: str, seconds: float) -> BackgroundProcess:
        """Return once the process has ended, or after that time."""
        ...

    async def kill(self, name: str) -> BackgroundProcess:
        """End the process and its whole tree."""
        ...
