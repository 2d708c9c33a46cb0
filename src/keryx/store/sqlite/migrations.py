"""The tables of the file, and how a file of an earlier version gets them.

Each migration is a list of statements, and of functions where a new column must be filled from
the log; its number is its place in `MIGRATIONS`. A released migration
never changes. The file stores the number of the last one as its `user_version`.
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
from keryx.store.sqlite.usage import tables as usage
from keryx.store.table_changes import NEW_SESSION, SessionFields

Step = str | Callable[[sqlite3.Connection], None]
Migration = Sequence[Step]

APPLICATION_ID: Final = 0x4B455259
"""Marks a file as a store of Keryx ("KERY")."""

# Tables with large values have a rowid: rows are appended and never moved. Tables that are only
# read by key have none. `no` is a short number for the session, to keep keys short.
_FIRST: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    # position and floor: the last position and the newest epoch of all deleted sessions, so that
    # no position is used twice and no old owner can write again.
    # purge: unused parts of the file may still hold data of deleted sessions.
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
    # pending: the place in the queue of commands; NULL once the command was consumed.
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
    # later: the events that changed a message after event seq had accepted it.
    """CREATE TABLE open (
        no INTEGER NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        later TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (no, kind, id)
    ) WITHOUT ROWID""",
    # source: the event that is shown at seq; later: the events that had changed it by then.
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


def _fill_session_fields(connection: sqlite3.Connection) -> None:
    rows = connection.execute(
        "SELECT no, body FROM events WHERE type IN ('session.opened', 'session.changed',"
        " 'turn.started', 'turn.finished', 'turn.undone') ORDER BY no, seq"
    )
    # The cursor stays open while rows of another table are changed.
    for no, events_of_session in groupby(rows, key=lambda row: int(row[0])):
        write_session_fields(
            connection, no, project(_readable(events_of_session), "").fields_after(NEW_SESSION)
        )


def _readable(rows: Iterable[tuple[int, bytes]]) -> Iterator[LoggedEvent]:
    for _, body in rows:
        # The other rows can be read even if one is damaged.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            yield decode_logged(body)


def write_session_fields(connection: sqlite3.Connection, no: int, fields: SessionFields) -> None:
    """Write the fields of a session's row in the list."""
    connection.execute(
        "UPDATE sessions SET title = ?, model = ?, workspace = ?, pinned = ?, archived = ?,"
        " failed_turn = ? WHERE no = ?",
        (*msgspec.structs.astuple(fields), no),
    )


_SECOND: Final = (
    "ALTER TABLE sessions ADD COLUMN model TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN workspace TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0",
    # The last turn, if it ended badly.
    "ALTER TABLE sessions ADD COLUMN failed_turn TEXT NOT NULL DEFAULT ''",
    _fill_session_fields,
    # One index for all lists, because every commit must change it.
    "DROP INDEX sessions_by_position",
    "CREATE INDEX sessions_by_change ON sessions (archived, position)",
    # identity: distinguishes this file from every other, for the index beside it.
    # deleted: the count of deleted sessions. no: the largest number of one, so that none is reused.
    # host: rises when a host takes the store over; the earlier host can then write no more.
    "INSERT INTO meta VALUES ('identity', random()), ('deleted', 0), ('no', 0), ('host', 0)",
)


def _fill_transcripts(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT no, body FROM events ORDER BY no, seq")
    for no, events_of_session in groupby(rows, key=lambda row: int(row[0])):
        fill(connection, no, project(_readable(events_of_session), ""))


_THIRD: Final = (
    # Usage by quarters of an hour, so that a day can be summed up. The fifth migration fills it.
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
    # Transcripts show notices too: restarts, retries, fallbacks, changed settings.
    "DELETE FROM transcript",
    _fill_transcripts,
    # The settings of a session are read without the rest of its log.
    """CREATE INDEX events_of_settings ON events (no, seq)
        WHERE type IN ('session.opened', 'session.changed')""",
)

_FOURTH: Final = (
    # The session and the call that opened a child agent's session; empty for all others.
    "ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sessions ADD COLUMN parent_call TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX sessions_by_parent ON sessions (parent, position) WHERE parent != ''",
)


def _fill_usage(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT no, body FROM events ORDER BY no, seq")
    for no, events_of_session in groupby(rows, key=lambda row: int(row[0])):
        usage.add(connection, no, project(_readable(events_of_session), ""))


_FIFTH: Final = (
    # Usage by purpose, with the costs that are known beside those that are not; calls of tools.
    "DROP TABLE usage",
    *usage.CREATE,
    _fill_usage,
)

_SIXTH: Final = (
    # The transcript of turns that were undone: some of them are restored.
    """CREATE TABLE undone (
        no INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        turn_id TEXT,
        source INTEGER NOT NULL,
        later TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (no, seq)
    ) WITHOUT ROWID""",
)

_SEVENTH: Final = (
    # A table of its own, so that a commit which changes no tags does not touch them.
    """CREATE TABLE tags (
        no INTEGER NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (no, key)
    ) WITHOUT ROWID""",
    "CREATE INDEX tags_by_key ON tags (key)",
)

_EIGHTH: Final = (usage.add_times,)


def _count_turns(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT no, body FROM events ORDER BY no, seq")
    for no, events_of_session in groupby(rows, key=lambda row: int(row[0])):
        usage.add_turns(connection, no, project(_readable(events_of_session), ""))


_NINTH: Final = (usage.CREATE_TURNS, _count_turns)

_TENTH: Final = (
    # For whom a session is; empty: for the owner of the home. No earlier session says it.
    "ALTER TABLE sessions ADD COLUMN person TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX sessions_by_person ON sessions (person, position) WHERE person != ''",
)

MIGRATIONS: Final[Sequence[Migration]] = (
    *(_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH, _NINTH, _TENTH),
)


def version_of(
    connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration] = MIGRATIONS
) -> int:
    """Return the file's version, 0 if it is empty. Raise if it is not a file of this program."""
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
    """Bring the file to the newest version; if that fails, the file stays as it was."""
    if version_of(connection, path, migrations) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read the version again: another process may have migrated the file meanwhile.
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
