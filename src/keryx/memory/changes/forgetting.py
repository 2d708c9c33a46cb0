"""Erases memories: here, in all that follows from them, and at every provider."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from keryx.aio.clock import Clock
from keryx.ids import new_id
from keryx.memory import deliveries, intake, memories
from keryx.memory.changes import curation, put_aside, undoing
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
        return await self._erase(partial(_only_from, session_id=session_id), session_id)

    async def _erase(
        self, choose: Callable[[sqlite3.Connection], Sequence[str]], session_id: str
    ) -> Forgotten:
        erased = await self._file.write(
            partial(self._erase_here, choose=choose, session_id=session_id)
        )
        if erased:
            await self._file.purge()
        await self._deliver()
        # A provider may have more of a session than its memories: what was said in it.
        items = [*erased, session_id] if session_id else erased
        return Forgotten(erased=tuple(erased), remaining=await self._remaining(items))

    def _erase_here(
        self,
        connection: sqlite3.Connection,
        choose: Callable[[sqlite3.Connection], Sequence[str]],
        session_id: str,
    ) -> list[str]:
        chosen = list(choose(connection))
        if session_id:
            put_aside.drop_notes(connection, session_id)
            deliveries.withdraw_turns(connection, session_id)
        # A merged memory says what the erased one said; the others that went into it are back.
        merges = undoing.merges_of(connection, chosen)
        gone, restored = undoing.undo(connection, merges)
        # What a deleted session replaced was taught by others: it stays readable.
        erased = memories.erase(connection, [*chosen, *gone], with_replaced=not session_id)
        # The id of a session stands for its turns.
        items = {**erased, session_id: session_id} if session_id else erased
        if items:
            providers = [deliverer.provider.name for deliverer in self._deliverers]
            key, now = new_id("erase"), self._clock.wall()
            curation.end_at_providers(connection, items, providers, key, now, erase=True)
            back = [name for name in restored if name not in erased]
            intake.restore_in_order(connection, back, providers, key, now)
        return list(erased)

    async def _remaining(self, items: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Ask every provider what it still has; one that does not answer may have all of it.

        One that is left out, or not configured any more, is not asked: it has all that it got.
        """
        remaining = await self._file.read(partial(self._of_others, items=items))
        for deliverer in self._answering():
            try:
                async with asyncio.timeout(self._budget):
                    left = tuple(await deliverer.provider.remaining(items))
            except Exception:  # noqa: BLE001 (whatever failed, nobody knows)
                left = tuple(items)
            if left:
                remaining[deliverer.provider.name] = left
        return remaining

    def _answering(self) -> list[Deliverer]:
        return [deliverer for deliverer in self._deliverers if deliverer.left_out is None]

    def _of_others(
        self, connection: sqlite3.Connection, items: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        answering = [deliverer.provider.name for deliverer in self._answering()]
        others = [name for name in deliveries.registered(connection) if name not in answering]
        delivered = {
            name: tuple(i for i in items if deliveries.was_delivered(connection, name, i))
            for name in others
        }
        return {name: ids for name, ids in delivered.items() if ids}


def _only_from(connection: sqlite3.Connection, session_id: str) -> list[str]:
    """Return the memories whose only source is this session, and drop it as a source of others."""
    rows = connection.execute(
        "SELECT memory FROM sources WHERE session_id = ?1 AND NOT EXISTS (SELECT 1 FROM sources"
        " AS other WHERE other.memory = sources.memory AND other.session_id != ?1)",
        (session_id,),
    ).fetchall()
    ids = [memory_id for (memory_id,) in rows]
    connection.execute("DELETE FROM sources WHERE session_id = ?", (session_id,))
    return list(dict.fromkeys(ids))
