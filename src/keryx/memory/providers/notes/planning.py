"""Plans one change of a file of notes: what it will say, and what people did to it. Pure.

People's edits are merged first, then the agents' items follow. So an item never overwrites what a
person wrote, and a person's line stays even if an agent withdrew the memory that it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from keryx.ids import new_id
from keryx.memory.providers.notes import names
from keryx.memory.providers.notes.markdown import Block, Item, append, new_item, parse, render
from keryx.memory.providers.notes.merging import (
    Added,
    Edit,
    Entries,
    Merged,
    Removed,
    entries_of,
    merge,
)
from keryx.memory.providers.notes.record import Record, digest_of
from keryx.memory.providers.notes.safe_files import UnusableFileError
from keryx.ports.memory import Delivery, ItemRefusedError, Memory, Withdrawal

MAX_BYTES: Final = 64_000
"""The longest content that agents may write into one file."""
# A late delivery comes within minutes; nobody removes more lines by hand in that time.
MAX_ENDED: Final = 200


class Plan(msgspec.Struct, frozen=True):
    """A change that is to be made."""

    record: Record
    content: bytes
    refused: ItemRefusedError | None = None


class Planner:
    """Plans the changes of one file."""

    def __init__(self, name: str, profile: str, workspace: str, wall: Callable[[], float]) -> None:
        self._name = name
        self._profile = profile
        self._workspace = workspace
        self._wall = wall

    def plan(
        self, record: Record | None, content: bytes | None, deliveries: Sequence[Delivery]
    ) -> Plan:
        """Plan a change of this content; None: there is no file yet, or not any more."""
        blocks = None if content is None else self._parse(content)
        if record is None:
            record = Record(profile=self._profile, workspace=self._workspace)
            if blocks is not None:
                record = msgspec.structs.replace(record, written=self._adopted(blocks))
        base = entries_of(record.written)
        if blocks is None:
            items = [new_item(m.id, m.text, m.trust) for m in base.values()]
            head = parse(names.head(self._profile, self._workspace))
            merged = Merged(append(head, items), dict(base), ())
        else:
            merged = merge(base, blocks, base, self._mint)
        changes = AgentChanges(base, merged, record.ended)
        refused = changes.apply(deliveries)
        new = render(changes.blocks).encode()
        pending = changes.not_erased((*record.pending, *merged.edits))
        return Plan(
            Record(
                profile=self._profile,
                workspace=self._workspace,
                written=tuple(changes.entries.values()),
                digest=digest_of(new),
                ended=tuple(changes.ended)[-MAX_ENDED:],
                pending=pending,
                base=tuple(base.values()),
                ours=tuple(changes.ours.values()),
                seen="" if content is None else digest_of(content),
                pending_before=changes.not_erased(record.pending),
            ),
            new,
            refused,
        )

    def replan(self, record: Record, newer: bytes, current: bytes | None) -> Plan:
        """Plan again: the file had changed to `newer` when it was exchanged.

        `current` is what the file says since; None: it says `newer`, nothing was written.
        """
        base, ours = entries_of(record.base), entries_of(record.ours)
        written = entries_of(record.written)
        drafted = {name: memory for name, memory in written.items() if name not in ours}
        later: tuple[Edit, ...] = ()
        if current is not None:
            since = merge(written, self._parse(current), written, self._mint)
            later = since.edits
            ours = {
                name: m for name, m in ours.items() if name not in written.keys() - since.entries
            }
            ours |= {name: m for name, m in since.entries.items() if name not in written}
            base_next, ours_next = since.entries, None
        else:
            base_next, ours_next = base, ours
        merged = merge(base, self._parse(newer), ours, self._mint, drafted)
        content = render(merged.blocks).encode()
        pending = (*record.pending_before, *merged.edits, *later)
        entries = tuple(merged.entries.values())
        new = msgspec.structs.replace(
            record,
            written=entries,
            digest=digest_of(content),
            ended=(*record.ended, *_ended(merged.edits))[-MAX_ENDED:],
            pending=pending,
            base=tuple(base_next.values()),
            ours=entries if ours_next is None else tuple(ours_next.values()),
            seen=digest_of(newer if current is None else current),
            pending_before=record.pending_before if current is None else pending,
        )
        return Plan(new, content)

    def _parse(self, content: bytes) -> list[Block]:
        try:
            return parse(content.decode())
        except UnicodeDecodeError as error:
            raise UnusableFileError(
                f"{self._name} is not UTF-8 (byte {error.start}); save it as UTF-8, and it is read "
                "again"
            ) from None

    def _mint(self, text: str, replaced: Memory | None) -> Memory:
        return Memory(
            id=new_id("mem"),
            text=text,
            kind="fact" if replaced is None else replaced.kind,
            about="work" if self._workspace else "user",
            trust="person",
            profile=self._profile,
            workspace=self._workspace,
            created_at=self._wall(),
            replaces=None if replaced is None else replaced.id,
        )

    def _adopted(self, blocks: Sequence[Block]) -> tuple[Memory, ...]:
        """Return the memories of a file whose record is gone, as the file has them."""
        entries: Entries = {}
        for block in blocks:
            if isinstance(block, Item) and block.id is not None and block.id not in entries:
                memory = msgspec.structs.replace(self._mint(block.text, None), id=block.id)
                entries[block.id] = msgspec.structs.replace(memory, trust=block.trust)
        return tuple(entries.values())


class AgentChanges:
    """The items that are delivered, applied to a file in order."""

    def __init__(self, base: Entries, merged: Merged, ended: Sequence[str]) -> None:
        self.blocks = merged.blocks
        self.entries = dict(merged.entries)
        self.ours = dict(base)
        """What the file would say without people's edits."""
        self.ended = [*ended, *_ended(merged.edits)]
        self._by_person = base.keys() - merged.entries
        self._erased: set[str] = set()

    def apply(self, deliveries: Sequence[Delivery]) -> ItemRefusedError | None:
        """Apply items until one is refused; return that refusal."""
        for delivery in deliveries:
            if isinstance(delivery.item, Withdrawal):
                self._withdraw(delivery.item)
            elif isinstance(delivery.item, Memory):
                refused = self._add(delivery.item, is_late=delivery.attempts > 0)
                if refused is not None:
                    return refused
        return None

    def not_erased(self, edits: Sequence[Edit]) -> tuple[Edit, ...]:
        return tuple(
            edit
            for edit in edits
            if not (isinstance(edit, Added) and edit.memory.id in self._erased)
        )

    def _withdraw(self, withdrawal: Withdrawal) -> None:
        gone = set(withdrawal.items)
        self.blocks = [b for b in self.blocks if isinstance(b, str) or b.id not in gone]
        for memory_id in withdrawal.items:
            self.entries.pop(memory_id, None)
            self.ours.pop(memory_id, None)
        if withdrawal.erase:
            self._erased |= gone
            self.ended = [name for name in self.ended if name not in gone]

    def _add(self, memory: Memory, *, is_late: bool) -> ItemRefusedError | None:
        if memory.id in self.entries or memory.id in self._by_person:
            return None
        if is_late and memory.id in self.ended:
            return None
        item = new_item(memory.id, memory.text, memory.trust)
        if not _can_be_read_back(item):
            return ItemRefusedError(
                memory.id, f"the memory {memory.id!r} cannot be written as a note; reword it"
            )
        blocks = append(self.blocks, [item])
        if len(render(blocks).encode()) > MAX_BYTES:
            return ItemRefusedError(
                memory.id,
                f"the notes would have more than {MAX_BYTES} bytes with this memory; forget or "
                "merge some (`keryx memory consolidate`), then send it again with "
                "`keryx memory retry`",
            )
        self.blocks = blocks
        self.entries[memory.id] = self.ours[memory.id] = memory
        self.ended = [name for name in self.ended if name != memory.id]
        return None


def _ended(edits: Sequence[Edit]) -> list[str]:
    names_ended = [
        edit.memory_id if isinstance(edit, Removed) else edit.memory.replaces for edit in edits
    ]
    return [name for name in names_ended if name is not None]


def _can_be_read_back(item: Item) -> bool:
    try:
        item.raw.encode()
    except UnicodeEncodeError:
        return False
    return parse(item.raw) == [item]
