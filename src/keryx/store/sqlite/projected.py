"""The tables that are projections of the log, changed in the transaction that appends to it.

`keryx.store.projections` says what changes; this module executes it. Blocking code.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from keryx.ports.store import Blob, SessionState
from keryx.ports.tags import tag_key
from keryx.store.projections import state_of
from keryx.store.sqlite.usage import tables as usage
from keryx.store.table_changes import Projection, TranscriptEntry


def current_state(connection: sqlite3.Connection, no: int) -> SessionState:
    """Return the state of a session, from what is open in it."""
    turn, person = connection.execute(
        "SELECT max(kind = 'turn'), max(kind IN ('approval', 'question')) FROM open WHERE no = ?",
        (no,),
    ).fetchone()
    return state_of(turn=bool(turn), person=bool(person))


def write_blobs(
    connection: sqlite3.Connection, no: int, blobs: Sequence[Blob], hashes: Sequence[str]
) -> None:
    if not blobs and not hashes:
        return
    connection.executemany(
        "INSERT OR IGNORE INTO blobs VALUES (?, ?)", [(blob.hash, blob.data) for blob in blobs]
    )
    names = [(name, no) for name in {*hashes, *(blob.hash for blob in blobs)}]
    connection.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", names)


def apply(connection: sqlite3.Connection, no: int, changes: Projection) -> None:
    run = connection.execute
    for message_id, seq in changes.changed:
        run(
            "UPDATE open SET later = later || ' ' || ?"
            " WHERE no = ? AND kind = 'message' AND id = ?",
            (seq, no, message_id),
        )
    for entry in changes.entries:
        _insert_entry(connection, no, entry)
    for kind, name in changes.closed:
        run("DELETE FROM open WHERE no = ? AND kind = ? AND id = ?", (no, kind, name))
    for (kind, name), (seq, *later) in changes.opened.items():
        run(
            "INSERT OR IGNORE INTO open VALUES (?, ?, ?, ?, ?)",
            (no, kind, name, seq, " ".join(map(str, later))),
        )
    if changes.parent is not None:
        parent = (changes.parent.session_id, changes.parent.call_id)
        run("UPDATE sessions SET parent = ?, parent_call = ? WHERE no = ?", (*parent, no))
    if changes.person is not None:
        run("UPDATE sessions SET person = ? WHERE no = ?", (changes.person, no))
    if changes.tags is not None:
        _write_tags(connection, no, changes.tags)
    _undo(connection, no, changes)
    if changes.usages or changes.tools:
        usage.add(connection, no, changes)
    if changes.turns:
        usage.add_turns(connection, no, changes)


def _write_tags(connection: sqlite3.Connection, no: int, tags: Sequence[str]) -> None:
    connection.execute("DELETE FROM tags WHERE no = ?", (no,))
    rows = [(no, tag_key(tag), tag) for tag in tags]
    connection.executemany("INSERT INTO tags VALUES (?, ?, ?)", rows)


def fill(connection: sqlite3.Connection, no: int, changes: Projection) -> None:
    """Write the transcript of a session again, from the changes of its whole log."""
    for entry in changes.entries:
        _insert_entry(connection, no, entry)
    # Only logs from before there was a way back are filled so.
    for turn_id in changes.undone:
        connection.execute("DELETE FROM transcript WHERE no = ? AND turn_id = ?", (no, turn_id))


def _undo(connection: sqlite3.Connection, no: int, changes: Projection) -> None:
    for turn_id, is_undone in changes.undone.items():
        source, target = ("transcript", "undone") if is_undone else ("undone", "transcript")
        where = "WHERE no = ? AND turn_id = ?"
        connection.execute(
            f"INSERT INTO {target} SELECT * FROM {source} {where}",  # noqa: S608 (names of ours)
            (no, turn_id),
        )
        connection.execute(f"DELETE FROM {source} {where}", (no, turn_id))  # noqa: S608 (names of ours)


def _insert_entry(connection: sqlite3.Connection, no: int, entry: TranscriptEntry) -> None:
    if entry.message_id is None:
        source, *later_seqs = entry.sources
        later = " ".join(map(str, later_seqs))
    else:
        row = connection.execute(
            "SELECT seq, later FROM open WHERE no = ? AND kind = 'message' AND id = ?",
            (no, entry.message_id),
        ).fetchone()
        if row is None:
            return  # the message was never accepted, so it has no text
        source, later = row
    connection.execute(
        "INSERT INTO transcript VALUES (?, ?, ?, ?, ?)",
        (no, entry.seq, entry.turn_id, source, later),
    )
