"""What was found of a damaged store, told apart by the shape of its rows.

A fact says itself which session it is of and which place it has there, and a blob is named by its
own hash, so neither needs the tables that once pointed to it. What was found waits in a database
without a name, which is gone when it is closed.
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
from keryx.store.sqlite.recovery.cells import PageRows, Row, rows_on
from keryx.store.sqlite.recovery.pages import Pages, open_pages

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_SESSION_COLUMNS: Final = 10
# What is counted never comes near; a damaged number that was taken for one would leave no room.
_TOO_MUCH: Final = 2**48
_TABLES: Final = (
    "CREATE TABLE sessions (session_id TEXT PRIMARY KEY, no, epoch, last_seq, position)",
    "CREATE TABLE events (no, seq, session_id, body, PRIMARY KEY (no, seq))",
    # The last fact of a session that anything else tells of.
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


def find(path: Path) -> tuple[sqlite3.Connection, int]:
    """All rows of the file that can be read, and how many of its pages cannot."""
    found = sqlite3.connect("", isolation_level=None)
    try:
        found.execute("PRAGMA synchronous = OFF")
        for statement in _TABLES:
            found.execute(statement)
        found.execute("BEGIN")
        with open_pages(path) as pages:
            unread = _read_all(pages, found)
        found.execute("COMMIT")
    except BaseException:
        found.close()
        raise
    return found, unread


def _read_all(pages: Pages, found: sqlite3.Connection) -> int:
    """Keep the rows of every page; how many pages could not be read as a whole."""
    unread = pages.missing + pages.is_cut
    without_rows: set[int] = set()
    overflow: set[int] = set()
    for number in pages:
        page = rows_on(pages, number)
        unread += _keep_rows(found, page)
        overflow |= page.overflow
        if not page.is_of_tree and number > 1:
            without_rows.add(number)
        elif not page.is_of_tree:
            unread += 1
    rest = without_rows - overflow - _free(pages)
    return unread + sum(any(pages.read(number)) for number in rest)


def _free(pages: Pages) -> set[int]:
    """The pages that are listed as free."""
    found: set[int] = set()
    trunk = int.from_bytes(pages.read(1)[32:36], "big")
    while trunk and trunk not in found and (page := pages.read(trunk)):
        found.add(trunk)
        count = min(int.from_bytes(page[4:8], "big"), pages.usable // 4 - 2)
        found.update(int.from_bytes(page[at : at + 4], "big") for at in range(8, 8 + 4 * count, 4))
        trunk = int.from_bytes(page[:4], "big")
    return found


def _keep_rows(found: sqlite3.Connection, page: PageRows) -> bool:
    """Whether something on it could not be read."""
    is_whole = page.is_whole or not page.is_of_tree
    for row in page.rows:
        # A number that is too large for SQLite never came from it.
        with suppress(OverflowError, sqlite3.Error):
            is_whole = _keep(found, row) and is_whole
    return not is_whole


def _keep(found: sqlite3.Connection, row: Row) -> bool:
    return _keep_of_table(found, row) if row.number is not None else _keep_of_index(found, row)


def _keep_of_table(found: sqlite3.Connection, row: Row) -> bool:
    match row.values:
        case (int(no), int(seq), str(kind), bytes(body)):
            return _keep_event(found, no, seq, kind, body)
        case (str(name), bytes(data)) if _HASH.fullmatch(name):
            if blob_hash(data) != name:
                return False
            found.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (name, data))
        case (None, str(id_), int(no), str(topic), bytes(body)):
            values = (id_, row.number, no, topic, body)
            found.execute("INSERT OR IGNORE INTO outbox VALUES (?, ?, ?, ?, ?)", values)
        case (None, str(session_id), int(epoch), int(last_seq), int(position), *_) if (
            len(row.values) >= _SESSION_COLUMNS
        ):
            if not all(0 <= value < _TOO_MUCH for value in (epoch, last_seq, position)):
                return False
            values = (session_id, row.number, epoch, last_seq, position)
            found.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?)", values)
        case _:
            pass
    return True


def _keep_event(found: sqlite3.Connection, no: int, seq: int, kind: str, body: bytes) -> bool:
    _trace(found, no, seq)
    try:
        # Parts that are kept as they came are not looked at by the decoder.
        body.decode()
        event = decode_logged(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    if event.seq != seq or type_of(event) != kind:
        return False
    values = (no, seq, event.session_id, body)
    found.execute("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)", values)
    return True


def _keep_of_index(found: sqlite3.Connection, row: Row) -> bool:
    """Rows of tables that are kept in the order of their keys, among those of plain indexes."""
    run = found.execute
    match row.values:
        case (int(no), str(key), bytes(body), int() | None as pending):
            run("INSERT OR IGNORE INTO inbox VALUES (?, ?, ?, ?)", (no, key, body, pending))
            _trace(found, no, 0)
        case (int(no), str(name)) if not _HASH.fullmatch(name):
            run("INSERT OR IGNORE INTO claims VALUES (?, ?)", (no, name))
            _trace(found, no, 0)
        case (str(name), int(no)) if _HASH.fullmatch(name):
            run("INSERT OR IGNORE INTO names VALUES (?, ?)", (name, no))
        case (str(name), int(value)) if name in _META and 0 <= value < _TOO_MUCH:
            run("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, value))
        case (int(no), int(seq), str() | None, int(), str()):
            _trace(found, no, seq)
        case (str(key), int(version), bytes(value)):
            run("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", (key, version, value))
        case _:
            pass
    return True


def _trace(found: sqlite3.Connection, no: int, seq: int) -> None:
    found.execute(
        "INSERT INTO traces VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = max(seq, excluded.seq)",
        (no, seq),
    )


def column(rows: Iterable[tuple[str]]) -> list[str]:
    """The one value of each row."""
    return [value for (value,) in rows]
