"""Takes what sessions remember, and what people change, into the file of the memories.

A row of the outbox is written in the same transaction as the event that it comes from. It is
applied here once, by its id, and only then removed from the outbox.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from keryx.decoding import json_decoder
from keryx.events import MemoryChanged
from keryx.ids import new_id
from keryx.memory import deliveries, memories
from keryx.ports.memory import Memory, MemoryItem, MemorySource, TurnMemory, Withdrawal
from keryx.ports.store import OutboxRow

TOPIC: Final = "memory"


class TurnEnded(msgspec.Struct, frozen=True, tag="turn"):
    """A turn has ended, and is to be remembered."""

    turn: TurnMemory


class TurnTakenBack(msgspec.Struct, frozen=True, kw_only=True, tag="undone"):
    """A turn was undone: what it taught is taken back."""

    session_id: str
    turn_id: str
    at: float


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """A call changed the memory."""

    event: MemoryChanged


Row = TurnEnded | TurnTakenBack | Changed

_decode: Final = json_decoder(Row).decode
_encode: Final = msgspec.json.Encoder().encode


def row_of(row_id: str, row: Row) -> OutboxRow:
    return OutboxRow(row_id, TOPIC, _encode(row))


def apply_rows(
    connection: sqlite3.Connection, rows: Sequence[OutboxRow], providers: Sequence[str]
) -> list[MemoryItem]:
    """Apply rows that were not applied before; return what is to be delivered now."""
    items: list[MemoryItem] = []
    for row in rows:
        cursor = connection.execute("INSERT OR IGNORE INTO applied VALUES (?)", (row.id,))
        if cursor.rowcount:
            items += _apply(connection, _decode(row.body), providers)
    return items


def forget_applied(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Drop the marks of rows that are not in the outbox any more."""
    connection.executemany("DELETE FROM applied WHERE id = ?", [(row_id,) for row_id in ids])


def _apply(connection: sqlite3.Connection, row: Row, providers: Sequence[str]) -> list[MemoryItem]:
    match row:
        case TurnEnded(turn):
            deliveries.enqueue(connection, providers, turn, session_id=turn.session_id, at=turn.at)
            return [turn]
        case Changed(event):
            return change(connection, event, providers)
        case TurnTakenBack():
            return _take_back(connection, row, providers)


def change(
    connection: sqlite3.Connection, event: MemoryChanged, providers: Sequence[str]
) -> list[MemoryItem]:
    """Apply a change of a call."""
    source = MemorySource(event.session_id, event.seq, event.turn_id, event.call_id)
    ended = [
        target
        for target in (event.target,)
        if target is not None
        and memories.end(
            connection,
            target,
            "removed" if event.change == "remove" else "replaced",
            operation=event.memory_id,
            at=event.at,
            source=source,
        )
    ]
    items: list[MemoryItem] = []
    if event.change != "remove":
        memory = Memory(
            id=event.memory_id,
            text=event.text,
            kind=event.kind,
            about=event.about,
            trust=event.trust,
            profile=event.profile,
            workspace="" if event.about == "user" else event.workspace,
            created_at=event.at,
            sources=(source,),
            replaces=ended[0] if ended else None,
        )
        memories.add(connection, memory, operation=event.memory_id)
        items.append(memory)
    if ended:
        items.append(
            Withdrawal(
                id=f"{event.memory_id}/ends", session_id=event.session_id, items=tuple(ended)
            )
        )
    enqueue_all(connection, providers, items, event.session_id, event.at)
    return items


def _take_back(
    connection: sqlite3.Connection, row: TurnTakenBack, providers: Sequence[str]
) -> list[MemoryItem]:
    operations = memories.operations_of(connection, row.session_id, row.turn_id)
    merges = memories.merges_of(connection, operations)
    gone, restored = memories.undo(connection, [*merges, *operations])
    key = f"undo/{row.turn_id}"
    ended = (*gone, row.turn_id)
    deliveries.withdraw(connection, ended)
    items: list[MemoryItem] = [Withdrawal(id=key, session_id=row.session_id, items=ended)]
    enqueue_all(connection, providers, items, row.session_id, row.at)
    return items + restore(connection, restored, providers, key, row.session_id, row.at)


