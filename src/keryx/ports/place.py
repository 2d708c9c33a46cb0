"""Where a session's commands and files live: this machine, a container, another machine."""

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
    """This place and the host have no folder in common; only stdin and stdout lead there."""


class Exit(Protocol):
    """How a process ended: a code, or the signal that ended it."""

    @property
    def code(self) -> int | None: ...

    @property
    def signal(self) -> int | None: ...

    @property
    def cause(self) -> str:
        """Why it was ended by its place, for instance that it used too much memory."""
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
    """A folder for one session's passing files, seen from both sides.

    It is also how processes of the place reach the host: by a socket in it, or where sockets do not
    lead from one side to the other (a folder of a virtual machine, of a network) by files.
    """

    here: Path
    """For the host."""
    inside: str
    """For the processes of the place."""
    sockets: bool = True
    """Whether a process there can connect to a socket that the host has in it."""


class Place(Protocol):
    """Starts processes; cancelling the scope ends the whole tree of one."""

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
        """A folder that the host and this session's processes share, and nobody else.

        `NothingSharedError` where there is none: then a process is reached by its stdin and stdout.
        """
        ...
