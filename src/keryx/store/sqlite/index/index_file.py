"""The file of the index: its tables, and how it is opened, or begun anew.

Words stand in volumes, one table of FTS5 for each so many entries, in the order in which they
were indexed. A search opens the last volume first and seldom needs the others; and when a
session is deleted, only the volumes that told of it are written anew. Blocking code.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from keryx.store.sqlite.faults import DAMAGED, primary_code
from keryx.store.sqlite.files import LOCK_PATIENCE, open_for_reading

NAME: Final = "search.db"

VERSION: Final = 1
"""Of the tables and of what a word is (`keryx.store.search`). Another one is indexed anew."""

_APPLICATION_ID: Final = 0x4B455257

_TABLES: Final = (
    # identity: of the store that it belongs to. position: all commits up to it are in.
    # deleted: how many sessions of the store were gone by then.
    # purge: the log of this file may still hold words of one of them.
    "CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO state VALUES ('identity', 0), ('position', 0), ('deleted', 0), ('purge', 0)",
    # seq: the session's facts up to it are in.
    "CREATE TABLE sessions (no INTEGER PRIMARY KEY, seq INTEGER NOT NULL)",
    # Which entry of a transcript is meant by the number that a volume knows it by, and which of
    # its texts.
    """CREATE TABLE entries (
        id INTEGER PRIMARY KEY, no INTEGER NOT NULL, seq INTEGER NOT NULL, text INTEGER NOT NULL
    )""",
    # The entries first..last belong to it; the words of those up to filled are in.
    """CREATE TABLE volumes (
        volume INTEGER PRIMARY KEY,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        filled INTEGER NOT NULL,
        letters INTEGER NOT NULL DEFAULT 0
    )""",
)

# So much may stay free, because what comes next needs it again.
_FREE_PAGES: Final = 64


def beside(store: Path) -> Path:
    return store.with_name(NAME)


def open_index(path: Path) -> sqlite3.Connection:
    """The connection that writes. What is no index of this version is replaced by an empty one."""
    try:
        return _open(path)
    except sqlite3.Error as error:
        if primary_code(error) not in DAMAGED:
            raise
    throw_away(path)
    return _open(path)


def read_index(path: Path) -> sqlite3.Connection | None:
    """A connection that cannot write; None if there is nothing that could be read."""
    if not path.is_file():
        return None
    connection = open_for_reading(path)
    if _version(connection) != VERSION:
        connection.close()
        return None
    return connection


def throw_away(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def empty(connection: sqlite3.Connection, identity: int) -> None:
    """Forget everything, for a store with that identity."""
    for (volume,) in connection.execute("SELECT volume FROM volumes").fetchall():
        connection.execute(f"DROP TABLE words_{volume}")
    for table in ("volumes", "entries", "sessions"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 (names of ours)
    connection.execute("UPDATE state SET value = 0")
    put(connection, "identity", identity)


def get(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return int(value)


def put(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute("UPDATE state SET value = ? WHERE name = ?", (value, name))


def make_volume(connection: sqlite3.Connection, volume: int) -> None:
    # Which entries a word is in, and nothing else of it: neither the text nor the places in it,
    # nor how long texts are. Words come folded, with a space between them, so that the simplest
    # way of cutting them apart is the right one.
    connection.execute(
        f"CREATE VIRTUAL TABLE words_{volume} USING fts5"
        "(words, content = '', detail = none, columnsize = 0, tokenize = 'ascii')"
    )


def empty_volume(connection: sqlite3.Connection, volume: int) -> None:
    """Nothing that was in it stays in the file: pages that become free are overwritten."""
    connection.execute(f"DROP TABLE words_{volume}")
    make_volume(connection, volume)
    connection.execute("UPDATE volumes SET filled = first - 1 WHERE volume = ?", (volume,))


def make_small(connection: sqlite3.Connection) -> None:
    """Give back what is free, if that is much."""
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    if free > max(_FREE_PAGES, pages // 8):
        # Only a script goes on to its end: each step gives back one page and no row to fetch.
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
            is_of_another = tables and _version(reader) != VERSION
        if is_of_another:
            throw_away(path)
            path.touch(mode=0o600)
    connection = sqlite3.connect(
        path, timeout=LOCK_PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        # Merging leaves as much free as it wrote; it must be set before there is anything else.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        # What is lost with the power is indexed again.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON").fetchone()
        _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
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
