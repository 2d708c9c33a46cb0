"""The interface of background processes: they outlive their call and end with their session."""

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
    """A piece of a process's output, and the offset of the next piece."""

    data: bytes
    """If it is UTF-8, it ends at the end of a character."""
    next: int
    left_out: int
    """The number of bytes between the requested offset and these that are no longer stored."""


class Background(Protocol):
    """The background processes of one session. Unknown names raise an error."""

    async def start(self, argv: Sequence[str], *, command: str, cwd: str | None = None) -> str:
        """Start a process in the session's place and environment; returns its name."""
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
