"""All files of notes of a home: which one a memory belongs to, and which ones have it. Blocking."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

from keryx.memory.providers.notes import record
from keryx.memory.providers.notes.markdown import Item, parse
from keryx.memory.providers.notes.merging import Added
from keryx.memory.providers.notes.note_file import MAX_READ, NoteFile
from keryx.memory.providers.notes.record import Record
from keryx.memory.providers.notes.safe_files import open_folder, read_file
from keryx.ports.memory import Delivery, Memory, MemoryScope, ProviderUnavailableError, Withdrawal

Place = tuple[str, str]
"""A profile and a workspace; no workspace: the file about the user."""


class NoteFolder:
    """The folder with the files. Any thread may use it."""

    def __init__(self, root: Path, wall: Callable[[], float]) -> None:
        self._root = root
        self._wall = wall

    def file(self, place: Place) -> NoteFile:
        profile, workspace = place
        return NoteFile(self._root, profile, workspace, self._wall)

    def by_place(self, deliveries: Sequence[Delivery]) -> dict[Place, list[Delivery]]:
        """Return which items each file gets. A withdrawal goes to all files with its memories."""
        places: dict[Place, list[Delivery]] = {}
        for delivery in deliveries:
            item = delivery.item
            if isinstance(item, Memory):
                places.setdefault((item.profile, item.workspace), []).append(delivery)
            elif isinstance(item, Withdrawal):
                holders = self._holders(set(item.items))
                for place in dict.fromkeys((*holders, *places)):
                    places.setdefault(place, []).append(delivery)
        return places

    def remaining(self, ids: Sequence[str]) -> list[str]:
        """Return those of the ids that some file still has, or may have."""
        present: set[str] = set()
        for folder, name in self._files():
            try:
                present |= _ids_in(folder, name, set(ids))
            except (ProviderUnavailableError, OSError, UnicodeDecodeError):
                return list(ids)
        return [name for name in ids if name in present]

    def _holders(self, ids: set[str]) -> list[Place]:
        """Return the files whose record has some of these memories."""
        holders: list[Place] = []
        for folder, name in self._files():
            if name.endswith(".base"):
                state = record.load(folder, name)
                if state is not None and ids & _ids_of(state):
                    holders.append((state.profile, state.workspace))
        return holders

    def places(self) -> list[Place]:
        """Return all files that were written here."""
        states = [record.load(f, name) for f, name in self._files() if name.endswith(".base")]
        return [(state.profile, state.workspace) for state in states if state is not None]

    def _files(self) -> Generator[tuple[int, str]]:
        """Yield each file with the descriptor of its folder."""
        try:
            profiles = sorted(path.name for path in self._root.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return
        for profile in profiles:
            if not (self._root / profile).is_dir():
                continue
            with open_folder(self._root, profile, create=False) as folder:
                if folder is not None:
                    for name in os.listdir(folder):  # noqa: PTH208 (by its descriptor)
                        yield folder, name


def places_of(scope: MemoryScope) -> list[Place]:
    """Return the files that a query of this scope is about; an empty scope has none."""
    if not scope.profile:
        return []
    workspaces: Iterable[str] = dict.fromkeys(("", scope.workspace))
    return [(scope.profile, workspace) for workspace in workspaces]


def _ids_of(state: Record) -> set[str]:
    memories = (*state.written, *state.base, *state.ours)
    edits = (*state.pending, *state.pending_before)
    added = {edit.memory.id for edit in edits if isinstance(edit, Added)}
    return {memory.id for memory in memories} | added


def _ids_in(folder: int, name: str, ids: set[str]) -> set[str]:
    if name.endswith(".lock"):
        return set()
    if name.endswith(".base"):
        state = record.load(folder, name)
        return set() if state is None else ids & _ids_of(state)
    content = read_file(folder, name, MAX_READ)
    blocks = [] if content is None else parse(content.decode())
    return {b.id for b in blocks if isinstance(b, Item) and b.id is not None} & ids
