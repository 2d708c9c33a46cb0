"""The file of the memories: its tables, and how erased rows leave it.

The file follows from the logs and from what people entered.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.sqlite_file import Schema, SqliteFile
from keryx.sqlite_file import create_tables as create_tables_of

MEMORIES: Final = Schema(
    1,
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
""",
)


class MemoryFile(SqliteFile):
    """The file, opened when it is first used; one of its tables is `words`, an index of FTS5."""

    def __init__(self, path: Path, bridge: Bridge, schema: Schema = MEMORIES) -> None:
        super().__init__(path, bridge, schema)

    async def purge(self) -> None:
        """Remove all copies of erased rows from the file, as far as no reader holds them."""
        await self.write_alone(_purge)


def create_tables(connection: sqlite3.Connection, schema: Schema = MEMORIES) -> None:
    create_tables_of(connection, schema)


def _purge(connection: sqlite3.Connection) -> None:
    # The index keeps the words of deleted rows until its parts are merged.
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