def add_of_person(
    connection: sqlite3.Connection, memory: Memory, providers: Sequence[str]
) -> list[MemoryItem]:
    """Add a memory of a person; what it replaces is ended."""
    items: list[MemoryItem] = []
    if memories.add(connection, memory, operation=memory.id):
        items.append(memory)
        old = memory.replaces
        if old is not None and memories.end(
            connection, old, "replaced", operation=memory.id, at=memory.created_at
        ):
            items += withdraw(connection, [old], providers, f"{memory.id}/ends", memory.created_at)
        enqueue_all(connection, providers, [memory], "", memory.created_at)
    return items


def remove(
    connection: sqlite3.Connection,
    ids: Sequence[str],
    providers: Sequence[str],
    operation: str,
    at: float,
) -> list[MemoryItem]:
    """Remove memories as one operation, which can be undone."""
    ended = [
        memory_id
        for memory_id in ids
        if memories.end(connection, memory_id, "removed", operation=operation, at=at)
    ]
    return withdraw(connection, ended, providers, operation, at)


def withdraw(
    connection: sqlite3.Connection,
    ids: Sequence[str],
    providers: Sequence[str],
    key: str,
    at: float,
) -> list[MemoryItem]:
    """Let the providers withdraw memories, each in the order of the session that it comes from."""
    by_session: dict[str, list[str]] = {}
    for memory_id in ids:
        memory = memories.get(connection, memory_id)
        by_session.setdefault("" if memory is None else session_of(memory), []).append(memory_id)
    items: list[MemoryItem] = [
        Withdrawal(
            id=f"{key}/{session_id}" if session_id else key,
            session_id=session_id,
            items=tuple(ended),
        )
        for session_id, ended in by_session.items()
    ]
    for item in items:
        enqueue_all(connection, providers, [item], session_of(item), at)
    return items


def undo_operation(
    connection: sqlite3.Connection, operation: str, providers: Sequence[str], at: float
) -> list[MemoryItem]:
    """Undo a removal, an addition by a person, or all merges of a consolidation."""
    operations = memories.operations_of(connection, "", operation) or [operation]
    merges = memories.merges_of(connection, operations)
    gone, restored = memories.undo(connection, [*merges, *operations])
    deliveries.withdraw(connection, gone)
    key = new_id("undo")
    items = withdraw(connection, gone, providers, key, at)
    return items + restore_in_order(connection, restored, providers, key, at)


def restore_in_order(
    connection: sqlite3.Connection,
    ids: Sequence[str],
    providers: Sequence[str],
    key: str,
    at: float,
) -> list[MemoryItem]:
    """Let the providers store memories again, each in the order of its session."""
    items: list[MemoryItem] = []
    for memory_id in ids:
        memory = memories.get(connection, memory_id)
        session_id = "" if memory is None else session_of(memory)
        items += restore(connection, [memory_id], providers, key, session_id, at)
    return items


def session_of(item: MemoryItem) -> str:
    """Return the session in whose order the item is delivered."""
    if isinstance(item, Memory):
        return item.sources[0].session_id if item.sources else ""
    return item.session_id


def restore(
    connection: sqlite3.Connection,
    ids: Sequence[str],
    providers: Sequence[str],
    key: str,
    session_id: str,
    at: float,
) -> list[MemoryItem]:
    """Let the providers store memories again that are true again."""
    items: list[MemoryItem] = []
    for memory_id in ids:
        memory = memories.get(connection, memory_id)
        if memory is not None:
            deliveries.enqueue(
                connection,
                providers,
                memory,
                session_id=session_id,
                at=at,
                key=f"{memory_id}/{key}",
            )
            items.append(memory)
    return items


def enqueue_all(
    connection: sqlite3.Connection,
    providers: Sequence[str],
    items: Sequence[MemoryItem],
    session_id: str,
    at: float,
) -> None:
    for item in items:
        deliveries.enqueue(connection, providers, item, session_id=session_id, at=at)
