"""Scans a damaged store, and recognizes the table of a row by the shape of the row.

An event has its session and its number in it, and a blob is named by its own hash, so neither
needs the tables that pointed to it. The rows go to a temporary database, which vanishes when it
is closed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from keryx.events import decode_logged, type_of
from keryx.ports.store import blob_hash
from keryx.store.sqlite.recovery.cells import PageRows, Row, read_rows
from keryx.store.sqlite.recovery.pages import Pages, open_pages

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_SESSION_COLUMNS: Final = 10
# No counter comes near this; a damaged counter that is too large would leave no room to count on.
_COUNTER_LIMIT: Final = 2**48
_TABLES: Final = (
    "CREATE TABLE sessions (session_id TEXT PRIMARY KEY, no, epoch, last_seq, position)",
    "CREATE TABLE events (no, seq, session_id, body, PRIMARY KEY (no, seq))",
    # The last event number of each session that any row mentions.
    "CREATE TABLE traces (no INTEGER PRIMARY KEY, seq)",
    "CREATE TABLE blobs (hash TEXT PRIMARY KEY, data)",
    "CREATE TABLE names (hash, no, PRIMARY KEY (hash, no))",
    "CREATE TABLE inbox (no, key, body, pending, PRIMARY KEY (no, key))",
    "CREATE TABLE claims (no, name, PRIMARY KEY (no, name))",
    "CREATE TABLE outbox (id TEXT PRIMARY KEY, place, no, topic, body)",
    "CREATE TABLE records (key TEXT PRIMARY KEY, version, value)",
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value)",
)
_META: Final = ("position", "floor")


def scan_store(path: Path) -> tuple[sqlite3.Connection, int]:
    """Return all readable rows of the file, and the count of its unreadable pages."""
    database = sqlite3.connect("", isolation_level=None)
    try:
        database.execute("PRAGMA synchronous = OFF")
        for statement in _TABLES:
            database.execute(statement)
        database.execute("BEGIN")
        with open_pages(path) as pages:
            unread = _read_all(pages, database)
        database.execute("COMMIT")
    except BaseException:
        database.close()
        raise
    return database, unread


def _read_all(pages: Pages, database: sqlite3.Connection) -> int:
    """Insert the rows of every page; return how many pages could not be read completely."""
    unread = pages.missing + pages.is_cut
    without_rows: set[int] = set()
    overflow: set[int] = set()
    for number in pages:
        page = read_rows(pages, number)
        unread += _insert_rows(database, page)
        overflow |= page.overflow
        if not page.is_of_tree and number > 1:
            without_rows.add(number)
        elif not page.is_of_tree:
            unread += 1
    unexplained = without_rows - overflow - _free_pages(pages)
    return unread + sum(any(pages.read(number)) for number in unexplained)


def _free_pages(pages: Pages) -> set[int]:
    """Return the pages that the file lists as free."""
    free: set[int] = set()
    trunk = int.from_bytes(pages.read(1)[32:36], "big")
    while trunk and trunk not in free and (page := pages.read(trunk)):
        free.add(trunk)
        count = min(int.from_bytes(page[4:8], "big"), pages.usable // 4 - 2)
        free.update(int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * count, 4))
        trunk = int.from_bytes(page[:4], "big")
    return free


def _insert_rows(database: sqlite3.Connection, page: PageRows) -> bool:
    """Insert the rows of a page; return whether something on it could not be read."""
    is_complete = page.is_complete or not page.is_of_tree
    for row in page.rows:
        # SQLite never wrote a number that is too large for it.
        with suppress(OverflowError, sqlite3.Error):
            is_complete = _insert(database, row) and is_complete
    return not is_complete


def _insert(database: sqlite3.Connection, row: Row) -> bool:
    return (
        _insert_table_row(database, row)
        if row.number is not None
        else _insert_index_row(database, row)
    )


def _insert_table_row(database: sqlite3.Connection, row: Row) -> bool:
    match row.values:
        case (int(no), int(seq), str(kind), bytes(body)):
            return _insert_event(database, no, seq, kind, body)
        case (str(name), bytes(data)) if _HASH.fullmatch(name):
            if blob_hash(data) != name:
                return False
            database.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (name, data))
        case (None, str(id_), int(no), str(topic), bytes(body)):
            values = (id_, row.number, no, topic, body)
            database.execute("INSERT OR IGNORE INTO outbox VALUES (?, ?, ?, ?, ?)", values)
        case (None, str(session_id), int(epoch), int(last_seq), int(position), *_) if (
            len(row.values) >= _SESSION_COLUMNS
        ):
            if not all(0 <= value < _COUNTER_LIMIT for value in (epoch, last_seq, position)):
                return False
            values = (session_id, row.number, epoch, last_seq, position)
            database.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)", values)
        case _:
            pass
    return True


def _insert_event(database: sqlite3.Connection, no: int, seq: int, kind: str, body: bytes) -> bool:
    _trace(database, no, seq)
    try:
        # The decoder does not check the text of raw parts.
        body.decode()
        event = decode_logged(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    if event.seq != seq or type_of(event) != kind:
        return False
    values = (no, seq, event.session_id, body)
    database.execute("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)", values)
    return True


def _insert_index_row(database: sqlite3.Connection, row: Row) -> bool:
    """Insert a row of a table without rowids; ignore rows of plain indexes."""
    execute = database.execute
    match row.values:
        case (int(no), str(key), bytes(body), int() | None as pending):
            execute("INSERT OR IGNORE INTO inbox VALUES (?, ?, ?, ?)", (no, key, body, pending))
            _trace(database, no, 0)
        case (int(no), str(name)) if not _HASH.fullmatch(name):
            execute("INSERT OR IGNORE INTO claims VALUES (?, ?)", (no, name))
            _trace(database, no, 0)
        case (str(name), int(no)) if _HASH.fullmatch(name):
            execute("INSERT OR IGNORE INTO names VALUES (?, ?)", (name, no))
        case (str(name), int(value)) if name in _META and 0 <= value < _COUNTER_LIMIT:
            execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, value))
        case (int(no), int(seq), str() | None, int(), str()):
            _trace(database, no, seq)
        case (str(key), int(version), bytes(value)):
            execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", (key, version, value))
        case _:
            pass
    return True


def _trace(database: sqlite3.Connection, no: int, seq: int) -> None:
    database.execute(
        "INSERT INTO traces VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = max(seq, excluded.seq)",
        (no, seq),
    )


def column(rows: Iterable[tuple[str]]) -> list[str]:
    """Return the single value of each row."""
    return [value for (value,) in rows]
