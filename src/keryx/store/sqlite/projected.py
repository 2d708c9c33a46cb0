"""The tables that are projections of the log, changed in the transaction that appends to it.

What changes is said by `keryx.store.projections`; how, here. Blocking code.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from keryx.ports.store import Blob, SessionState
from keryx.store.projections import state_of
from keryx.store.table_changes import Projection, Shown, Spent


def current_state(connection: sqlite3.Connection, no: int) -> SessionState:
    """The state of a session, by what is open in it."""
    turn, person = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM open WHERE no = ?1 AND kind = 'turn'),"
        " EXISTS (SELECT 1 FROM open WHERE no = ?1 AND kind IN ('approval', 'question'))",
        (no,),
    ).fetchone()
    return state_of(turn=bool(turn), person=bool(person))


def keep_blobs(
    connection: sqlite3.Connection, no: int, blobs: Sequence[Blob], named: Sequence[str]
) -> None:
    if not blobs and not named:
        return
    connection.executemany(
        "INSERT OR IGNORE INTO blobs VALUES (?, ?)", [(blob.hash, blob.data) for blob in blobs]
    )
    names = [(name, no) for name in {*named, *(blob.hash for blob in blobs)}]
    connection.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", names)


def apply(connection: sqlite3.Connection, no: int, changes: Projection) -> None:
    run = connection.execute
    for message_id, seq in changes.changed:
        run(
            "UPDATE open SET later = later || ' ' || ?"
            " WHERE no = ? AND kind = 'message' AND id = ?",
            (seq, no, message_id),
        )
    for shown in changes.shown:
        _show(connection, no, shown)
    for kind, name in changes.closed:
        run("DELETE FROM open WHERE no = ? AND kind = ? AND id = ?", (no, kind, name))
    for (kind, name), (seq, *later) in changes.opened.items():
        run(
            "INSERT OR IGNORE INTO open VALUES (?, ?, ?, ?, ?)",
            (no, kind, name, seq, " ".join(map(str, later))),
        )
    _undo_and_spend(connection, no, changes)


def fill(connection: sqlite3.Connection, no: int, whole: Projection) -> None:
    """Write the transcript and the usage of a session anew, from all of its log."""
    for shown in whole.shown:
        _show(connection, no, shown)
    _undo_and_spend(connection, no, whole)


def _undo_and_spend(connection: sqlite3.Connection, no: int, changes: Projection) -> None:
    for turn_id in changes.undone:
        connection.execute("DELETE FROM transcript WHERE no = ? AND turn_id = ?", (no, turn_id))
    for spent in changes.spent:
        _add_usage(connection, no, spent)


def _show(connection: sqlite3.Connection, no: int, shown: Shown) -> None:
    if shown.message_id is None:
        source, *rest = shown.sources
        later = " ".join(map(str, rest))
    else:
        row = connection.execute(
            "SELECT seq, later FROM open WHERE no = ? AND kind = 'message' AND id = ?",
            (no, shown.message_id),
        ).fetchone()
        if row is None:
            return  # a message that nobody accepted has no text to show
        source, later = row
    connection.execute(
        "INSERT INTO transcript VALUES (?, ?, ?, ?, ?)",
        (no, shown.seq, shown.turn_id, source, later),
    )


def _add_usage(connection: sqlite3.Connection, no: int, spent: Spent) -> None:
    # A cost that is unknown once stays unknown: NULL plus anything is NULL.
    connection.execute(
        "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " input_tokens = input_tokens + excluded.input_tokens,"
        " output_tokens = output_tokens + excluded.output_tokens,"
        " cached_tokens = cached_tokens + excluded.cached_tokens,"
        " reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,"
        " cost = cost + excluded.cost",
        (
            *(no, spent.model, spent.quarter),
            *(spent.usage.input_tokens, spent.usage.output_tokens),
            *(spent.usage.cached_tokens, spent.usage.reasoning_tokens, spent.cost),
        ),
    )
