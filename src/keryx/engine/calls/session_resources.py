"""The resources of one session: created on first use, closed with the session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import msgspec

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.ports.resources import Closeable, ResourceContext

R = TypeVar("R", bound=Closeable)


class _Entry(msgspec.Struct, eq=False):
    """One resource, or the task that creates it."""

    scope: Scope
    creating: asyncio.Task[Any]


class SessionResources:
    """Creates each resource once, and closes all of them when the session is closed."""

    def __init__(self, session: Scope, on_error: Callable[[str, BaseException], None]) -> None:
        self._session = session
        self._on_error = on_error
        self._group: Group | None = None
        self._entries: dict[str, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def get(
        self,
        key: str,
        create: Callable[[ResourceContext], Awaitable[R]],
        context_for: Callable[[Scope], ResourceContext],
    ) -> R:
        """Return the resource; `context_for` returns what it can use, for its scope."""
        entry = self._entries.get(key)
        if entry is None:
            group = self._open_group()
            scope = group.scope.child(key)
            creating = group.start(self._create(key, scope, create(context_for(scope))), name=key)
            entry = self._entries[key] = _Entry(scope, creating)
        # One cancelled call must not end the creation that other calls wait for.
        return cast("R", await asyncio.shield(entry.creating))

    def _open_group(self) -> Group:
        if self._group is None:
            # The calls that wait for a resource get its error, so it is not reported here.
            scope = self._session.child("resources")
            self._group = Group(scope, on_error=lambda _name, _error: None)
        return self._group

    async def _create(self, key: str, scope: Scope, creation: Awaitable[R]) -> R:
        try:
            return await creation
        except BaseException:
            self._entries.pop(key, None)
            _end(scope, "the resource could not be created")
            raise

    async def drop(self, key: str) -> bool:
        """Close the resource; return whether there was one."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return False
        if not entry.creating.done():
            entry.creating.cancel()
            await asyncio.wait([entry.creating])
            if entry.creating.cancelled() or entry.creating.exception() is not None:
                return True
        try:
            await entry.creating.result().close()
        except Exception as error:  # noqa: BLE001 (a tool's own code: the others are closed all the same)
            self._on_error(f"resource {key}", error)
        _end(entry.scope, "the resource was dropped")
        return True

    async def close(self) -> None:
        """Close all resources."""
        if self._group is None:
            return
        for key in tuple(self._entries):
            await self.drop(key)
        await self._group.leave()
        self._group.scope.close()


def _end(scope: Scope, cause: str) -> None:
    """End what still runs for a resource."""
    scope.cancel("parent", by=cause)
    scope.close()
