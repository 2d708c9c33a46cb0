"""The changes of the tables, one function for each method of the store that writes.

Blocking code: it runs in the writer's thread, in a transaction of the caller. A refused change
raises, and the caller rolls it back. It refuses to know about threads, files and waiting callers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from keryx.errors import (
    AlreadyEnteredError,
    AlreadyTakenError,
    FencedError,
    KeyReusedError,
    RecordChangedError,
    SequenceError,
)
from keryx.events import encode, type_of
from keryx.ports.store import Commit, InboxRow, OutboxRow, RecordChange, records_of
from keryx.store.projections import project
from keryx.store.sqlite.migrations import write_session_fields
from keryx.store.sqlite.projected import apply, current_state, write_blobs
from keryx.store.sqlite.transaction import Transaction, get_meta, last_position, set_meta
from keryx.store.sqlite.usage import tables as usage
from keryx.store.table_changes import Projection, SessionFields


class _Session(msgspec.Struct, frozen=True):
    """The columns of a session that a commit needs."""

    no: int
    epoch: int
    last_seq: int
    state: str
    step_model: str
    created_at: float
    changed_at: float
    fields: SessionFields


def claim(transaction: Transaction, session_id: str) -> int:
    execute = transaction.connection.execute
    row = execute(
        "UPDATE sessions SET epoch = epoch + 1 WHERE session_id = ? RETURNING epoch", (session_id,)
    ).fetchall()
    if row:
        return int(row[0][0])
    epoch = get_meta(transaction.connection, "floor") + 1
    (last,) = execute("SELECT max(no) FROM sessions").fetchone()
    no = 1 + max(last or 0, get_meta(transaction.connection, "no"))
    execute(
        "INSERT INTO sessions (no, session_id, epoch) VALUES (?, ?, ?)", (no, session_id, epoch)
    )
    return epoch


def create(transaction: Transaction, commit: Commit) -> int:
    if _session_number(transaction.connection, commit.session_id) is not None:
        raise AlreadyTakenError(f"there is a session {commit.session_id!r}; nothing was written")
    epoch = claim(transaction, commit.session_id)
    append(transaction, msgspec.structs.replace(commit, epoch=epoch))
    return epoch


def append(transaction: Transaction, commit: Commit) -> int:
    connection = transaction.connection
    session = _owned_session(connection, commit)
    _check_sequence(session, commit)
    if commit.consumes or commit.withdraws:
        # Which error a commit with several faults gets must not depend on the store.
        for row in commit.enters:
            _check_key(connection, session.no, row)
    for key in commit.consumes:
        _consume(connection, session.no, key)
    for key in commit.withdraws:
        _withdraw(connection, session.no, key)
    _insert_inbox(connection, session.no, commit.enters)
    _take_claims(connection, session.no, commit.claims)
    for record in commit.records:
        _change_record(connection, record)
    _insert_outbox(connection, session.no, commit.outbox)
    changes = project(commit.events, session.step_model)
    write_blobs(connection, session.no, commit.blobs, changes.blobs)
    bodies = commit.bodies or tuple(map(encode, commit.events))
    connection.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?)",
        [
            (session.no, event.seq, type_of(event), body)
            for event, body in zip(commit.events, bodies, strict=True)
        ],
    )
    apply(connection, session.no, changes)
    if commit.only_records:
        # A draft that a person types does not change the session's place in the list.
        return transaction.position()
    return _move_session(transaction, session, commit, changes)


def enter(transaction: Transaction, session_id: str, row: InboxRow) -> bool:
    connection = transaction.connection
    no = _session_number(connection, session_id)
    if no is None:
        raise FencedError(f"there is no session {session_id!r}; the command was not stored")
    try:
        _check_key(connection, no, row)
    except AlreadyEnteredError:
        return False
    connection.execute(
        "INSERT INTO inbox SELECT ?1, ?2, ?3, 1 + coalesce(max(pending), 0) FROM inbox"
        " WHERE no = ?1 AND pending IS NOT NULL",
        (no, row.key, row.body),
    )
    return True


def sent(transaction: Transaction, ids: Sequence[str]) -> None:
    transaction.connection.executemany("DELETE FROM outbox WHERE id = ?", [(id_,) for id_ in ids])


def mark_damaged(transaction: Transaction, session_id: str) -> None:
    position = transaction.next_position()
    transaction.connection.execute(
        "UPDATE sessions SET state = 'damaged', position = ? WHERE session_id = ?",
        (position, session_id),
    )


def delete(transaction: Transaction, session_id: str) -> bool:
    connection = transaction.connection
    row = connection.execute(
        "SELECT no, epoch FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    if row is None:
        return False
    no, epoch = row
    set_meta(connection, "floor", max(epoch, get_meta(connection, "floor")))
    set_meta(connection, "position", last_position(connection))
    set_meta(connection, "no", max(no, get_meta(connection, "no")))
    set_meta(connection, "deleted", 1 + get_meta(connection, "deleted"))
    set_meta(connection, "purge", 1)
    connection.execute(
        "DELETE FROM records WHERE substr(key, 1, length(?1)) = ?1", (records_of(session_id),)
    )
    connection.execute(
        "DELETE FROM blobs WHERE hash IN (SELECT hash FROM names WHERE no = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM names WHERE hash = blobs.hash AND no <> ?1)",
        (no,),
    )
    for table in (
        *("names", "events", "inbox", "claims", "open"),
        *("transcript", "undone", "tags", "outbox", "sessions"),
    ):
        connection.execute(f"DELETE FROM {table} WHERE no = ?", (no,))  # noqa: S608 (names of ours)
    usage.move_to_deleted(connection, no)
    transaction.needs_purge = True
    return True


# -- the parts of an append


def _session_number(connection: sqlite3.Connection, session_id: str) -> int | None:
    row = connection.execute(
        "SELECT no FROM sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    return None if row is None else int(row[0])


def _owned_session(connection: sqlite3.Connection, commit: Commit) -> _Session:
    row = connection.execute(
        "SELECT no, epoch, last_seq, state, step_model, created_at, changed_at, title, model,"
        " workspace, pinned, archived, failed_turn FROM sessions WHERE session_id = ?",
        (commit.session_id,),
    ).fetchone()
    if row is None:
        raise FencedError(f"there is no session {commit.session_id!r}; nothing was written")
    session = _Session(*row[:7], fields=SessionFields(*row[7:]))
    if session.epoch != commit.epoch:
        raise FencedError(
            f"session {commit.session_id!r} is at epoch {session.epoch}, the writer at "
            f"{commit.epoch}; nothing was written"
        )
    return session


def _check_sequence(session: _Session, commit: Commit) -> None:
    for expected, event in enumerate(commit.events, session.last_seq + 1):
        if event.seq != expected or event.session_id != commit.session_id:
            raise SequenceError(
                f"event {expected} of session {commit.session_id!r} is next, "
                f"not {event.seq} of {event.session_id!r}; nothing was written"
            )


def _check_key(connection: sqlite3.Connection, no: int, row: InboxRow) -> None:
    stored = connection.execute(
        "SELECT body FROM inbox WHERE no = ? AND key = ?", (no, row.key)
    ).fetchone()
    if stored is None:
        return
    if stored[0] == row.body:
        raise AlreadyEnteredError(f"the command {row.key!r} was entered already")
    raise KeyReusedError(f"the key {row.key!r} was used for another command; make a new key")


def _insert_inbox(connection: sqlite3.Connection, no: int, rows: Sequence[InboxRow]) -> None:
    inserted: set[str] = set()
    for row in rows:
        try:
            connection.execute("INSERT INTO inbox VALUES (?, ?, ?, NULL)", (no, row.key, row.body))
        except sqlite3.IntegrityError:
            if row.key not in inserted:
                _check_key(connection, no, row)
            raise KeyReusedError(f"the key {row.key!r} is in this commit twice") from None
        inserted.add(row.key)


def _consume(connection: sqlite3.Connection, no: int, key: str) -> None:
    cursor = connection.execute(
        "UPDATE inbox SET pending = NULL WHERE no = ? AND key = ? AND pending IS NOT NULL",
        (no, key),
    )
    if cursor.rowcount:
        return
    row = connection.execute("SELECT 1 FROM inbox WHERE no = ? AND key = ?", (no, key)).fetchone()
    if row is None:
        raise SequenceError(f"no command {key!r} has entered, so it cannot be consumed")
    raise AlreadyTakenError(f"the command {key!r} was consumed before")


def _withdraw(connection: sqlite3.Connection, no: int, key: str) -> None:
    cursor = connection.execute(
        "DELETE FROM inbox WHERE no = ? AND key = ? AND pending IS NOT NULL", (no, key)
    )
    if not cursor.rowcount:
        raise SequenceError(f"no command {key!r} waits, so it cannot be withdrawn")


def _take_claims(connection: sqlite3.Connection, no: int, names: Sequence[str]) -> None:
    for name in names:
        try:
            connection.execute("INSERT INTO claims VALUES (?, ?)", (no, name))
        except sqlite3.IntegrityError:
            raise AlreadyTakenError(f"{name!r} was taken before") from None


def _change_record(connection: sqlite3.Connection, change: RecordChange) -> None:
    row = connection.execute("SELECT version FROM records WHERE key = ?", (change.key,)).fetchone()
    version = 0 if row is None else int(row[0])
    if version != change.version:
        raise RecordChangedError(
            f"record {change.key!r} has version {version}, not {change.version}; read it again"
        )
    connection.execute(
        "INSERT OR REPLACE INTO records VALUES (?, ?, ?)", (change.key, version + 1, change.value)
    )


def _insert_outbox(connection: sqlite3.Connection, no: int, rows: Sequence[OutboxRow]) -> None:
    for row in rows:
        try:
            connection.execute(
                "INSERT INTO outbox (id, no, topic, body) VALUES (?, ?, ?, ?)",
                (row.id, no, row.topic, row.body),
            )
        except sqlite3.IntegrityError:
            raise AlreadyTakenError(f"the outbox has a row {row.id!r} already") from None


def _move_session(
    transaction: Transaction, session: _Session, commit: Commit, changes: Projection
) -> int:
    state = session.state
    if changes.opened or changes.closed or state == "damaged":
        state = current_state(transaction.connection, session.no)
    fields = changes.fields_after(session.fields)
    if fields != session.fields:
        write_session_fields(transaction.connection, session.no, fields)
    created_at, changed_at = session.created_at, session.changed_at
    if commit.events:
        changed_at = commit.events[-1].at
        created_at = created_at if session.last_seq else commit.events[0].at
    position = transaction.next_position()
    transaction.connection.execute(
        "UPDATE sessions SET last_seq = ?, position = ?, state = ?, step_model = ?,"
        " created_at = ?, changed_at = ? WHERE no = ?",
        (
            *(session.last_seq + len(commit.events), position, state, changes.step_model),
            *(created_at, changed_at, session.no),
        ),
    )
    return position
