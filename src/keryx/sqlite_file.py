"""A small SQLite file: one connection writes, another reads, each in one thread at a time.

What waits while a transaction runs is committed together in the next one. Several processes of a
home may write the file, with SQLite's lock. This module does not know what the tables hold.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from keryx.aio.acquire import release
from keryx.aio.bridge import Bridge
from keryx.errors import ScopeClosedError, StoreError, StoreTooNewError, UserMustActError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

# Seconds. Transactions take milliseconds; only a process that is frozen holds the lock longer.
LOCK_TIMEOUT: Final = 5.0
MAX_BATCH: Final = 200


class Schema(msgspec.Struct, frozen=True):
    """The tables of a file, and what the file holds, for error texts."""

    version: int
    statements: str
    holds: str = "the memories"
    upgrades: Mapping[int, str] = {}
    """The statements that lead to a version from the one before it."""
    advice: str = "check the disk, or move the file away and start again"
    """What a person does about a file that cannot be used."""


class SqliteFile:
    """The file, opened when it is first used. Belongs to one loop."""

    def __init__(self, path: Path, bridge: Bridge, schema: Schema) -> None:
        self.path: Final = path
        self._writes = _Lane(path, bridge, schema, writes=True)
        self._reads = _Lane(path, bridge, schema, writes=False)

    async def write(self, change: Work[T]) -> T:
        """Make a change in a transaction; it is done or refused even if the caller is cancelled."""
        return await asyncio.shield(self._writes.submit(change))

    async def read(self, query: Work[T]) -> T:
        return await self._reads.submit(query)

    async def write_alone(self, change: Work[T]) -> T:
        """Make a change outside of a transaction, by itself."""
        return await asyncio.shield(self._writes.submit(change, alone=True))

    async def close(self) -> None:
        """Finish what was submitted, and close the file. A second call does nothing."""
        await self._reads.close()
        await self._writes.close()


def check_file(
    path: Path, schema: Schema, query: Work[T] | None = None, *, thorough: bool = False
) -> T | None:
    """Raise `StoreError` if the file is damaged, of a newer version or not ours to use.

    Return the answer to the query; None if there is no file. Blocking; nothing is changed or
    created. `thorough` reads all of the file, otherwise its beginning and its tables are read.
    """
    if not os.path.lexists(path):
        return None
    if not path.is_file() or not os.access(path, os.R_OK | os.W_OK):
        raise _as_store_error(path, schema, OSError("it is no file that may be read and written"))
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if _version(connection) > schema.version:
                raise _too_new(path, schema)
            if thorough:
                (report,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if report != "ok":
                    raise sqlite3.DatabaseError(" ".join(str(report).split()))
            return None if query is None else query(connection)
    except (sqlite3.Error, OSError) as error:
        raise _as_store_error(path, schema, error) from error


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
            raise ScopeClosedError(f"the file of {self._schema.holds} is closed")
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
            await release(self._bridge, connection.close)

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
            self._batch = self._bridge.start_thread(work, name=self._path.stem).future
        except Exception as error:  # noqa: BLE001 (no thread, whatever the cause)
            for _, future in batch:
                _resolve(future, StoreError(f"{self._schema.holds} cannot be reached: {error}"))
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
            return [_as_store_error(self._path, self._schema, error)] * len(batch)

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
            return _as_store_error(self._path, self._schema, error)
        except Exception as error:  # noqa: BLE001 (the caller gets it)
            return error

    def _drop_connection(self) -> None:
        """Close the connection: the next use opens the file anew."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.rollback()
            self._connection.close()
            self._connection = None


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
        raise _too_new(path, schema)
    if version == 0:
        create_tables(connection, schema)
    else:
        for number in range(version + 1, schema.version + 1):
            _execute(connection, schema.upgrades[number])
    connection.execute(f"PRAGMA user_version = {schema.version}")
    connection.execute("COMMIT")


def create_tables(connection: sqlite3.Connection, schema: Schema) -> None:
    _execute(connection, schema.statements)


def _execute(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.execute(statement)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _too_new(path: Path, schema: Schema) -> StoreTooNewError:
    return StoreTooNewError(
        f"{path} was written by a newer version of Keryx; use that version, or: {schema.advice}"
    )


def _as_store_error(path: Path, schema: Schema, error: Exception) -> Exception:
    if isinstance(error, UserMustActError):
        return error
    return StoreError(
        f"{schema.holds} in {path} cannot be read or written ({error}); {schema.advice}"
    )
