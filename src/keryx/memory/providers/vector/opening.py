"""Opens the provider for a home: its file, and the embedding model if it is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.memory import memories
from keryx.memory.memory_file import MemoryFile
from keryx.memory.providers.vector.index_tables import INDEX
from keryx.memory.providers.vector.minilm import MiniLM, missing
from keryx.memory.providers.vector.provider import FILE, VectorProvider
from keryx.sqlite_file import check_file


def open_index(
    home: Path,
    scope: Scope,
    bridge: Bridge,
    file: MemoryFile,
    report: Callable[[str, BaseException], None],
) -> VectorProvider:
    """Create the provider. Its file and its model are opened when they are first used.

    `StoreError` if there is a file that cannot be used. Blocking.
    """
    check_file(home / FILE, INDEX)
    return VectorProvider(
        MemoryFile(home / FILE, bridge, INDEX),
        scope,
        bridge,
        embedder=None if missing() else MiniLM(),
        report=report,
        memories=lambda: file.read(memories.everything),
    )
