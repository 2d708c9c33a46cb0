"""Opens the provider `vector` over a file, as a host does, and fails if it reports an error."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.memory.memory_file import MemoryFile
from keryx.memory.providers.vector.index_tables import INDEX
from keryx.memory.providers.vector.minilm import MiniLM
from keryx.memory.providers.vector.provider import FILE, VectorProvider
from keryx.ports.embedder import Embedder
from keryx.ports.memory import Memory

EMBEDDERS: Final[dict[str, Embedder | None]] = {"minilm": MiniLM(), "none": None}
"""The model is loaded once for all tests of a process."""


class VectorIndex:
    """A file of the index, which can be opened again and again."""

    def __init__(self, folder: Path, bridge: Bridge, scope: Scope, embedder: Embedder | None):
        self.path = folder / FILE
        self.bridge = bridge
        self.errors: list[str] = []
        self._scope = scope
        self._embedder = embedder

    def open(
        self,
        embedder: Embedder | None = None,
        memories: Callable[[], Awaitable[Sequence[Memory]]] | None = None,
    ) -> VectorProvider:
        return VectorProvider(
            MemoryFile(self.path, self.bridge, INDEX),
            self._scope,
            self.bridge,
            embedder=embedder or self._embedder,
            report=lambda name, error: self.errors.append(f"{name}: {error}"),
            memories=memories,
        )


@asynccontextmanager
async def vector_index(folder: Path, embedder: Embedder | None) -> AsyncGenerator[VectorIndex]:
    scope = Scope("test")
    bridge = Bridge(scope)
    index = VectorIndex(folder, bridge, scope, embedder)
    try:
        yield index
    finally:
        await bridge.close()
        scope.close()
