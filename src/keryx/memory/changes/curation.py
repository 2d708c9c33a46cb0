"""What people do with memories: list, search, add, edit and confirm them.

People look at all memories of a home. Models do not: what they are given is searched by scope.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from keryx.aio.clock import Clock
from keryx.errors import KeryxError
from keryx.ids import new_id
from keryx.memory import deliveries, intake, memories
from keryx.memory.changes.consolidation import Ask, Consolidation, consolidate
from keryx.memory.memory_file import MemoryFile
from keryx.ports.memory import (
    EditedByPeople,
    Memory,
    MemoryItem,
    MemoryReplacedError,
    MemoryScope,
    Withdrawal,
)

_ACTIVE: Final = ("active",)
_ENDED: Final = ("replaced", "removed")


class MemoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories a person wants to see; None: of all profiles, of all workspaces."""

    profile: str | None = None
    workspace: str | None = None
    """A workspace, with what is about the user."""
    ended: bool = False
    """Those that were replaced or removed."""

    @property
    def condition(self) -> tuple[str, list[str]]:
        """Return the condition for a query, and its values."""
        states = _ENDED if self.ended else _ACTIVE
        parts = [f"m.state IN ({', '.join('?' * len(states))})"]
        values: list[str] = [*states]
        if self.profile is not None:
            parts.append("m.profile = ?")
            values.append(self.profile)
        if self.workspace is not None:
            parts.append("m.workspace IN ('', ?)")
            values.append(self.workspace)
        return " AND ".join(parts), values


class MemoryPage(msgspec.Struct, frozen=True):
    """Some memories, the newest first; `next` is the `before` of the page that goes on."""

    memories: tuple[Memory, ...]
    next: int | None


class Curation:
    """What people do with the memories of a home, from any of its processes."""

    def __init__(
        self,
        file: MemoryFile,
        providers: Sequence[str],
        clock: Clock,
        *,
        edited: Sequence[EditedByPeople],
        take_in: Callable[[], Awaitable[None]],
        announce: Callable[[], Awaitable[None]],
    ) -> None:
        """`edited`: providers whose memories people edit in place. `take_in` takes in what
        sessions remember; `announce` lets changes be delivered."""
        self._edited = edited
        self._file = file
        self._providers = providers
        self._clock = clock
        self._take_in = take_in
        self._announce = announce
        self.redact: Callable[[str], str] = str
        """Removes the values of secrets from what people write."""

    async def _look(self) -> None:
        """Take in all that is new, also what people did at a provider."""
        await self._take_in()
        for provider in self._edited:
            with suppress(KeryxError):  # the state of the provider shows it
                await provider.notice_edits()

    async def page(self, chosen: MemoryFilter, limit: int, before: int | None) -> MemoryPage:
        """Return memories for a person, the newest first."""
        await self._look()
        return await self._file.read(partial(page, chosen=chosen, limit=limit, before=before))

    async def search(self, chosen: MemoryFilter, words: str, limit: int) -> list[Memory]:
        """Return what has all these words, for a person."""
        await self._look()
        query = partial(search, chosen=chosen, words=words, limit=limit)
        return await self._file.read(query)

    async def newest(self, scope: MemoryScope, limit: int, *, ended: bool = False) -> list[Memory]:
        """Return the memories of a scope, the newest first; `ended`: those that are not active."""
        await self._take_in()
        states = _ENDED if ended else _ACTIVE
        return await self._file.read(
            partial(memories.newest, scope=scope, limit=limit, states=states)
        )

    async def everything(self, profile: str | None = None) -> list[Memory]:
        await self._look()
        return await self._file.read(partial(memories.everything, profile=profile))

    async def add(self, memory: Memory) -> Memory:
        """Add a memory of a person, or one that replaces another; return it as it is stored."""
        memory = msgspec.structs.replace(memory, text=self.redact(memory.text))
        change = partial(intake.add_of_person, memory=memory, providers=self._providers)
        await self._file.write(change)
        await self._announce()
        return memory

    async def remove(self, ids: Sequence[str]) -> str:
        """Remove these memories; return the operation, which `undo` takes back."""
        await self._take_in()
        name, at = new_id("remove"), self._clock.wall()
        change = partial(intake.remove, ids=ids, providers=self._providers, operation=name, at=at)
        await self._file.write(change)
        await self._announce()
        return name

    async def undo(self, operation: str) -> bool:
        """Take back a removal or a consolidation. False: there is nothing to take back."""
        await self._take_in()
        providers, at = self._providers, self._clock.wall()
        change = partial(intake.undo_operation, operation=operation, providers=providers, at=at)
        items = await self._file.write(change)
        await self._announce()
        return bool(items)

    async def consolidate(self, scope: MemoryScope, ask: Ask) -> Consolidation:
        """Let a model propose merges of a scope's memories; apply those that lose nothing."""
        await self._take_in()
        result, _ = await consolidate(self._file, scope, ask, self._providers, self._clock.wall)
        await self._announce()
        return result

    async def edit(self, memory_id: str, text: str) -> Memory | None:
        """Replace a memory by a person's words; None: there is no such memory.

        `MemoryReplacedError` if it is not active any more.
        """
        await self._take_in()
        edit = partial(
            replace,
            memory_id=memory_id,
            text=self.redact(text),
            providers=self._providers,
            replacement=new_id("mem"),
            at=self._clock.wall(),
        )
        memory = await self._file.write(edit)
        await self._announce()
        return memory

    async def confirm(self, memory_id: str) -> bool:
        """Trust a memory as a person's own words. False: there is no such memory."""
        await self._take_in()
        return await self._file.write(partial(set_trust, memory_id=memory_id, trust="person"))


