"""The file of the index: its tables, and how it is opened or rebuilt.

The words are in volumes: one FTS5 table for a number of entries, in the order of indexing. A
search opens the last volume first and seldom needs the others; when a session is deleted, only
the volumes with its words are rebuilt. Blocking code.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from keryx.store.sqlite.faults import DAMAGED, primary_code
from keryx.store.sqlite.files import LOCK_TIMEOUT, SMALL_CACHE, open_for_reading

NAME: Final = "search.db"

VERSION: Final = 1
"""The version of the tables and of the tokenizer. An index of another version is rebuilt."""

_APPLICATION_ID: Final = 0x4B455257

_TABLES: Final = (
    # identity: of the store of this index. position: all commits up to it are indexed.
    # deleted: how many sessions of the store had been deleted by then.
    # purge: the write-ahead log of this file may still have words of a deleted session.
    "CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO state VALUES ('identity', 0), ('position', 0), ('deleted', 0), ('purge', 0)",
    # seq: the session's events up to it are indexed.
    "CREATE TABLE sessions (no INTEGER PRIMARY KEY, seq INTEGER NOT NULL)",
    # The entry of a transcript, and the number of its text, for each rowid in a volume.
    """CREATE TABLE entries (
        id INTEGER PRIMARY KEY, no INTEGER NOT NULL, seq INTEGER NOT NULL, text INTEGER NOT NULL
    )""",
    # The entries first..last belong to the volume; those up to filled are indexed.
    """CREATE TABLE volumes (
        volume INTEGER PRIMARY KEY,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        filled INTEGER NOT NULL,
        letters INTEGER NOT NULL DEFAULT 0
    )""",
)

# So many pages may stay free, because the next entries will use them.
_FREE_PAGES: Final = 64


def index_path(store: Path) -> Path:
    return store.with_name(NAME)


def open_index(path: Path) -> sqlite3.Connection:
    """Return the connection that writes. Replace an index of another version by an empty one."""
    try:
        return _open(path)
    except sqlite3.Error as error:
        if primary_code(error) not in DAMAGED:
            raise
    delete_index(path)
    return _open(path)


def read_index(path: Path) -> sqlite3.Connection | None:
    """Return a connection that cannot write; None if there is no readable index."""
    if not path.is_file():
        return None
    connection = open_for_reading(path)
    if _version(connection) != VERSION:
        connection.close()
        return None
    return connection


def delete_index(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def clear(connection: sqlite3.Connection, identity: int) -> None:
    """Remove all entries, and set the identity of the store."""
    for (volume,) in connection.execute("SELECT volume FROM volumes").fetchall():
        connection.execute(f"DROP TABLE words_{volume}")
    for table in ("volumes", "entries", "sessions"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 (names of ours)
    connection.execute("UPDATE state SET value = 0")
    set_state(connection, "identity", identity)


def get_state(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return int(value)


def set_state(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute("UPDATE state SET value = ? WHERE name = ?", (value, name))


def create_volume(connection: sqlite3.Connection, volume: int) -> None:
    # The table has only the entries of each word: no texts, no offsets, no lengths. The words are
    # folded and separated by spaces already, so the simplest tokenizer is right.
    connection.execute(
        f"CREATE VIRTUAL TABLE words_{volume} USING fts5"
        "(words, content = '', detail = none, columnsize = 0, tokenize = 'ascii')"
    )


def clear_volume(connection: sqlite3.Connection, volume: int) -> None:
    """Remove all words of a volume; SQLite overwrites the freed pages."""
    connection.execute(f"DROP TABLE words_{volume}")
    create_volume(connection, volume)
    connection.execute("UPDATE volumes SET filled = first - 1 WHERE volume = ?", (volume,))


def shrink(connection: sqlite3.Connection) -> None:
    """Give free pages back to the file system, if there are many."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if free > max(_FREE_PAGES, pages // 8):
        # executescript runs it to the end; execute would free one page only.
        connection.executescript("PRAGMA incremental_vacuum")


def _version(connection: sqlite3.Connection) -> int:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version) if application == _APPLICATION_ID else 0


def _open(path: Path) -> sqlite3.Connection:
    with suppress(FileExistsError):
        path.touch(mode=0o600, exist_ok=False)
    if path.stat().st_size:
        with closing(open_for_reading(path)) as reader:
            (tables,) = reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            is_foreign = tables and _version(reader) != VERSION
        if is_foreign:
            delete_index(path)
            path.touch(mode=0o600)
    connection = sqlite3.connect(
        path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        # FTS5 merges free many pages. This must be set before any table exists.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        # Entries that are lost with the power are indexed again.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON").fetchone()
        connection.execute(SMALL_CACHE)
        _create_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) != VERSION:
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
