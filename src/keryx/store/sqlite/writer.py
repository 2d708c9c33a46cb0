"""All writing, on one connection: changes that arrive during a commit are committed together.

The queue of changes belongs to the loop; the connection belongs to the one thread that writes at
that moment. Each change has a savepoint of its own, so that a refused change does not affect the
others. It refuses to know what the changes are.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from keryx.aio.bridge import Bridge
from keryx.errors import FencedError, ScopeClosedError, StoreDamagedError, StoreError
from keryx.store.sqlite.faults import STATEMENT_ERRORS, as_store_error
from keryx.store.sqlite.files import LOCK_TIMEOUT, close_unchanged
from keryx.store.sqlite.transaction import Transaction, get_meta, set_meta

T = TypeVar("T")
Change = Callable[[Transaction], T]
_Waiter = tuple[Change[Any], asyncio.Future[Any]]

# The first change of a batch waits for the last one, so a batch is limited.
MAX_BATCH: Final = 256
# Files up to this size are purged right after a delete, at 200 MB a second; larger files when the
# store is closed, because nothing else can be written meanwhile.
PURGE_SIZE: Final = 64 * 1024 * 1024
# Readers may block the checkpoint; a delete does not wait long for them.
_PURGE_TIMEOUT: Final = 0.1


class Writer:
    """The connection that writes, and the queue of changes that wait for it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        host: int | None,
        path: Path,
        bridge: Bridge,
        on_commit: Callable[[], None],
    ) -> None:
        """`host` is the number that every transaction compares; None for a guest.

        A guest is fenced only by the epochs of its sessions, and leaves the purge to the host.
        """
        self._connection = connection
        self._host = host
        self._on_commit = on_commit
        self._path = path
        self._bridge = bridge
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiter] = deque()
        self._is_busy = False
        self._idle: asyncio.Future[None] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._closed = False
        self._damage: StoreDamagedError | None = None

    def submit(self, change: Change[T]) -> asyncio.Future[T]:
        """Make the change durable. It is written or refused even if the caller stops waiting."""
        if self._closed:
            raise ScopeClosedError("the store is closed; nothing was written")
        if self._damage is not None:
            raise _copy_of(self._damage)
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append((change, future))
        self._start_commit()
        return future

    def lead(self, host: int, on_commit: Callable[[], None]) -> None:
        """Write as the host of the file from now on, no longer as a guest."""
        self._host, self._on_commit = host, on_commit

    def stop_writing(self, damage: StoreDamagedError) -> None:
        """Refuse all further changes, because the file is damaged."""
        self._damage = self._damage or damage

    async def close(self) -> None:
        """Write all submitted changes, then close the file."""
        self._closed = True
        while self._is_busy:
            self._idle = self._idle or self._loop.create_future()
            await asyncio.shield(self._idle)
        if self._closing is None:
            self._closing = self._bridge.start_thread(self._close_file, name="close").future
        await asyncio.shield(self._closing)

    # -- on the loop

    def _start_commit(self) -> None:
        while self._waiting and not self._is_busy:
            count = min(len(self._waiting), MAX_BATCH)
            batch = [self._waiting.popleft() for _ in range(count)]
            work = partial(self._commit, [change for change, _ in batch])
            try:
                thread_future = self._bridge.start_thread(work, name="commit").future
            except Exception as error:  # noqa: BLE001 (no thread, whatever the cause)
                for _, future in batch:
                    _refuse(future, StoreError(f"nothing was written: {error}"))
                continue
            self._is_busy = True
            thread_future.add_done_callback(partial(self._on_commit_done, batch))

    def _on_commit_done(
        self, batch: list[_Waiter], thread_future: asyncio.Future[list[_Outcome]]
    ) -> None:
        self._is_busy = False
        if thread_future.cancelled():
            message = (
                "the host was closed meanwhile; open the session again to see if it was written"
            )
            for _, future in batch:
                _refuse(future, StoreError(message))
        elif (error := thread_future.exception()) is not None:
            if isinstance(error, StoreDamagedError):
                self.stop_writing(error)
            for _, future in batch:
                _refuse(future, _copy_of(error))
        else:
            self._on_commit()
            for (_, future), outcome in zip(batch, thread_future.result(), strict=True):
                outcome.deliver(future)
        self._start_commit()
        if not self._is_busy and self._idle is not None:
            self._idle.set_result(None)
            self._idle = None

    # -- in the thread that writes

    def _commit(self, changes: Sequence[Change[Any]]) -> list[_Outcome]:
        execute = self._connection.execute
        transaction = Transaction(self._connection)
        try:
            execute("BEGIN IMMEDIATE")
            if self._host is not None and get_meta(self._connection, "host") != self._host:
                raise FencedError("another host has taken this store over; nothing was written")
            outcomes = (
                [_Outcome(changes[0](transaction), None)]
                if len(changes) == 1  # it is rolled back with the transaction
                else [self._try(change, transaction) for change in changes]
            )
            execute("COMMIT")
        except sqlite3.Error as error:
            raise as_store_error(self._path, error) from error
        finally:
            # Some errors roll back by themselves, and a failing disk may refuse the rollback too.
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    execute("ROLLBACK")
        if transaction.needs_purge and self._host is not None:
            self._purge(PURGE_SIZE)
        return outcomes

    def _try(self, change: Change[Any], transaction: Transaction) -> _Outcome:
        execute = self._connection.execute
        execute("SAVEPOINT change")
        try:
            outcome = _Outcome(change(transaction), None)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, STATEMENT_ERRORS):
                raise
            execute("ROLLBACK TO change")
            outcome = _Outcome(None, error)
        execute("RELEASE change")
        return outcome

    def _purge(self, max_size: float) -> None:
        """Remove all copies of deleted rows, if the file is not larger than `max_size`.

        SQLite overwrites deleted rows, but while it moves other rows it leaves copies in unused
        parts of pages. Only a rewrite of the whole file removes those.
        """
        execute = self._connection.execute
        # The rows are deleted already. If the purge fails, it is tried again later.
        with suppress(sqlite3.Error):
            size = (
                execute("PRAGMA page_count").fetchone()[0]
                * execute("PRAGMA page_size").fetchone()[0]
            )
            if size > max_size:
                return
            execute("VACUUM")
            execute(f"PRAGMA busy_timeout = {_PURGE_TIMEOUT * 1000:.0f}")
            (is_held_back, *_) = self._empty_log()
            if not is_held_back:
                set_meta(self._connection, "purge", 0)
                self._empty_log()
        with suppress(sqlite3.Error):
            execute(f"PRAGMA busy_timeout = {LOCK_TIMEOUT * 1000:.0f}")

    def _is_taken_over(self) -> bool:
        with suppress(sqlite3.Error):
            return self._host is not None and get_meta(self._connection, "host") != self._host
        return False

    def _empty_log(self) -> tuple[int, ...]:
        return self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _close_file(self) -> None:
        if self._damage is not None or self._is_taken_over():
            close_unchanged(self._path, self._connection)
            return
        with suppress(sqlite3.Error):
            if self._host is not None and get_meta(self._connection, "purge"):
                self._purge(math.inf)
        self._connection.close()


class _Outcome:
    """The result of one change: a value or an error."""

    __slots__ = ("_error", "_value")

    def __init__(self, value: object, error: Exception | None) -> None:
        self._value = value
        self._error = error

    def deliver(self, future: asyncio.Future[Any]) -> None:
        if self._error is not None:
            _refuse(future, self._error)
        elif not future.done():
            future.set_result(self._value)


def _refuse(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _copy_of(error: BaseException) -> BaseException:
    """Return a copy for each waiting caller, because raising an error changes it."""
    return type(error)(str(error)) if isinstance(error, StoreError) else error
