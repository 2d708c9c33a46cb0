"""The search in the memories themselves, by their words: the provider that every memory has."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from keryx.events import RecalledMemory, Trust
from keryx.memory import deliveries, memories
from keryx.memory.memory_file import MemoryFile
from keryx.ports.memory import Delivery, Memory, MemoryScope, MemoryState

NAME: Final = "words"


class WordSearch:
    """A provider that stores nothing: it searches the file that all other providers follow."""

    def __init__(self, file: MemoryFile) -> None:
        self.name: Final = NAME
        self._file = file

    async def store(self, session_id: str, deliveries: Sequence[Delivery]) -> None:
        """Do nothing: the file has the items before any provider gets them."""

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        rows = await self._file.read(partial(memories.find, scope=scope, words=words, limit=limit))
        return [recalled(memory, NAME) for memory in rows]

    async def context(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        query = partial(memories.for_context, scope=scope, words=words, limit=limit)
        return [recalled(memory, NAME) for memory in await self._file.read(query)]

    async def remaining(self, items: Sequence[str]) -> Sequence[str]:
        rows = [await self._file.read(partial(memories.get, memory_id=item)) for item in items]
        return [memory.id for memory in rows if memory is not None]

    async def close(self) -> None:
        """Do nothing: the file belongs to the service."""


def recalled(memory: Memory, provider: str) -> RecalledMemory:
    """Return a memory as it is given to a model."""
    return RecalledMemory(
        memory_id=memory.id,
        text=memory.text,
        trust=memory.trust,
        provider=provider,
        session_id=memory.sources[0].session_id if memory.sources else "",
        at=memory.created_at,
    )


async def corrected(
    file: MemoryFile, recalled_memories: Sequence[RecalledMemory]
) -> tuple[RecalledMemory, ...]:
    """Return what is still true of what providers gave, with the trust that holds now.

    A provider may be behind: it may have what was removed or forgotten, or not know that a person
    confirmed it. What it has from elsewhere, nobody delivered to it.
    """
    keys = [(memory.memory_id, memory.provider) for memory in recalled_memories]
    current = await file.read(partial(_current, keys=keys)) if keys else {}
    memories_now: list[RecalledMemory] = []
    for memory in recalled_memories:
        trust, state = current.get(memory.memory_id, (memory.trust, "active"))
        if state == "active":
            memories_now.append(msgspec.structs.replace(memory, trust=trust))
    return tuple(memories_now)


def _current(
    connection: sqlite3.Connection, keys: Sequence[tuple[str, str]]
) -> dict[str, tuple[Trust, MemoryState]]:
    """Return the trust and the state of memories; one that is erased counts as removed."""
    current: dict[str, tuple[Trust, MemoryState]] = {}
    for memory_id, provider in keys:
        row = connection.execute(
            "SELECT trust, state FROM memories WHERE id = ?", (memory_id,)
        ).fetchone()
        if row is not None:
            current[memory_id] = row
        elif provider == NAME or deliveries.was_delivered(connection, provider, memory_id):
            current[memory_id] = ("page", "removed")
    return current
