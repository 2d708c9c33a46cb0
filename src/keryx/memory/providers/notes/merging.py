"""Merges what people did to a file with what agents did, by id. Pure.

`base` is what Keryx wrote last, `ours` what it should be after the agents' changes. The file is the
frame: its order and its prose stay. A person's words always win.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from keryx.memory.providers.notes.markdown import Block, Item, append, new_item
from keryx.ports.memory import Memory


class Added(msgspec.Struct, frozen=True, tag="added"):
    """A person wrote this, or changed what it replaces."""

    memory: Memory


class Removed(msgspec.Struct, frozen=True, tag="removed"):
    """A person removed the line of this memory."""

    memory_id: str


Edit = Added | Removed
Entries = dict[str, Memory]
"""Memories by id, in their order."""
Mint = Callable[[str, Memory | None], Memory]
"""Makes the memory of a person's words; the second argument is the one that it replaces."""


class Merged(msgspec.Struct, frozen=True):
    """The new content of a file, the memories in it, and what people did."""

    blocks: list[Block]
    entries: Entries
    edits: tuple[Edit, ...]


def entries_of(memories: Iterable[Memory]) -> Entries:
    return {memory.id: memory for memory in memories}


def merge(
    base: Mapping[str, Memory],
    blocks: Sequence[Block],
    ours: Mapping[str, Memory],
    mint: Mint,
    drafted: Mapping[str, Memory] | None = None,
) -> Merged:
    """Merge the blocks of a file. `drafted`: memories of an earlier state of the same edit."""
    return _Merging(base, ours, mint, drafted or {}).run(blocks)


class _Merging:
    """One merge, block by block."""

    def __init__(
        self,
        base: Mapping[str, Memory],
        ours: Mapping[str, Memory],
        mint: Mint,
        drafted: Mapping[str, Memory],
    ) -> None:
        self._base = base
        self._ours = ours
        self._mint = mint
        self._drafted = dict(drafted)
        self._entries: Entries = {}
        self._edits: list[Edit] = []

    def run(self, blocks: Sequence[Block]) -> Merged:
        owners = _owners(blocks, {**self._base, **self._ours})
        # A line that lost its id, in an editor that had the file open before, is still the same.
        self._lost = [memory for name, memory in self._ours.items() if name not in owners]
        merged: list[Block] = []
        for at, block in enumerate(blocks):
            if isinstance(block, str):
                merged.append(block)
            elif block.id is not None and owners.get(block.id) == at:
                merged += self._line(block, block.id)
            else:
                is_known = block.id in self._base or block.id in self._ours
                merged += self._new_line(block.without_id(is_known=is_known))
        rest = [memory for memory in self._lost if memory.id not in self._entries]
        for memory in rest:
            if memory.id in self._base:
                self._edits.append(Removed(memory.id))
            else:
                self._entries[memory.id] = memory
        items = [new_item(m.id, m.text, m.trust) for m in rest if m.id not in self._base]
        return Merged(append(merged, items), self._entries, tuple(self._edits))

    def _line(self, item: Item, memory_id: str) -> list[Block]:
        memory = self._base.get(memory_id) or self._ours[memory_id]
        if item.text == memory.text:
            if memory_id not in self._ours:
                return []  # an agent replaced or withdrew it
            self._entries[memory_id] = memory
            return [item]
        if not item.text:
            self._edits.append(Removed(memory_id))
            return []
        return [self._add(item, memory)]

    def _new_line(self, item: Item) -> list[Block]:
        if not item.text:
            return [item.raw]
        for memory in self._lost:
            if memory.text == item.text and memory.id not in self._entries:
                self._entries[memory.id] = memory
                return [item.with_id(memory.id, memory.trust)]
        return [self._add(item, None)]

    def _add(self, item: Item, replaced: Memory | None) -> Item:
        old = None if replaced is None else replaced.id
        memory = next(
            (m for m in self._drafted.values() if m.text == item.text and m.replaces == old), None
        )
        if memory is None:
            memory = self._mint(item.text, replaced)
        else:
            del self._drafted[memory.id]
        self._entries[memory.id] = memory
        self._edits.append(Added(memory))
        return item.with_id(memory.id)


def _owners(blocks: Sequence[Block], memories: Mapping[str, Memory]) -> dict[str, int]:
    """Return the place of each memory's line. Of several with its id, the unchanged one is it."""
    owners: dict[str, int] = {}
    for at, block in enumerate(blocks):
        if isinstance(block, str) or block.id is None or block.id not in memories:
            continue
        first = owners.get(block.id)
        if first is None or (
            block.text == memories[block.id].text != getattr(blocks[first], "text", None)
        ):
            owners[block.id] = at
    return owners
