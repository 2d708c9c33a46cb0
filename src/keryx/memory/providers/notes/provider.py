"""The provider `notes`: memories as files of Markdown, which people and agents edit together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from keryx.aio.bridge import Bridge
from keryx.events import RecalledMemory
from keryx.memory import memories
from keryx.memory.own_words import recalled
from keryx.memory.providers.notes.merging import Added, Edit
from keryx.memory.providers.notes.note_file import NoteFile, NoteState
from keryx.memory.providers.notes.note_folder import NoteFolder, Place, places_of
from keryx.memory.providers.notes.safe_files import BusyFileError
from keryx.memory.providers.notes.word_index import search
from keryx.ports.memory import (
    Delivery,
    Memory,
    MemoryEdits,
    MemoryScope,
    ProviderUnavailableError,
)

T = TypeVar("T")

NAME: Final = "notes"
# Seconds. A file that changed just now may change again without a new time of change.
SETTLED: Final = 0.1


class NotesProvider:
    """Stores memories in files, and passes on what people did to them. Belongs to one loop."""

    def __init__(
        self,
        root: Path,
        bridge: Bridge,
        *,
        edits: MemoryEdits,
        wall: Callable[[], float],
    ) -> None:
        """`edits` gets what people wrote, changed and removed in the files."""
        self.name: Final = NAME
        self._folder = NoteFolder(root, wall)
        self._bridge = bridge
        self._edits = edits
        self._wall = wall
        self._read: dict[Place, tuple[tuple[int, ...] | None, tuple[Memory, ...]]] = {}
        """What each file said, and by which sign a change of it is noticed."""

    async def store(self, session_id: str, deliveries: Sequence[Delivery]) -> None:  # noqa: ARG002 (all sessions share the files)
        """Store these items; turns are not written into notes."""
        places = await self._in_thread(self._folder.by_place, deliveries)
        for place, items in places.items():
            file = self._folder.file(place)
            state = await self._in_thread(file.apply, items)
            await self._pass_on(file, state.pending)
            if state.refused is not None:
                raise state.refused

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        query = partial(memories.find, scope=scope, words=words, limit=limit)
        return await self._search(scope, query)

    async def context(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        query = partial(memories.for_context, scope=scope, words=words, limit=limit)
        return await self._search(scope, query)

    async def remaining(self, items: Sequence[str]) -> Sequence[str]:
        return await self._in_thread(self._folder.remaining, items)

    async def notice_edits(self) -> None:
        for place in await self._in_thread(self._folder.places):
            await self._entries(place)

    async def close(self) -> None:
        """Do nothing: no file stays open."""

    async def _search(
        self, scope: MemoryScope, query: Callable[[Any], list[Memory]]
    ) -> list[RecalledMemory]:
        entries = [memory for place in places_of(scope) for memory in await self._entries(place)]
        if not entries:
            return []
        best = await self._in_thread(search, entries, query)
        return [recalled(memory, NAME) for memory in best]

    async def _entries(self, place: Place) -> tuple[Memory, ...]:
        """Return what a file says now; what people did to it is passed on first."""
        file = self._folder.file(place)
        signature, state = await self._in_thread(self._look, file, self._read.get(place))
        if state is None:
            return self._read[place][1]
        self._read[place] = (signature, state.memories)
        await self._pass_on(file, state.pending)
        return state.memories

    def _look(
        self,
        file: NoteFile,
        earlier: tuple[tuple[int, ...] | None, tuple[Memory, ...]] | None,
    ) -> tuple[tuple[int, ...] | None, NoteState | None]:
        """Read a file if it may have changed. In a thread."""
        signature = file.signature()
        if earlier is not None and signature is not None and signature == earlier[0]:
            return signature, None
        try:
            state = file.read()
        except BusyFileError:
            if earlier is None:
                raise
            return signature, None
        if state.pending or (signature and self._wall() - signature[2] / 1e9 < SETTLED):
            return None, state
        return signature, state

    async def _pass_on(self, file: NoteFile, edits: Sequence[Edit]) -> None:
        """Let the memory know what people did, then drop it from the file's record."""
        if not edits:
            return
        for edit in edits:
            if isinstance(edit, Added):
                await self._edits.add(edit.memory)
            else:
                await self._edits.remove(edit.memory_id)
        await self._in_thread(file.settle, edits)

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            return await self._bridge.to_thread(work, *arguments)
        except OSError as error:
            raise ProviderUnavailableError(
                f"the notes cannot be read or written: {error}; check the disk and the rights"
            ) from error
