"""Gives texts their vectors in the background, and questions theirs at once.

The model is loaded when the first text or question needs it, in a thread, once. If that fails, the
search goes on by words alone, and the reason is reported once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.aio.group import Group
from keryx.errors import StoreError
from keryx.memory.memory_file import MemoryFile
from keryx.memory.providers.vector import index_tables
from keryx.ports.embedder import Embedder

# Long texts take a tenth of a second each; a thread that cannot be interrupted should end soon.
BATCH: Final = 8
# Of a longer text or question the model would read the begin alone.
MAX_CHARACTERS: Final = 4_000


class Embedding:
    """The only user of an embedder. Belongs to one loop."""

    def __init__(
        self,
        embedder: Embedder,
        file: MemoryFile,
        bridge: Bridge,
        group: Group,
        report: Callable[[str, BaseException], None],
    ) -> None:
        self._embedder = embedder
        self._file = file
        self._bridge = bridge
        self._group = group
        self._report = report
        self._loading: asyncio.Task[int | StoreError | None] | None = None
        self._working: asyncio.Task[None] | None = None
        self._is_behind = False

    async def model(self) -> int | None:
        """Return the number of the model in the file, once it is loaded; None: it is unusable.

        A file that cannot be written is an error of this use alone.
        """
        if self._loading is None:
            self._loading = self._group.start(self._load(), name="load the embedding model")
        loading = self._loading
        number = await asyncio.shield(loading)
        if isinstance(number, StoreError):
            if self._loading is loading:
                self._loading = None
            raise number
        return number

    async def vector(self, words: str) -> bytes | None:
        """Return the vector of a question; None: search by words."""
        if await self.model() is None:
            return None
        try:
            (vector,) = await self._bridge.to_thread(self._embed, [words])
        except Exception as error:  # noqa: BLE001 (a native library may raise anything)
            self._report("embed a question", error)
            return None
        return vector

    def wake(self) -> None:
        """Give vectors to the texts that wait for one; they are in the file already."""
        self._is_behind = True
        if self._working is None and not self._group.scope.is_cancelled:
            self._working = self._group.start(self._work(), name="embed texts")

    async def wait_done(self) -> None:
        """Wait until no text waits for its vector."""
        while self._working is not None:
            await asyncio.shield(self._working)

    async def _load(self) -> int | StoreError | None:
        """Return an error of the file instead of raising it: it belongs to those who wait."""
        try:
            await self._bridge.to_thread(self._embed, [""])
        except Exception as error:  # noqa: BLE001 (a native library may raise anything)
            self._report("load the embedding model", error)
            return None
        try:
            return await self._file.write(partial(index_tables.use_model, embedder=self._embedder))
        except StoreError as error:
            return error

    async def _work(self) -> None:
        try:
            model = await self.model()
            while model is not None and self._is_behind:
                self._is_behind = False
                while rows := await self._file.read(partial(index_tables.waiting, limit=BATCH)):
                    await self._embed_rows(model, rows)
        finally:
            self._working = None

    async def _embed_rows(self, model: int, rows: Sequence[tuple[int, str]]) -> None:
        try:
            vectors = await self._bridge.to_thread(self._embed, [text for _, text in rows])
        except Exception as error:  # noqa: BLE001 (a native library may raise anything)
            self._report("embed texts", error)
            failed = [no for no, _ in rows]
            await self._file.write(partial(index_tables.set_failed, numbers=failed))
            return
        pairs = [(no, vector) for (no, _), vector in zip(rows, vectors, strict=True)]
        await self._file.write(partial(index_tables.put_vectors, model=model, vectors=pairs))

    def _embed(self, texts: Sequence[str]) -> list[bytes]:
        """Embed texts, in a thread; a vector of a wrong size would be of no use."""
        vectors = self._embedder.embed([text[:MAX_CHARACTERS] for text in texts])
        size = 4 * self._embedder.dimension
        if len(vectors) != len(texts) or any(len(vector) != size for vector in vectors):
            raise ValueError(
                f"the model {self._embedder.name} returned vectors of another number or size than "
                f"{len(texts)} of {self._embedder.dimension}"
            )
        return vectors
