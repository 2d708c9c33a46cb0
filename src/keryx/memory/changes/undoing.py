"""Undoes operations on the memories: what they added is gone, and what they ended is back.

Blocking code.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from keryx.memory.memories import MERGE, activate, unindex

UNDO: Final = "undo/"  # an undone operation ends its memory by this and its id


def undo(connection: sqlite3.Connection, operations: Sequence[str]) -> tuple[list[str], list[str]]:
    """Undo these operations; return the ids of the memories that are gone, and of those back.

    What an operation replaced is not back if its own memory was replaced since, or if another
    active memory has replaced the same: those count.
    """
    newer = {name: _replaced_by(connection, name, operations) for name in operations}
    gone = [name for name in operations if _remove(connection, name)]
    restored: list[str] = []
    for operation in operations:
        rows = connection.execute(
            "SELECT no, id, text FROM memories WHERE ended_by = ?", (operation,)
        ).fetchall()
        for no, memory_id, text in rows:
            if (heir := newer[operation] or _active_heir(connection, memory_id)) is not None:
                connection.execute("UPDATE memories SET ended_by = ? WHERE no = ?", (heir, no))
            else:
                activate(connection, no, text)
                restored.append(memory_id)
        connection.execute("DELETE FROM operations WHERE id = ?", (operation,))
    return gone, [memory_id for memory_id in restored if memory_id not in gone]


def _replaced_by(connection: sqlite3.Connection, name: str, undone: Sequence[str]) -> str | None:
    """Return the operation that replaced this memory and stays valid; None: there is none."""
    query = "SELECT ended_by FROM memories WHERE id = ? AND state = 'replaced'"
    row = connection.execute(query, (name,)).fetchone()
    return None if row is None or row[0] in undone else row[0]


def _active_heir(connection: sqlite3.Connection, memory_id: str) -> str | None:
    """Return an active memory that has replaced this one; None: there is none."""
    query = "SELECT id FROM memories WHERE replaces = ? AND state = 'active' ORDER BY no LIMIT 1"
    row = connection.execute(query, (memory_id,)).fetchone()
    return None if row is None else row[0]


def replace_again(connection: sqlite3.Connection, memory_id: str, operation: str) -> None:
    """Let a memory that was replaced meanwhile be ended by this operation again, as it was before.

    One that was merged meanwhile stays with its merge, which says what it said.
    """
    connection.execute(
        "UPDATE memories SET ended_by = ?1 WHERE id = ?2 AND state = 'replaced' AND NOT EXISTS"
        " (SELECT 1 FROM operations AS o WHERE o.id = memories.ended_by AND o.name = ?3)",
        (operation, memory_id, MERGE),
    )


def _remove(connection: sqlite3.Connection, memory_id: str) -> bool:
    """Remove the memory that an undone operation added; an operation has its memory's id."""
    row = connection.execute(
        "SELECT no, text, state FROM memories WHERE id = ?", (memory_id,)
    ).fetchone()
    if row is None:
        return False
    connection.execute(
        "UPDATE memories SET state = 'removed', ended_by = ? WHERE no = ?",
        (f"{UNDO}{memory_id}", row[0]),
    )
    if row[2] == "active":
        unindex(connection, row[0], row[1])
    return True


def operations_of(connection: sqlite3.Connection, session_id: str, turn_id: str) -> list[str]:
    rows = connection.execute(
        "SELECT id FROM operations WHERE session_id = ? AND turn_id = ?", (session_id, turn_id)
    )
    return [name for (name,) in rows]


def merges_of(connection: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Return the merges that these memories went into, those of merged ones first."""
    merges: list[str] = []
    waiting = list(ids)
    while waiting:
        row = connection.execute(
            "SELECT o.id FROM memories AS m JOIN operations AS o ON o.id = m.ended_by"
            " WHERE m.id = ? AND o.name = ?",
            (waiting.pop(), MERGE),
        ).fetchone()
        if row is not None and row[0] not in merges:
            merges.insert(0, row[0])
            waiting.append(row[0])
    return merges
