"""Resources that belong to one loop: made there, used there, closed there.

An async client that is used on another loop than its own hangs for ever. `Owned` gives every
loop its own, keyed by the loop object itself: as long as the entry is here the loop is alive, so
no new loop can stand at its address. `Shared` is for blocking clients, which any thread may use.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class _Entry(msgspec.Struct, Generic[T]):
    """One loop's resource: being made while `ready` is pending, there once it is done."""

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
        """The running loop's resource; simultaneous first users get the same one."""
        loop = asyncio.get_running_loop()
        while True:
            entry = self._entries.get(loop)
            if entry is None:
                return await self._open(loop)
            if entry.resource:
                return entry.resource[0]
            # Someone is making it. If that fails, the error is theirs, and this one tries next.
            await asyncio.shield(entry.ready)

    async def close(self) -> None:
        """Close the running loop's resource; the next `get` makes a new one."""
        loop = asyncio.get_running_loop()
        while (entry := self._entries.get(loop)) is not None and not entry.resource:
            await asyncio.shield(entry.ready)
        if entry is not None:
            # Taken out first, so that of two who close at once only one does.
            del self._entries[loop]
            await entry.lifetime.aclose()

    async def _open(self, loop: asyncio.AbstractEventLoop) -> T:
        self._drop_closed_loops()
        entry = _Entry[T](loop.create_future(), self._live(loop), [])
        self._entries[loop] = entry
        try:
            resource = await anext(entry.lifetime)
        except BaseException:  # also a cancel: who comes next must not wait for this one
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
    """One resource for the whole process, usable from any thread, made at the first use."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        # Invariant: at most one thread is in `_make`. Held for that only, and never on an await.
        self._making = threading.Lock()  # noqa: TID251 (two threads may come first at once)

    def get(self) -> T:
        if not self._made:
            with self._making:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]
