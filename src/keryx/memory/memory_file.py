"""The file of the memories: one connection writes, another reads, each in one thread at a time.

What waits while a transaction runs is committed together in the next one. The file follows from
the logs and from what people entered; several processes of a home may write it, with SQLite's lock.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from keryx.aio.bridge import Bridge
from keryx.errors import ScopeClosedError, StoreError, UserMustActError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

# Seconds. Transactions take milliseconds; only a process that is frozen holds the lock longer.
LOCK_TIMEOUT: Final = 5.0
MAX_BATCH: Final = 200


class Schema(msgspec.Struct, frozen=True):
    """The tables of a file; one of them is `words`, an index of FTS5."""

    version: int
    statements: str


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


class MemoryFile:
    """The file, opened when it is first used. Belongs to one loop."""

    def __init__(self, path: Path, bridge: Bridge, schema: Schema = MEMORIES) -> None:
        self.path: Final = path
        self._writes = _Lane(path, bridge, schema, writes=True)
        self._reads = _Lane(path, bridge, schema, writes=False)

    async def write(self, change: Work[T]) -> T:
        """Make a change in a transaction; it is done or refused even if the caller is cancelled."""
        return await asyncio.shield(self._writes.submit(change))

    async def read(self, query: Work[T]) -> T:
        return await self._reads.submit(query)

    async def purge(self) -> None:
        """Remove all copies of erased rows from the file, as far as no reader holds them."""
        await asyncio.shield(self._writes.submit(_purge, alone=True))

    async def close(self) -> None:
        """Finish what was submitted, and close the file. A second call does nothing."""
        await self._reads.close()
        await self._writes.close()


class _Lane:
    """One connection and the work that waits for it; a thread does one batch at a time."""

    def __init__(self, path: Path, bridge: Bridge, schema: Schema, *, writes: bool) -> None:
        self._path = path
        self._schema = schema
        self._bridge = bridge
        self._is_writing = writes
        self._connection: sqlite3.Connection | None = None
        self._waiting: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._alone: set[Work[Any]] = set()
        self._batch: asyncio.Future[list[Any]] | None = None
        self._closed = False

    def submit(self, work: Work[T], *, alone: bool = False) -> asyncio.Future[T]:
        """`alone`: outside of a transaction, by itself."""
        if self._closed:
            raise ScopeClosedError("the file of memories is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if alone:
            self._alone.add(work)
        self._waiting.append((work, future))
        self._start()
        return future

    async def close(self) -> None:
        self._closed = True
        while self._batch is not None:
            await asyncio.wait([self._batch])
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await self._bridge.to_thread(connection.close)

    def _start(self) -> None:
        if self._batch is not None or not self._waiting:
            return
        count = next(
            (at for at, (work, _) in enumerate(self._waiting) if work in self._alone),
            len(self._waiting),
        )
        count = min(count, MAX_BATCH) or 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        work = partial(self._run, [work for work, _ in batch])
        try:
            self._batch = self._bridge.start_thread(work, name="memories").future
        except Exception as error:  # noqa: BLE001 (no thread, whatever the cause)
            for _, future in batch:
                _resolve(future, StoreError(f"the memories cannot be reached: {error}"))
            return
        self._batch.add_done_callback(partial(self._on_done, batch))

    def _on_done(
        self, batch: list[tuple[Work[Any], asyncio.Future[Any]]], done: asyncio.Future[list[Any]]
    ) -> None:
        self._batch = None
        error = StoreError("the host was closed meanwhile") if done.cancelled() else None
        results = [error] * len(batch) if error is not None else done.result()
        for (_, future), result in zip(batch, results, strict=True):
            _resolve(future, result)
        self._start()

    # -- in the thread

    def _run(self, batch: Sequence[Work[Any]]) -> list[Any]:
        """Return the result of each piece of work; an exception is returned as its result."""
        try:
            if self._connection is None:
                self._connection = _open(self._path, self._schema)
            if not self._is_writing or batch[0] in self._alone:
                return [self._try(self._connection, work) for work in batch]
            return self._commit(self._connection, batch)
        except (sqlite3.Error, OSError, UserMustActError) as error:
            self._drop_connection()
            return [_as_store_error(self._path, error)] * len(batch)

    def _commit(self, connection: sqlite3.Connection, batch: Sequence[Work[Any]]) -> list[Any]:
        connection.execute("BEGIN IMMEDIATE")
        results: list[Any] = []
        for work in batch:
            connection.execute("SAVEPOINT work")
            result = self._try(connection, work)
            if isinstance(result, Exception):
                connection.execute("ROLLBACK TO work")
            connection.execute("RELEASE work")
            results.append(result)
        connection.execute("COMMIT")
        return results

    def _try(self, connection: sqlite3.Connection, work: Work[Any]) -> Any:
        try:
            return work(connection)
        except sqlite3.Error as error:
            return _as_store_error(self._path, error)
        except Exception as error:  # noqa: BLE001 (the caller gets it)
            return error

    def _drop_connection(self) -> None:
        """Close the connection: the next use opens the file anew."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            self._connection.close()
            self._connection = None


def _purge(connection: sqlite3.Connection) -> None:
    # The index keeps the words of deleted rows until its parts are merged.
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _resolve(future: asyncio.Future[Any], result: object) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)


def _open(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open the file, and create it if there is none."""
    path.touch(mode=0o600, exist_ok=True)
    connection = sqlite3.connect(
        path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        _migrate(path, connection, schema)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(path: Path, connection: sqlite3.Connection, schema: Schema) -> None:
    if _version(connection) == schema.version:
        return
    connection.execute("BEGIN IMMEDIATE")
    version = _version(connection)
    if version > schema.version:
        connection.execute("ROLLBACK")
        raise UserMustActError(
            f"{path} was written by a newer version of Keryx; use that version, or move the file"
        )
    if version == 0:
        create_tables(connection, schema)
        connection.execute(f"PRAGMA user_version = {schema.version}")
    connection.execute("COMMIT")


def create_tables(connection: sqlite3.Connection, schema: Schema = MEMORIES) -> None:
    for statement in schema.statements.split(";\n"):
        if statement.strip():
            connection.execute(statement)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _as_store_error(path: Path, error: Exception) -> Exception:
    if isinstance(error, UserMustActError):
        return error
    return StoreError(
        f"the memories in {path} cannot be read or written ({error}); check the disk, or move the "
        "file away and start again"
    )
