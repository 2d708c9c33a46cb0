"""People who edit files of notes, with the editors that there are, and who listens to them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.memory.providers.notes.provider import NotesProvider
from keryx.ports.memory import Memory, MemoryEdits


class Edits:
    """Takes edits and writes them down."""

    def __init__(self) -> None:
        self.edits: list[Memory | str] = []
        """A memory that was added, or the id of one that was removed."""

    async def add(self, memory: Memory) -> None:
        self.edits.append(memory)

    async def remove(self, memory_id: str) -> None:
        self.edits.append(memory_id)

    @property
    def added(self) -> list[tuple[str, str | None]]:
        """The text of each new memory, and what it replaces."""
        return [(m.text, m.replaces) for m in self.edits if isinstance(m, Memory)]

    @property
    def removed(self) -> list[str]:
        return [name for name in self.edits if isinstance(name, str)]


@asynccontextmanager
async def open_notes(
    folder: Path, edits: MemoryEdits | None = None
) -> AsyncGenerator[NotesProvider]:
    """The provider over a folder, as a process opens it."""
    scope = Scope("notes")
    bridge = Bridge(scope)
    yield NotesProvider(folder, bridge, edits=edits or Edits(), wall=time.time)
    await bridge.close()
    scope.close()


def save_in_place(path: Path, change: Callable[[str], str]) -> None:
    """Save as nano does: the same file is cut and written anew."""
    path.write_text(change(path.read_text()))


def save_by_rename(path: Path, change: Callable[[str], str]) -> None:
    """Save as many editors do: a new file takes the name of the old one."""
    new = path.with_name("4913~")
    new.write_text(change(path.read_text()))
    new.replace(path)


def replacing(*pairs: tuple[str, str], then: str = "") -> Callable[[str], str]:
    """Return an edit: words are replaced, and something is written at the end."""

    def change(text: str) -> str:
        for old, new in pairs:
            text = text.replace(old, new)
        return text + then

    return change
