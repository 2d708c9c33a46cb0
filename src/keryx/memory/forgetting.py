"""Erases memories: here, in all that follows from them, and at every provider."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from keryx.aio.clock import Clock
from keryx.ids import new_id
from keryx.memory import curation, memories
from keryx.memory.deliverer import Deliverer
from keryx.memory.memory_file import MemoryFile


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased, and what providers still have, or may have, until they are reached."""

    erased: tuple[str, ...]
    remaining: dict[str, tuple[str, ...]]


class Forgetting:
    """Erases memories, and reports what remains where. Belongs to the host's loop."""

    def __init__(
        self,
        file: MemoryFile,
        deliverers: Sequence[Deliverer],
        clock: Clock,
        budget: float,
        deliver: Callable[[], Awaitable[None]],
    ) -> None:
        """`budget`: the seconds that a provider is waited for. `deliver` lets all be delivered."""
        self._file = file
        self._deliverers = deliverers
        self._deliver = deliver
        self._clock = clock
        self._budget = budget

    async def forget(self, ids: Sequence[str]) -> Forgotten:
        return await self._erase(lambda _connection: ids, "")

    async def forget_session(self, session_id: str) -> Forgotten:
        return await self._erase(partial(memories.only_from, session_id=session_id), session_id)

    async def _erase(
        self, choose: Callable[[sqlite3.Connection], Sequence[str]], session_id: str
    ) -> Forgotten:
        erased = await self._file.write(
            partial(self._erase_here, choose=choose, session_id=session_id)
        )
        if erased:
            await self._file.purge()
        await self._deliver()
        return Forgotten(erased=tuple(erased), remaining=await self._remaining(erased))

    def _erase_here(
        self,
        connection: sqlite3.Connection,
        choose: Callable[[sqlite3.Connection], Sequence[str]],
        session_id: str,
    ) -> list[str]:
        erased = memories.erase(connection, choose(connection))
        # The id of a session stands for its turns.
        items = {**erased, session_id: session_id} if session_id else erased
        if items:
            providers = [deliverer.provider.name for deliverer in self._deliverers]
            now = self._clock.wall()
            curation.end_at_providers(
                connection, items, providers, new_id("erase"), now, erase=True
            )
        return list(erased)

    async def _remaining(self, erased: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Ask every provider what it still has; one that does not answer may have all of it."""
        remaining: dict[str, tuple[str, ...]] = {}
        for deliverer in self._deliverers:
            try:
                async with asyncio.timeout(self._budget):
                    left = tuple(await deliverer.provider.remaining(erased))
            except Exception:  # noqa: BLE001 (whatever failed, nobody knows)
                left = tuple(erased)
            if left:
                remaining[deliverer.provider.name] = left
        return remaining
