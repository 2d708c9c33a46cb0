"""The shape of the file, and how a file of an earlier version gets it.

Each migration is a list of statements, and of functions where a new column must be filled from
the log; its number is its place in `MIGRATIONS`. One that was released never changes. The file
keeps the number of the last one as its `user_version`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import StoreError, StoreTooNewError
from keryx.events import LoggedEvent, decode_logged
from keryx.store.projections import project
from keryx.store.sqlite.projected import fill
from keryx.store.table_changes import NEW, SessionFacts

Step = str | Callable[[sqlite3.Connection], None]
Migration = Sequence[Step]

APPLICATION_ID: Final = 0x4B455259
"""Marks a file as ours ("KERY")."""

# Rows that hold large values have a rowid: they are appended, never moved, and may be long. Those
# that are only looked up by their key have none. `no` stands for the session, to keep keys short.
_FIRST: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    # position and floor: the last position and the newest epoch of all sessions that were deleted,
    # so that no position is given twice and no old owner comes back.
    # purge: remains of deleted sessions may still stand in unused parts of the file.
    "INSERT INTO meta VALUES ('position', 0), ('floor', 0), ('purge', 0)",
    """CREATE TABLE sessions (
        no INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL UNIQUE,
        epoch INTEGER NOT NULL,
        last_seq INTEGER NOT NULL DEFAULT 0,
        position INTEGER NOT NULL DEFAULT 0,
        title TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL DEFAULT 'idle',
        step_model TEXT NOT NULL DEFAULT '',
        created_at REAL NOT NULL DEFAULT 0,
        changed_at REAL NOT NULL DEFAULT 0
    )""",
    "CREATE INDEX sessions_by_position ON sessions (position)",
    """CREATE TABLE events (
        no INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        type TEXT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (no, seq)
    )""",
    # pending: its place among those to be consumed; NULL once it was.
    """CREATE TABLE inbox (
        no INTEGER NOT NULL,
        key TEXT NOT NULL,
        body BLOB NOT NULL,
        pending INTEGER,
        PRIMARY KEY (no, key)
    ) WITHOUT ROWID""",
    "CREATE INDEX inbox_pending ON inbox (no, pending) WHERE pending IS NOT NULL",
    """CREATE TABLE claims (
        no INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (no, name)
    ) WITHOUT ROWID""",
    # later: the facts that changed a message since it was accepted by the fact seq.
    """CREATE TABLE open (
        no INTEGER NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        later TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (no, kind, id)
    ) WITHOUT ROWID""",
    # source: the fact that is shown at seq; later: those that had changed it by then.
    """CREATE TABLE transcript (
        no INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        turn_id TEXT,
        source INTEGER NOT NULL,
        later TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (no, seq)
    ) WITHOUT ROWID""",
    """CREATE TABLE usage (
        no INTEGER NOT NULL,
        model TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        reasoning_tokens INTEGER NOT NULL,
        cost REAL,
        PRIMARY KEY (no, model)
    ) WITHOUT ROWID""",
    "CREATE TABLE blobs (hash TEXT PRIMARY KEY, data BLOB NOT NULL)",
    """CREATE TABLE names (
        hash TEXT NOT NULL, no INTEGER NOT NULL, PRIMARY KEY (hash, no)
    ) WITHOUT ROWID""",
    "CREATE INDEX names_by_session ON names (no)",
    """CREATE TABLE outbox (
        place INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        no INTEGER NOT NULL,
        topic TEXT NOT NULL,
        body BLOB NOT NULL
    )""",
    "CREATE INDEX outbox_by_topic ON outbox (topic, place)",
    """CREATE TABLE records (
        key TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL
    ) WITHOUT ROWID""",
)


def _fill_session_facts(connection: sqlite3.Connection) -> None:
    rows = connection.execute(
        "SELECT no, body FROM events WHERE type IN ('session.opened', 'session.changed',"
        " 'turn.started', 'turn.finished', 'turn.undone') ORDER BY no, seq"
    )
    # Read by a cursor of its own while others change the rows of another table.
    for no, found in groupby(rows, key=lambda row: int(row[0])):
        keep_facts(connection, no, project(_readable(found), "").settle(NEW))


def _readable(rows: Iterable[tuple[int, bytes]]) -> Iterator[LoggedEvent]:
    for _, body in rows:
        # One damaged row must not keep all the others from being read.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield decode_logged(body)


def keep_facts(connection: sqlite3.Connection, no: int, facts: SessionFacts) -> None:
    """Write what a session is called and set to."""
    connection.execute(
        "UPDATE sessions SET title = ?, model = ?, workspace = ?, pinned = ?, archived = ?,"
        " failed_turn = ? WHERE no = ?",
        (*msgspec.structs.astuple(facts), no),
    )


_SECOND: Final = (
    "ALTER TABLE sessions ADD COLUMN model TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN workspace TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0",
    # The last turn, if it ended badly.
    "ALTER TABLE sessions ADD COLUMN failed_turn TEXT NOT NULL DEFAULT ''",
    _fill_session_facts,
    # One index for all lists, because every commit must change it.
    "DROP INDEX sessions_by_position",
    "CREATE INDEX sessions_by_change ON sessions (archived, position)",
    # identity: tells this file from every other, for what is kept beside it.
    # deleted: how many sessions were. no: the largest number of those, so that none comes back.
    # host: rises when a host takes the store from another one, which can write no more.
    "INSERT INTO meta VALUES ('identity', random()), ('deleted', 0), ('no', 0), ('host', 0)",
)


def _fill_transcripts_and_usage(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT no, body FROM events ORDER BY no, seq")
    for no, found in groupby(rows, key=lambda row: int(row[0])):
        fill(connection, no, project(_readable(found), ""))


_THIRD: Final = (
    # What was spent, by quarters of an hour, so that a day can be summed up.
    "DROP TABLE usage",
    """CREATE TABLE usage (
        no INTEGER NOT NULL,
        model TEXT NOT NULL,
        quarter INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        reasoning_tokens INTEGER NOT NULL,
        cost REAL,
        PRIMARY KEY (no, model, quarter)
    ) WITHOUT ROWID""",
    # Transcripts have the quiet lines too: restarts, retries, fallbacks, changed settings.
    "DELETE FROM transcript",
    _fill_transcripts_and_usage,
    # What a session is set to is read without the rest of its log.
    """CREATE INDEX events_of_settings ON events (no, seq)
        WHERE type IN ('session.opened', 'session.changed')""",
)

MIGRATIONS: Final[Sequence[Migration]] = (_FIRST, _SECOND, _THIRD)


def version_of(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS
) -> int:
    """The file's version, 0 if it is empty. A file that this program must not touch is refused."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (tables or version):
        raise StoreError(
            f"{path} is a database of another program; choose another file, or move it away"
        )
    if version > len(migrations):
        raise StoreTooNewError(
            f"{path} has version {version} and this Keryx knows versions up to {len(migrations)}; "
            "update Keryx, or choose another KERYX_HOME"
        )
    return int(version)


def migrate(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Bring the file to the newest version, or leave it as it was."""
    if version_of(connection, path, migrations) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again, because another process may have done it meanwhile.
        for migration in migrations[version_of(connection, path, migrations) :]:
            for step in migration:
                if isinstance(step, str):
                    connection.execute(step)
                else:
                    step(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
