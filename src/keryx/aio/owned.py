"""Resources that belong to one loop: created, used and closed on that loop.

An async client that is used on a loop other than its own hangs for ever. `Owned` gives every
loop its own client, keyed by the loop object and not by its `id()`: the entry keeps the loop
alive, so no new loop can get the same address. `Shared` is for blocking clients, which any
thread may use.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class _Entry(msgspec.Struct, Generic[T]):
    """One loop's resource. While `ready` is pending it is being created, and the list is empty."""

    ready: asyncio.Future[None]
    lifetime: AsyncGenerator[T, None]
    resource: list[T]


class Owned(Generic[T]):
    """One resource per loop.

    Each resource lives inside an async generator that its loop knows, so it is closed on its
    own loop when that loop is shut down properly (`run_loop`, `asyncio.run`), whoever ran it.
    The resource of a loop that was closed without that is dropped at the next use.
    """

    def __init__(
        self,
        make: Callable[[], Awaitable[T]],
        close: Callable[[T], Awaitable[object]],
        *,
        drop: Callable[[T], object] | None = None,
    ) -> None:
        self._make = make
        self._close = close
        self._drop = drop
        self._entries: dict[asyncio.AbstractEventLoop, _Entry[T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self) -> T:
        """Return the running loop's resource; simultaneous first users get the same one."""
        loop = asyncio.get_running_loop()
        while True:
            entry = self._entries.get(loop)
            if entry is None:
                return await self._open(loop)
            if entry.resource:
                return entry.resource[0]
            # Another task creates it. If that fails, that task gets the error and this one tries.
            await asyncio.shield(entry.ready)

    async def close(self) -> None:
        """Close the running loop's resource; the next `get` creates a new one."""
        loop = asyncio.get_running_loop()
        while (entry := self._entries.get(loop)) is not None and not entry.resource:
            await asyncio.shield(entry.ready)
        if entry is not None:
            # Removed first, so that of two tasks that close at once only one does.
            del self._entries[loop]
            await entry.lifetime.aclose()

    async def _open(self, loop: asyncio.AbstractEventLoop) -> T:
        self._drop_closed_loops()
        entry = _Entry[T](loop.create_future(), self._live(loop), [])
        self._entries[loop] = entry
        try:
            resource = await anext(entry.lifetime)
        except BaseException:  # also a cancel: the next caller must not wait for this one
            if self._entries.get(loop) is entry:
                del self._entries[loop]
            raise
        else:
            entry.resource.append(resource)
            return resource
        finally:
            entry.ready.set_result(None)

    async def _live(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[T, None]:
        resource = await self._make()
        try:
            yield resource
        finally:
            self._entries.pop(loop, None)
            await self._close(resource)

    def _drop_closed_loops(self) -> None:
        for loop in tuple(self._entries):
            if loop.is_closed():
                entry = self._entries.pop(loop, None)
                if entry is not None and entry.resource and self._drop is not None:
                    self._drop(entry.resource[0])


class Shared(Generic[T]):
    """One resource for the whole process, usable from any thread, created at the first use."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._resource: list[T] = []
        # Invariant: at most one thread is in `_make`. Held for that only, and never on an await.
        self._making = threading.Lock()  # noqa: TID251 (two threads may be first at the same time)

    def get(self) -> T:
        if not self._resource:
            with self._making:
                if not self._resource:
                    self._resource.append(self._make())
        return self._resource[0]
