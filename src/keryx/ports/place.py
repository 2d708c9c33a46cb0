"""The interface of places: where a session's commands and files are.

A place is this machine, a container or another machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

import msgspec

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.errors import NobodyMustActError
from keryx.messages import NO_NEEDS, Needs


class NothingSharedError(NobodyMustActError):
    """The place and the host share no folder; they can only use stdin and stdout."""


class Exit(Protocol):
    """How a process ended: its exit code, or the signal that ended it."""

    @property
    def code(self) -> int | None: ...

    @property
    def signal(self) -> int | None: ...

    @property
    def cause(self) -> str:
        """Why the place ended it, for instance because it used too much memory."""
        ...


class Process(Protocol):
    """A child process and everything below it. Leaving the `async with` ends the whole tree."""

    @property
    def running(self) -> bool: ...

    async def wait(self) -> Exit: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    async def write(self, data: bytes) -> None: ...

    def close_stdin(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...


class PrivateFolder(msgspec.Struct, frozen=True):
    """A folder for temporary files of one session, with its path on both sides.

    Processes of the place also use it to reach the host: through a socket in the folder, or through
    files where sockets do not work (the folder of a virtual machine or of a network).
    """

    here: Path
    """The path for the host."""
    inside: str
    """The path for the processes of the place."""
    sockets: bool = True
    """Whether a process of the place can connect to a socket of the host in the folder."""


class Place(Protocol):
    """Starts processes. Cancelling the scope of a process ends its whole tree."""

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        scope: Scope | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
        granted: Needs = NO_NEEDS,
    ) -> Process:
        """Start a process; `granted` is what it may do beyond the session's confinement."""
        ...

    async def private(self) -> PrivateFolder:
        """Return a folder that only the host and this session's processes share.

        `NothingSharedError` if the place has none: then use stdin and stdout of a process.
        """
        ...
