"""A memory provider that stores nothing, as a package would bring it: what is left is our cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keryx.events import RecalledMemory
from keryx.ports.memory import Delivery, MemoryScope


class NoProvider:
    name = "nothing"

    async def store(self, session_id: str, deliveries: Sequence[Delivery]) -> None: ...

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> list[RecalledMemory]:
        return []

    async def context(self, scope: MemoryScope, words: str, limit: int) -> list[RecalledMemory]:
        return []

    async def remaining(self, items: Sequence[str]) -> list[str]:
        return []

    async def close(self) -> None: ...


def open_provider(_settings: dict[str, str]) -> NoProvider:
    return NoProvider()


def install(folder: Path) -> None:
    """Write the metadata that makes this module a provider of every Python with this path."""
    info = folder / "nothing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nothing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[keryx.memory]\nnothing = parts.no_provider:open_provider\n"
    )
