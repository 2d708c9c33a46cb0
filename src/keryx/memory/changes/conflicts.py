"""Memories that replaced the same one in two sessions: both were kept, and people are told."""

from __future__ import annotations

import sqlite3


def is_replaced(connection: sqlite3.Connection, memory_id: str | None) -> bool:
    """Return whether another memory has taken the place of this one."""
    query = "SELECT 1 FROM memories WHERE id = ? AND state = 'replaced'"
    return connection.execute(query, (memory_id,)).fetchone() is not None


def rival_of(connection: sqlite3.Connection, memory_id: str, replaced: str | None) -> str | None:
    """Return the active memory that had replaced the same one before; None: there is none."""
    if replaced is None:
        return None
    # The operation that ended a memory has the id of the memory that took its place.
    row = connection.execute(
        "SELECT rival.id FROM memories AS old JOIN memories AS rival ON rival.id = old.ended_by"
        " WHERE old.id = ? AND rival.id != ? AND rival.state = 'active'",
        (replaced, memory_id),
    ).fetchone()
    return None if row is None else row[0]
