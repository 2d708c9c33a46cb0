"""Indexing in the background: after commits, in steps, never inside one and never delaying one.

Its state belongs to the loop; each step is a piece of work for a thread of the bridge. It wakes
after a commit, waits a moment to index several commits together, and rests when all is indexed.
A problem of the index is reported to callers that ask for it; the store goes on.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.store.sqlite.faults import DAMAGED, primary_code
from keryx.store.sqlite.files import open_for_reading
from keryx.store.sqlite.index.index_file import delete_index, index_path, open_index
from keryx.store.sqlite.index.index_step import IndexStep

# One step for half a second of commits costs less than a step for each message.
DELAY: Final = 0.5
# How long a search waits if more than one step is to be indexed first, as after a rebuild; then it
# answers with what is indexed. For the last commits it waits as long as their one step takes.
CATCH_UP_TIMEOUT: Final = 0.5


class Indexer:
    """Keeps the index of one store up to date."""

    def __init__(self, store: Path, bridge: Bridge) -> None:
        self._connections = _Connections(store)
        self._bridge = bridge
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._step: asyncio.Future[bool] | None = None
        self._is_behind = False
        self._has_much_to_do = False
        """Whether the last step left something for the next one."""
        self._pauses = 0
        self._closed = False
        # Callers that wait for the commits so far to be indexed: those that came after the running
        # step began, and those that came before. The third list waits for the end of one step.
        self._waiting_next: list[asyncio.Future[None]] = []
        self._waiting_now: list[asyncio.Future[None]] = []
        self._waiting_step: list[asyncio.Future[None]] = []
        self._closing: asyncio.Future[None] | None = None
        self.problem: str | None = None

    def wake(self) -> None:
        """Index soon, because something was committed."""
        self._is_behind = True
        if self._timer is None and self._step is None and not self._pauses and not self._closed:
            self._timer = self._loop.call_later(DELAY, self._start_step)

    async def catch_up(self) -> None:
        """Wait until all commits so far are indexed; with much to do, for `CATCH_UP_TIMEOUT`."""
        if self._closed or not (self._is_behind or self._step is not None):
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting_next.append(waiter)
        if self._step is None:
            self._start_step()
        await asyncio.wait([waiter], timeout=CATCH_UP_TIMEOUT)
        while not (waiter.done() or self._has_much_to_do):
            await self._wait_step()

    async def pause(self) -> None:
        """Read nothing of the store until `resume`."""
        self._pauses += 1
        self._stop_timer()
        while self._step is not None:
            await asyncio.wait([self._step])

    def resume(self) -> None:
        self._pauses -= 1
        if not self._pauses and (self._waiting_next or self._waiting_now or self._waiting_step):
            self._start_step()
        else:
            self.wake()

    async def forget(self) -> None:
        """Remove the words of deleted sessions now. Call it right after `resume`."""
        if not self._closed:
            await self._wait_step()

    async def _wait_step(self) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting_step.append(waiter)
        if self._step is None:
            self._start_step()
        await asyncio.wait([waiter])

    def rebuild(self) -> None:
        """Delete the damaged index and build it again."""
        self._connections.is_damaged = True
        self.wake()

    async def close(self) -> None:
        """Wait for the running step; the next start indexes the rest."""
        self._closed = True
        self._stop_timer()
        self._give_up(None)
        while self._step is not None:
            await asyncio.wait([self._step])
        if self._closing is None:
            self._closing = self._bridge.start_thread(
                self._connections.close, name="close the index"
            ).future
        await asyncio.shield(self._closing)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_step(self) -> None:
        self._stop_timer()
        if self._pauses or self._closed:
            return
        try:
            self._step = self._bridge.start_thread(self._connections.step, name="index").future
        except Exception as error:  # noqa: BLE001 (no thread, whatever the cause)
            self._give_up(str(error))
            return
        self._is_behind = False
        self._waiting_now += self._waiting_next
        self._waiting_next.clear()
        self._step.add_done_callback(self._on_step_done)

    def _on_step_done(self, step: asyncio.Future[bool]) -> None:
        self._step = None
        _wake_all(self._waiting_step)
        error = None if step.cancelled() else step.exception()
        if step.cancelled() or error is not None:
            # The next commit or search tries again.
            self._is_behind = True
            self._give_up(str(error or "the host was closed meanwhile"))
            return
        self.problem = None
        self._has_much_to_do = step.result()
        if self._has_much_to_do:
            self._is_behind = True
            self._start_step()
            return
        _wake_all(self._waiting_now)
        if self._waiting_next:
            self._start_step()
        elif self._is_behind:
            self.wake()

    def _give_up(self, problem: str | None) -> None:
        """Wake all waiting callers: nothing more is indexed before the next commit."""
        self.problem = problem
        for waiters in (self._waiting_step, self._waiting_now, self._waiting_next):
            _wake_all(waiters)


def _wake_all(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()


class _Connections:
    """The connections to store and index, opened at first use; one thread at a time uses them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: tuple[sqlite3.Connection, sqlite3.Connection] | None = None
        self.is_damaged = False

    def step(self) -> bool:
        if self.is_damaged:
            # The log has everything that the index has.
            self._close()
            delete_index(index_path(self._path))
            self.is_damaged = False
        try:
            return self._index_step().step()
        except sqlite3.Error as error:
            self._close()
            # One rebuild, at the next commit or search: the store itself may be damaged.
            self.is_damaged = primary_code(error) in DAMAGED
            raise

    def close(self) -> None:
        # Words of deleted sessions must not stay; the next start indexes the rest.
        if self._open is not None:
            with suppress(sqlite3.Error):
                self._index_step().forget()
        self._close()

    def _index_step(self) -> IndexStep:
        if self._open is None:
            store = open_for_reading(self._path)
            try:
                self._open = (store, open_index(index_path(self._path)))
            except BaseException:
                store.close()
                raise
        return IndexStep(self._path, *self._open)

    def _close(self) -> None:
        if self._open is not None:
            for connection in reversed(self._open):
                connection.close()
            self._open = None