def page(
    connection: sqlite3.Connection, chosen: MemoryFilter, limit: int, before: int | None
) -> MemoryPage:
    condition, values = chosen.condition
    rows = connection.execute(
        f"SELECT m.no, {memories.prefixed_columns()} FROM memories AS m WHERE {condition}"  # noqa: S608 (constants of ours)
        " AND m.no < ? ORDER BY m.no DESC LIMIT ?",
        (*values, 2**62 if before is None else before, limit + 1),
    ).fetchall()
    shown = rows[:limit]
    return MemoryPage(
        tuple(memories.memory_of(connection, row[1:]) for row in shown),
        shown[-1][0] if len(rows) > limit else None,
    )


def search(
    connection: sqlite3.Connection, chosen: MemoryFilter, words: str, limit: int
) -> list[Memory]:
    """Return the memories with all these words, the best first; the last may be a beginning."""
    query = " ".join(f'"{term}"' for term in memories.terms_of(words))
    if not query:
        return []
    condition, values = msgspec.structs.replace(chosen, ended=False).condition
    rows = connection.execute(
        f"SELECT {memories.prefixed_columns()} FROM words JOIN memories AS m ON m.no = words.rowid"  # noqa: S608 (constants of ours)
        f" WHERE words MATCH ? AND {condition} ORDER BY words.rank, m.no DESC LIMIT ?",
        (f"{query}*", *values, limit),
    ).fetchall()
    return [memories.memory_of(connection, row) for row in rows]


def replace(
    connection: sqlite3.Connection,
    memory_id: str,
    text: str,
    providers: Sequence[str],
    *,
    replacement: str,
    at: float,
) -> Memory | None:
    """Replace an active memory by a person's words, under the id `replacement`.

    None: there is no such memory. `MemoryReplacedError` if it was replaced or removed before.
    """
    old = memories.get(connection, memory_id)
    if old is None:
        return None
    if not memories.end(connection, memory_id, "replaced", operation=replacement, at=at):
        raise MemoryReplacedError(memory_id, _newest(connection, old))
    memory = msgspec.structs.replace(
        old,
        id=replacement,
        text=text,
        trust="person",
        created_at=at,
        sources=(),
        replaces=memory_id,
    )
    if memories.add(connection, memory, operation=memory.id):
        intake.enqueue_all(connection, providers, [memory], "", memory.created_at)
    origin = old.sources[0].session_id if old.sources else ""
    end_at_providers(connection, {memory_id: origin}, providers, f"{replacement}/ends", at)
    return memory


def set_trust(connection: sqlite3.Connection, memory_id: str, trust: str) -> bool:
    cursor = connection.execute("UPDATE memories SET trust = ? WHERE id = ?", (trust, memory_id))
    return bool(cursor.rowcount)


def end_at_providers(
    connection: sqlite3.Connection,
    ended: Mapping[str, str],
    providers: Sequence[str],
    key: str,
    at: float,
    *,
    erase: bool = False,
) -> None:
    """Let the providers withdraw items, given by id with the session that they come from.

    A withdrawal keeps the order of that session: an item that is on its way comes before it.
    """
    deliveries.withdraw(connection, list(ended))
    sessions: dict[str, list[str]] = {}
    for item_id, session_id in ended.items():
        sessions.setdefault(session_id, []).append(item_id)
    for session_id, ids in sessions.items():
        name = f"{key}/{session_id}" if session_id else key
        items: list[MemoryItem] = [
            Withdrawal(id=name, session_id=session_id, items=tuple(ids), erase=erase)
        ]
        intake.enqueue_all(connection, providers, items, session_id, at)


def _newest(connection: sqlite3.Connection, memory: Memory) -> Memory | None:
    """Return the active memory that took the place of this one; None: it was removed."""
    newest: Memory | None = memory
    while newest is not None and newest.state == "replaced":
        row = connection.execute(
            "SELECT id FROM memories WHERE replaces = ? ORDER BY no DESC LIMIT 1", (newest.id,)
        ).fetchone()
        newest = None if row is None else memories.get(connection, row[0])
    return newest if newest is not None and newest.state == "active" else None
