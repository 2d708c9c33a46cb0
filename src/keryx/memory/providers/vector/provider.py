"""The provider `vector`: stores memories and turns in an index, and finds them by their meaning.

What is stored is found by its words at once, and by its meaning as soon as it has a vector.
Without an embedding model the words are all that is searched.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Literal, cast

from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.events import RecalledMemory
from keryx.memory.memory_file import MemoryFile
from keryx.memory.providers.vector import index_tables
from keryx.memory.providers.vector.embedding import Embedding
from keryx.memory.providers.vector.index_tables import IndexedText, Part
from keryx.memory.providers.vector.matrices import Matrices
from keryx.memory.providers.vector.result_order import ordered
from keryx.ports.embedder import Embedder
from keryx.ports.memory import Delivery, Memory, MemoryScope, TurnMatch, Withdrawal

NAME: Final = "vector"
FILE: Final = "vectors.db"
"""The file of the index in the home."""
# In `benchmarks/remembering.py` all notes are more alike to their questions than the first number,
# and one of six is less alike than the second, which lets an eighth as many wrong ones through.
MIN_LIKENESS: Final = 0.2
MIN_LIKENESS_GIVEN: Final = 0.3
"""For what a model is given without having asked for it."""
_LABELS: Final = {"memory": "", "user": "The user said: ", "assistant": "The assistant answered: "}


class VectorProvider:
    """The index of one home. Belongs to the host's loop."""

    def __init__(
        self,
        file: MemoryFile,
        scope: Scope,
        bridge: Bridge,
        *,
        embedder: Embedder | None,
        report: Callable[[str, BaseException], None],
        memories: Callable[[], Awaitable[Sequence[Memory]]] | None = None,
    ) -> None:
        """The file has the tables of `index_tables.INDEX`, and is closed with the provider.

        `memories` returns all memories that there are, for a new file.
        """
        self.name: Final = NAME
        self._file = file
        self._scope = scope
        self._bridge = bridge
        self._embedder = embedder
        self._report = report
        self._memories = memories
        self._matrices = Matrices()
        self._group: Group | None = None
        self._embedding: Embedding | None = None
        self._opening: asyncio.Task[Exception | None] | None = None

    async def store(self, session_id: str, deliveries: Sequence[Delivery]) -> None:
        """Store the items by their ids. Equal ids are one item, however often it comes."""
        del session_id  # the items say it
        await self._open()
        items = [delivery.item for delivery in deliveries]
        await self._file.write(partial(index_tables.apply, items=items))
        if any(isinstance(item, Withdrawal) and item.erase for item in items):
            await self._file.purge()
        if self._embedding is not None:
            self._embedding.wake()

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        """Return memories and what was said in turns."""
        return [_recalled(text) for text in await self._find(scope, words, limit, "all")]

    async def context(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        """Return memories. What was said in turns is given only to who asks for it."""
        texts = await self._find(scope, words, limit, "memories", MIN_LIKENESS_GIVEN)
        return [_recalled(text) for text in texts]

    async def search_turns(self, scope: MemoryScope, words: str, limit: int) -> Sequence[TurnMatch]:
        """Return what was said in turns, by its meaning alone: others search by words."""
        texts = await self._find(scope, words, limit, "turns", with_words=False)
        return [
            TurnMatch(
                id=text.id,
                turn_id=text.turn_id or "",
                session_id=text.session_id,
                by=cast("Literal['user', 'assistant']", text.kind),
                text=text.text,
                at=text.at,
            )
            for text in texts
        ]

    async def remaining(self, items: Sequence[str]) -> Sequence[str]:
        return await self._file.read(partial(index_tables.remaining, items=items))

    async def wait_indexed(self) -> None:
        """Wait until everything that is stored can be found by its meaning."""
        await self._open()
        if self._embedding is not None:
            await self._embedding.wait_done()

    async def close(self) -> None:
        if self._group is not None:
            await self._group.leave()
            self._group.scope.close()
        await self._file.close()

    # -- the first use

    async def _open(self) -> None:
        """Fill a new file with all memories, and go on with texts that wait for their vectors."""
        if self._group is None:
            self._group = Group(self._scope.child("vectors"), on_error=self._report)
        if self._opening is None:
            self._opening = self._group.start(self._fill(self._group), name="open the index")
        error = await asyncio.shield(self._opening)
        if error is not None:
            self._opening = None
            raise error

    async def _fill(self, group: Group) -> Exception | None:
        """Return an error instead of raising it: it belongs to those who wait."""
        try:
            is_filled = await self._file.read(index_tables.is_filled)
            if self._memories is not None and not is_filled:
                memories = await self._memories()
                await self._file.write(partial(index_tables.fill, memories=memories))
        except Exception as error:  # noqa: BLE001 (those who wait get it)
            return error
        if self._embedder is not None:
            self._embedding = Embedding(
                self._embedder, self._file, self._bridge, group, self._report
            )
            self._embedding.wake()
        return None

    # -- searching

    async def _find(
        self,
        scope: MemoryScope,
        words: str,
        limit: int,
        part: Part,
        likeness: float = MIN_LIKENESS,
        *,
        with_words: bool = True,
    ) -> list[IndexedText]:
        if not words.strip() or not scope.profile or limit < 1:
            return []
        await self._open()
        vector, model = None, None
        if self._embedding is not None:
            vector, model = await self._embedding.vector(words), await self._embedding.model()

        def search(connection: sqlite3.Connection) -> list[IndexedText]:
            near: list[int] = []
            if vector is not None and model is not None:
                pairs = self._matrices.nearest(connection, model, scope, vector, limit, part)
                near = [no for score, no in pairs if score >= likeness]
            by_words: list[int] = []
            if with_words:
                by_words = index_tables.find_words(
                    connection, scope, words, limit, part, or_newest=vector is None
                )
            return index_tables.get(connection, scope, ordered(near, by_words, limit))

        return await self._file.read(search)


def _recalled(text: IndexedText) -> RecalledMemory:
    return RecalledMemory(
        memory_id=text.id,
        text=_LABELS[text.kind] + text.text,
        trust=text.trust,
        provider=NAME,
        session_id=text.session_id,
        at=text.at,
    )
