"""Takes what sessions remember, and what people change, into the file of the memories.

A row of the outbox is written in the same transaction as the event that it comes from. It is
applied here once, by its id, and only then removed from the outbox.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from keryx.events import MemoryChanged
from keryx.ids import new_id
from keryx.memory import deliveries, intake_rows, memories
from keryx.memory.changes import conflicts, put_aside, undoing
from keryx.memory.intake_rows import Changed, Row, TurnBroughtBack, TurnEnded, TurnTakenBack
from keryx.ports.memory import Memory, MemoryItem, MemorySource, Withdrawal
from keryx.ports.store import OutboxRow


def apply_rows(
    connection: sqlite3.Connection, rows: Sequence[OutboxRow], providers: Sequence[str]
) -> list[MemoryItem]:
    """Apply rows that were not applied before; return what is to be delivered now."""
    items: list[MemoryItem] = []
    for row in rows:
        cursor = connection.execute("INSERT OR IGNORE INTO applied VALUES (?)", (row.id,))
        if cursor.rowcount:
            items += _apply(connection, intake_rows.decode(row.body), providers)
    return items


def forget_applied(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Drop the marks of rows that left the outbox long ago."""
    connection.executemany("DELETE FROM applied WHERE id = ?", [(row_id,) for row_id in ids])


def forget_all_applied(connection: sqlite3.Connection) -> None:
    """Drop all marks: the outbox is empty."""
    connection.execute("DELETE FROM applied")


def _apply(connection: sqlite3.Connection, row: Row, providers: Sequence[str]) -> list[MemoryItem]:
    match row:
        case TurnEnded(turn):
            deliveries.enqueue(connection, providers, turn, session_id=turn.session_id, at=turn.at)
            return [turn]
        case Changed(event):
            return change(connection, event, providers)
        case TurnTakenBack():
            return _take_back(connection, row, providers)
        case TurnBroughtBack():
            return _bring_back(connection, row, providers)


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
            replaces=event.target
            if ended or conflicts.is_replaced(connection, event.target)
            else None,
        )
        memories.add(connection, memory, operation=event.memory_id)
        items.append(memory)
        enqueue_all(connection, providers, items, event.session_id, event.at)
    return items + withdraw(connection, ended, providers, f"{event.memory_id}/ends", event.at)


def _take_back(
    connection: sqlite3.Connection, row: TurnTakenBack, providers: Sequence[str]
) -> list[MemoryItem]:
    gone, restored = put_aside.take_back(connection, row.session_id, row.turn_id)
    key = f"undo/{row.session_id}/{row.turn_id}/{row.seq}"  # it can be undone several times
    deliveries.withdraw(connection, [row.turn_id])
    items = withdraw(connection, gone, providers, f"{key}/memories", row.at)
    turn = Withdrawal(id=key, session_id=row.session_id, items=(row.turn_id,))
    enqueue_all(connection, providers, [turn], row.session_id, row.at)
    return [*items, turn, *restore_in_order(connection, restored, providers, key, row.at)]


def _bring_back(
    connection: sqlite3.Connection, row: TurnBroughtBack, providers: Sequence[str]
) -> list[MemoryItem]:
    active, ended = put_aside.bring_back(connection, row.session_id, row.turn_id)
    key = f"restore/{row.session_id}/{row.turn_id}/{row.seq}"
    items = restore_in_order(connection, active, providers, key, row.at)
    items += withdraw(connection, ended, providers, f"{key}/ends", row.at)
    if row.turn is not None:
        items.append(row.turn)
        deliveries.enqueue(
            connection,
            providers,
            row.turn,
            session_id=row.session_id,
            at=row.at,
            key=f"{row.turn_id}/{key}",
        )
    return items


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
    deliveries.withdraw(connection, ids)
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
    """Undo a removal, an addition by a person, or all merges of a consolidation.

    The id of a removed memory stands for its removal, whoever removed it.
    """
    removed = _removed(connection, operation)
    if removed is not None:
        memories.activate(connection, *removed)
        return restore_in_order(connection, [operation], providers, new_id("undo"), at)
    operations = undoing.operations_of(connection, "", operation) or [operation]
    merges = undoing.merges_of(connection, operations)
    gone, restored = undoing.undo(connection, [*merges, *operations])
    key = new_id("undo")
    items = withdraw(connection, gone, providers, key, at)
    return items + restore_in_order(connection, restored, providers, key, at)


def _removed(connection: sqlite3.Connection, memory_id: str) -> tuple[int, str] | None:
    """Return the number and the text of a removed memory; None: there is none with this id."""
    query = "SELECT no, text FROM memories WHERE id = ? AND state = 'removed'"
    return connection.execute(query, (memory_id,)).fetchone()


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
