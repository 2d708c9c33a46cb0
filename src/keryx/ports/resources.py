"""The interface of session resources: objects of tools that live as long as their session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.ports.place import Process


class Closeable(Protocol):
    """A resource. Its `close` is called once, when it is dropped or its session is closed."""

    async def close(self) -> None: ...


R = TypeVar("R", bound=Closeable)


class ResourceContext(Protocol):
    """What a resource can use while it lives."""

    @property
    def scope(self) -> Scope:
        """Is cancelled when the resource is dropped or its session is closed."""
        ...

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
    ) -> Process:
        """Start a process in the session's place; it ends with the resource.

        It may do what the call that creates the resource may do.
        """
        ...


class Resources(Protocol):
    """The resources of one session, by key."""

    async def get(self, key: str, create: Callable[[ResourceContext], Awaitable[R]]) -> R:
        """Return the resource; the first call creates it. Calls at the same time share it.

        Creating goes on if the call that waits for it is cancelled. If it fails, every call that
        waits gets the error, and the next call tries again.
        """
        ...

    async def drop(self, key: str) -> bool:
        """Close the resource; return whether there was one."""
        ...
