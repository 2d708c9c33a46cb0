"""All writing, on one connection: what comes while a commit is under way is committed together.

The tables of who waits belong to the loop; the connection belongs to the one thread that writes
at that moment. Each change has a savepoint of its own, so that one that is refused touches no
other. It refuses to know what the changes are.
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
from keryx.store.sqlite.faults import OF_ONE_STATEMENT, as_store_error
from keryx.store.sqlite.files import LOCK_PATIENCE, close_unchanged
from keryx.store.sqlite.transaction import Transaction, get_meta, set_meta

T = TypeVar("T")
Change = Callable[[Transaction], T]
_Waiter = tuple[Change[Any], asyncio.Future[Any]]

# The first of those committed together waits for the last, so they are not too many.
MOST_TOGETHER: Final = 256
# Up to this size remains of deleted sessions are removed with them, at 200 MB a second; of larger
# files when the store is closed, because nothing else can be written meanwhile.
PURGE_AT_ONCE: Final = 64 * 1024 * 1024
# Readers may hold the write-ahead log back; deleting does not wait long for them.
_PURGE_PATIENCE: Final = 0.1


class Writer:
    """The connection that writes, and who waits for it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        host: int | None,
        path: Path,
        bridge: Bridge,
        on_commit: Callable[[], None],
    ) -> None:
        """The `host` is the number that every transaction compares; None: that of a guest.

        A guest is fenced by the epochs of its sessions alone, and leaves tidying up to the host.
        """
        self._connection = connection
        self._host = host
        self._on_commit = on_commit
        self._path = path
        self._bridge = bridge
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiter] = deque()
        self._is_busy = False
        self._rested: asyncio.Future[None] | None = None
        self._end: asyncio.Future[None] | None = None
        self._closed = False
        self._damage: StoreDamagedError | None = None

    def submit(self, change: Change[T]) -> asyncio.Future[T]:
        """Make the change durable. It is done or refused, also if nobody awaits it any more."""
        if self._closed:
            raise ScopeClosedError("the store is closed; nothing was written")
        if self._damage is not None:
            raise _another(self._damage)
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append((change, future))
        self._begin()
        return future

    def lead(self, host: int, on_commit: Callable[[], None]) -> None:
        """Write as the host of the file from now on; so far it was a guest's."""
        self._host, self._on_commit = host, on_commit

    def stop_writing(self, damage: StoreDamagedError) -> None:
        """The file is damaged: what is in it stays as it is."""
        self._damage = self._damage or damage

    async def close(self) -> None:
        """Write what was submitted, then let go of the file."""
        self._closed = True
        while self._is_busy:
            self._rested = self._rested or self._loop.create_future()
            await asyncio.shield(self._rested)
        if self._end is None:
            self._end = self._bridge.start_thread(self._let_go, name="close").future
        await asyncio.shield(self._end)

    # -- on the loop

    def _begin(self) -> None:
        while self._waiting and not self._is_busy:
            count = min(len(self._waiting), MOST_TOGETHER)
            together = [self._waiting.popleft() for _ in range(count)]
            work = partial(self._commit, [change for change, _ in together])
            try:
                done = self._bridge.start_thread(work, name="commit").future
            except Exception as error:  # noqa: BLE001 (no thread, whatever the cause)
                for _, future in together:
                    _refuse(future, StoreError(f"nothing was written: {error}"))
                continue
            self._is_busy = True
            done.add_done_callback(partial(self._ended, together))

    def _ended(self, together: list[_Waiter], done: asyncio.Future[list[_Outcome]]) -> None:
        self._is_busy = False
        if done.cancelled():
            why = "the host was closed meanwhile; open the session again to see if it was written"
            for _, future in together:
                _refuse(future, StoreError(why))
        elif (error := done.exception()) is not None:
            if isinstance(error, StoreDamagedError):
                self.stop_writing(error)
            for _, future in together:
                _refuse(future, _another(error))
        else:
            self._on_commit()
            for (_, future), outcome in zip(together, done.result(), strict=True):
                outcome.tell(future)
        self._begin()
        if not self._is_busy and self._rested is not None:
            self._rested.set_result(None)
            self._rested = None

    # -- in the thread that writes

    def _commit(self, changes: Sequence[Change[Any]]) -> list[_Outcome]:
        run = self._connection.execute
        transaction = Transaction(self._connection)
        try:
            run("BEGIN IMMEDIATE")
            if self._host is not None and get_meta(self._connection, "host") != self._host:
                raise FencedError("another host has taken this store over; nothing was written")
            outcomes = (
                [_Outcome(changes[0](transaction), None)]
                if len(changes) == 1  # what it did is taken back with the transaction itself
                else [self._try(change, transaction) for change in changes]
            )
            run("COMMIT")
        except sqlite3.Error as error:
            raise as_store_error(self._path, error) from error
        finally:
            # Some errors have rolled back already, and a disk that fails may refuse this too.
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    run("ROLLBACK")
        if transaction.owes_purge and self._host is not None:
            self._purge(PURGE_AT_ONCE)
        return outcomes

    def _try(self, change: Change[Any], transaction: Transaction) -> _Outcome:
        run = self._connection.execute
        run("SAVEPOINT change")
        try:
            outcome = _Outcome(change(transaction), None)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not isinstance(error, OF_ONE_STATEMENT):
                raise
            run("ROLLBACK TO change")
            outcome = _Outcome(None, error)
        run("RELEASE change")
        return outcome

    def _purge(self, most: float) -> None:
        """Remove the remains of what was deleted, if the file is not larger than that.

        SQLite overwrites deleted rows, but moves others about in the course of it and leaves
        copies in the unused part of pages. Only writing the file anew removes those.
        """
        run = self._connection.execute
        # What was to be deleted is. If this fails, it is owed until the next time.
        with suppress(sqlite3.Error):
            size = run("PRAGMA page_count").fetchone()[0] * run("PRAGMA page_size").fetchone()[0]
            if size > most:
                return
            run("VACUUM")
            run(f"PRAGMA busy_timeout = {_PURGE_PATIENCE * 1000:.0f}")
            (is_held_back, *_) = self._empty_log()
            if not is_held_back:
                set_meta(self._connection, "purge", 0)
                self._empty_log()
        with suppress(sqlite3.Error):
            run(f"PRAGMA busy_timeout = {LOCK_PATIENCE * 1000:.0f}")

    def _is_taken_over(self) -> bool:
        with suppress(sqlite3.Error):
            return self._host is not None and get_meta(self._connection, "host") != self._host
        return False

    def _empty_log(self) -> tuple[int, ...]:
        return self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _let_go(self) -> None:
        if self._damage is not None or self._is_taken_over():
            close_unchanged(self._path, self._connection)
            return
        with suppress(sqlite3.Error):
            if self._host is not None and get_meta(self._connection, "purge"):
                self._purge(math.inf)
        self._connection.close()


class _Outcome:
    """What became of one change."""

    __slots__ = ("_error", "_value")

    def __init__(self, value: object, error: Exception | None) -> None:
        self._value = value
        self._error = error

    def tell(self, future: asyncio.Future[Any]) -> None:
        if self._error is not None:
            _refuse(future, self._error)
        elif not future.done():
            future.set_result(self._value)


def _refuse(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


def _another(error: BaseException) -> BaseException:
    """Each who waits gets an error of its own, because raising one writes into it."""
    return type(error)(str(error)) if isinstance(error, StoreError) else error
