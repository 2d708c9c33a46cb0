"""The file of the memories: its tables, and how erased rows leave it.

The file follows from the logs and from what people entered. If it cannot be used, that is noted
until it can be used again; nothing here replaces or removes a damaged file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from keryx.aio.bridge import Bridge
from keryx.errors import StoreError
from keryx.sqlite_file import Schema, SqliteFile, Work
from keryx.sqlite_file import create_tables as create_tables_of

T = TypeVar("T")

_PUT_ASIDE: Final = """
CREATE TABLE put_aside (
  session_id TEXT NOT NULL, turn_id TEXT NOT NULL, note BLOB NOT NULL,
  PRIMARY KEY (session_id, turn_id)
) STRICT, WITHOUT ROWID;
"""

MEMORIES: Final = Schema(
    2,
    """
CREATE TABLE memories (
  no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, kind TEXT NOT NULL,
  about TEXT NOT NULL, trust TEXT NOT NULL, profile TEXT NOT NULL, workspace TEXT NOT NULL,
  created_at REAL NOT NULL, state TEXT NOT NULL, replaces TEXT, session_id TEXT NOT NULL,
  turn_id TEXT, ended_by TEXT
) STRICT;
CREATE INDEX memories_by_scope ON memories (profile, workspace, state, no);
CREATE INDEX memories_by_turn ON memories (session_id, turn_id);
CREATE INDEX memories_by_end ON memories (ended_by) WHERE ended_by IS NOT NULL;
CREATE TABLE sources (
  memory TEXT NOT NULL, session_id TEXT NOT NULL, seq INTEGER NOT NULL, turn_id TEXT, call_id TEXT,
  PRIMARY KEY (memory, session_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX sources_by_session ON sources (session_id);
CREATE VIRTUAL TABLE words USING fts5 (
  text, content = 'memories', content_rowid = 'no', tokenize = "unicode61 remove_diacritics 2"
);
CREATE TABLE deliveries (
  place INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL, item TEXT NOT NULL,
  session_id TEXT NOT NULL, digest BLOB NOT NULL, body BLOB NOT NULL, state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', since REAL NOT NULL,
  UNIQUE (provider, item)
) STRICT;
CREATE INDEX deliveries_open ON deliveries (provider, state, session_id, place)
  WHERE state != 'done';
CREATE INDEX deliveries_by_text ON deliveries (provider, session_id, digest);
CREATE TABLE applied (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE breakers (
  provider TEXT PRIMARY KEY, failures INTEGER NOT NULL, retry_at REAL NOT NULL, error TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE operations (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, at REAL NOT NULL, session_id TEXT NOT NULL, turn_id TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX operations_by_turn ON operations (session_id, turn_id);
"""
    + _PUT_ASIDE,
    upgrades={2: _PUT_ASIDE},
    advice=(
        "check the disk and the rights of the file; if it is damaged, move memory.db, "
        "memory.db-wal and memory.db-shm away together and start Keryx again: the memory then "
        "begins anew with what sessions remember meanwhile, and what was remembered before stays "
        "in the files that you moved (docs/memory.md)"
    ),
)


class MemoryFile(SqliteFile):
    """The file, opened when it is first used; one of its tables is `words`, an index of FTS5."""

    def __init__(self, path: Path, bridge: Bridge, schema: Schema = MEMORIES) -> None:
        super().__init__(path, bridge, schema)
        self._faults: dict[str, StoreError] = {}
        self._is_open = False

    @property
    def fault(self) -> StoreError | None:
        """Why the file could not be read or written the last time; None: it could."""
        return next(iter(self._faults.values()), None)

    async def check(self) -> StoreError | None:
        """Return why the file cannot be used; one that was never used or failed is tried."""
        with suppress(StoreError):
            if self._faults:
                await self.write(_write_version)
            elif not self._is_open:
                await self.read(lambda connection: connection.execute("SELECT 1").fetchone())
        return self.fault

    async def write(self, change: Work[T]) -> T:
        with self._noting("write"):
            result = await super().write(change)
        self._faults.clear()  # what can be written can be read
        return result

    async def read(self, query: Work[T]) -> T:
        with self._noting("read"):
            result = await super().read(query)
        self._faults.pop("read", None)
        return result

    @contextmanager
    def _noting(self, name: str) -> Generator[None]:
        try:
            yield
        except StoreError as error:
            self._faults[name] = error
            raise
        self._is_open = True

    async def purge(self) -> None:
        """Remove all copies of erased rows from the file, as far as no reader holds them."""
        await self.write_alone(_purge)


def create_tables(connection: sqlite3.Connection, schema: Schema = MEMORIES) -> None:
    create_tables_of(connection, schema)


def _write_version(connection: sqlite3.Connection) -> None:
    """Write what is there already: a change of one page, which fails if nothing can be written."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version}")


def _purge(connection: sqlite3.Connection) -> None:
    # The index keeps the words of deleted rows until its parts are merged.
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
