"""What undone turns taught: noted when it is taken back, so that it can count again. Blocking code.

A note has ids and states, and no texts: what is erased meanwhile stays erased.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from keryx.decoding import json_decoder
from keryx.memory import memories
from keryx.memory.changes import undoing


class _Operation(msgspec.Struct, frozen=True):
    """A row of the operations, as it was before it was undone."""

    id: str
    name: str
    at: float
    session_id: str
    turn_id: str | None


class _Before(msgspec.Struct, frozen=True):
    """What a memory was before the turn was undone."""

    id: str
    state: str
    ended_by: str | None


class _Note(msgspec.Struct, frozen=True):
    """What was taken back: the operations, and all memories that they added or ended."""

    operations: tuple[_Operation, ...]
    memories: tuple[_Before, ...]


_decode: Final = json_decoder(_Note).decode
_encode: Final = msgspec.json.Encoder().encode


def take_back(
    connection: sqlite3.Connection, session_id: str, turn_id: str
) -> tuple[list[str], list[str]]:
    """Undo what a turn taught; return the ids of the memories that are gone, and of those back."""
    taught = undoing.operations_of(connection, session_id, turn_id)
    operations = [*undoing.merges_of(connection, taught), *taught]
    if operations:
        connection.execute(
            "INSERT OR REPLACE INTO put_aside VALUES (?, ?, ?)",
            (session_id, turn_id, _encode(_note(connection, operations))),
        )
    return undoing.undo(connection, operations)


def bring_back(
    connection: sqlite3.Connection, session_id: str, turn_id: str
) -> tuple[list[str], list[str]]:
    """Let what was taken back count again; return the ids of the active memories, and of the ended.

    What somebody changed meanwhile stays as it is. A merge counts again only if all that went into
    it is as it was: otherwise it would say what is not true any more.
    """
    key = (session_id, turn_id)
    row = connection.execute(
        "SELECT note FROM put_aside WHERE session_id = ? AND turn_id = ?", key
    ).fetchone()
    if row is None:
        return [], []
    connection.execute("DELETE FROM put_aside WHERE session_id = ? AND turn_id = ?", key)
    note = _decode(row[0])
    added = {operation.id for operation in note.operations}
    valid = _redo_operations(connection, note)
    active = [
        before.id
        for before in note.memories
        if before.id in valid and _bring_back_memory(connection, before)
    ]
    ended = [
        before.id
        for before in note.memories
        if before.id not in added
        and before.ended_by in valid
        and _end_again(connection, before, before.ended_by, valid[before.ended_by])
    ]
    return active, ended


def drop_notes(connection: sqlite3.Connection, session_id: str) -> None:
    """Drop the notes of a session: nothing brings its turns back any more."""
    connection.execute("DELETE FROM put_aside WHERE session_id = ?", (session_id,))


def _note(connection: sqlite3.Connection, operations: Sequence[str]) -> _Note:
    rows: list[_Operation] = []
    states: dict[str, _Before] = {}
    for operation in operations:
        rows += [
            _Operation(*row)
            for row in connection.execute(
                "SELECT id, name, at, session_id, turn_id FROM operations WHERE id = ?",
                (operation,),
            )
        ]
        for row in connection.execute(
            "SELECT id, state, ended_by FROM memories WHERE id = ?1 OR ended_by = ?1", (operation,)
        ):
            states[row[0]] = _Before(*row)
    return _Note(tuple(rows), tuple(states.values()))


def _redo_operations(connection: sqlite3.Connection, note: _Note) -> dict[str, float]:
    """Write the operations down that are valid again; return their ids and times."""
    valid: dict[str, float] = {}
    for operation in reversed(note.operations):  # a merge stands before what went into it
        parts = [before for before in note.memories if before.ended_by == operation.id]
        if operation.name == memories.MERGE and not all(
            _is_unchanged(connection, part.id, is_back=part.id in valid) for part in parts
        ):
            continue
        valid[operation.id] = operation.at
        connection.execute(
            "INSERT OR IGNORE INTO operations VALUES (?, ?, ?, ?, ?)",
            msgspec.structs.astuple(operation),
        )
    return valid


def _is_unchanged(connection: sqlite3.Connection, memory_id: str, *, is_back: bool) -> bool:
    row = connection.execute(
        "SELECT state, ended_by FROM memories WHERE id = ?", (memory_id,)
    ).fetchone()
    if row is None:
        return False
    return row[0] == "active" or (is_back and row[1] == f"{undoing.UNDO}{memory_id}")


def _end_again(connection: sqlite3.Connection, before: _Before, operation: str, at: float) -> bool:
    """End a memory by the operation that ended it before. True: it was active."""
    if memories.end(connection, before.id, before.state, operation=operation, at=at):
        return True
    if before.state == "replaced":
        undoing.replace_again(connection, before.id, operation)
    return False


def _bring_back_memory(connection: sqlite3.Connection, before: _Before) -> bool:
    """Make a memory what it was. True: it is active."""
    row = connection.execute(
        "SELECT no, text FROM memories WHERE id = ? AND ended_by = ?",
        (before.id, f"{undoing.UNDO}{before.id}"),
    ).fetchone()
    if row is None:  # somebody erased it, or brought it back
        return False
    is_ended = connection.execute(
        "SELECT 1 FROM operations WHERE id = ?", (before.ended_by,)
    ).fetchone()
    if is_ended is None:
        memories.activate(connection, *row)
        return True
    connection.execute(
        "UPDATE memories SET state = ?, ended_by = ? WHERE no = ?",
        (before.state, before.ended_by, row[0]),
    )
    return False
