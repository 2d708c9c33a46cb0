"""The search in the memories themselves, by their words: the provider that every memory has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from keryx.events import RecalledMemory
from keryx.memory import memories
from keryx.memory.memory_file import MemoryFile
from keryx.ports.memory import Delivery, Memory, MemoryScope

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
