"""Reading: a few connections that cannot write, each used by one thread at a time.

Reads never wait for writes, nor writes for reads. The queue of waiting queries belongs to the loop.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from keryx.aio.bridge import Bridge
from keryx.errors import ScopeClosedError, StoreDamagedError, StoreError
from keryx.store.sqlite.faults import as_store_error
from keryx.store.sqlite.files import open_for_reading

T = TypeVar("T")
Query = Callable[[sqlite3.Connection], T]

# Reads are short and mostly in memory, so more connections would not make them faster.
MAX_READERS: Final = 4


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Generator[None]:
    """Let several statements see the same state of the tables."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


class Readers:
    """The connections that read, and the queue of queries that wait for one."""

    def __init__(
        self,
        path: Path,
        bridge: Bridge,
        on_damage: Callable[[StoreDamagedError], None],
        on_close: Callable[[], None],
    ) -> None:
        self._on_close = on_close
        self._bridge = bridge
        self._on_damage = on_damage
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[Query[Any], asyncio.Future[Any]]] = deque()
        self._readers = [_Reader(path) for _ in range(MAX_READERS)]
        # The reader that was used last is used next, so a quiet store opens one connection.
        self._idle = self._readers[::-1]
        self._all_idle: asyncio.Future[None] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._closed = False

    def submit(self, query: Query[T]) -> asyncio.Future[T]:
        if self._closed:
            raise ScopeClosedError("the store is closed; nothing can be read")
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append((query, future))
        self._start_queries()
        return future

    async def close(self) -> None:
        """Wait for the running queries, then close the connections."""
        self._closed = True
        while len(self._idle) < len(self._readers):
            self._all_idle = self._all_idle or self._loop.create_future()
            await asyncio.shield(self._all_idle)
        if self._closing is None:
            self._closing = self._bridge.start_thread(self._close_all, name="close").future
        await asyncio.shield(self._closing)

    def _start_queries(self) -> None:
        while self._waiting and self._idle:
            query, future = self._waiting.popleft()
            if future.done():
                continue
            reader = self._idle.pop()
            try:
                thread_future = self._bridge.start_thread(
                    partial(reader.read, query), name="read"
                ).future
            except Exception as error:  # noqa: BLE001 (no thread, whatever the cause)
                self._idle.append(reader)
                future.set_exception(StoreError(f"nothing can be read: {error}"))
                continue
            thread_future.add_done_callback(partial(self._on_query_done, reader, future))

    def _on_query_done(
        self, reader: _Reader, future: asyncio.Future[Any], thread_future: asyncio.Future[Any]
    ) -> None:
        self._idle.append(reader)
        error = None if thread_future.cancelled() else thread_future.exception()
        if isinstance(error, StoreDamagedError):
            self._on_damage(error)
        if not future.done():
            if thread_future.cancelled():
                future.set_exception(StoreError("the host was closed meanwhile"))
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(thread_future.result())
        self._start_queries()
        if self._all_idle is not None and len(self._idle) == len(self._readers):
            self._all_idle.set_result(None)
            self._all_idle = None

    def _close_all(self) -> None:
        for reader in self._readers:
            reader.close()
        self._on_close()


class _Reader:
    """One connection; it is opened when it is first used."""

    __slots__ = ("_connection", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def read(self, query: Query[T]) -> T:
        try:
            if self._connection is None:
                self._connection = open_for_reading(self._path)
            return query(self._connection)
        except sqlite3.Error as error:
            raise as_store_error(self._path, error) from error

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
