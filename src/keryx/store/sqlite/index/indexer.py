"""Indexing in the background: after commits, in steps, never inside one and never delaying one.

Its state belongs to the loop; each step is a piece of work for a thread of the bridge. It wakes
when something was committed, waits a moment so that much comes in together, and rests when all is
in. Whatever goes wrong with the index is told to who asks for it; the store goes on.
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
from keryx.store.sqlite.index.index_file import beside, open_index, throw_away
from keryx.store.sqlite.index.index_step import IndexStep

# Steps for single messages cost more than one for all that came in half a second.
PAUSE: Final = 0.5
# How long a search waits for what was committed last. It is there in milliseconds, unless there is
# much more to be indexed first; then what is there already is the better answer.
PATIENCE: Final = 0.5


class Indexer:
    """Keeps the index of one store up to date."""

    def __init__(self, store: Path, bridge: Bridge) -> None:
        self._work = _Work(store)
        self._bridge = bridge
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._step: asyncio.Future[bool] | None = None
        self._is_behind = False
        self._held = 0
        self._closed = False
        # Who waits until all is in that was committed when they came: those that came since the
        # step under way began, and those that came before; and who waits for the end of a step.
        self._waiting: list[asyncio.Future[None]] = []
        self._served: list[asyncio.Future[None]] = []
        self._watching: list[asyncio.Future[None]] = []
        self._end: asyncio.Future[None] | None = None
        self.problem: str | None = None

    def wake(self) -> None:
        """Something was committed."""
        self._is_behind = True
        if self._timer is None and self._step is None and not self._held and not self._closed:
            self._timer = self._loop.call_later(PAUSE, self._begin)

    async def catch_up(self) -> None:
        """Wait until all that was committed so far is in, as long as that takes a moment only."""
        if self._closed or not (self._is_behind or self._step is not None):
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        if self._step is None:
            self._begin()
        await asyncio.wait([waiter], timeout=PATIENCE)

    async def hold(self) -> None:
        """Read nothing of the store until `go_on`."""
        self._held += 1
        self._stop_timer()
        while self._step is not None:
            await asyncio.wait([self._step])

    def go_on(self) -> None:
        self._held -= 1
        if not self._held and (self._waiting or self._served or self._watching):
            self._begin()
        else:
            self.wake()

    async def forget(self) -> None:
        """Words of what was deleted go now. Call it right after `go_on`."""
        if self._closed:
            return
        watcher: asyncio.Future[None] = self._loop.create_future()
        self._watching.append(watcher)
        if self._step is None:
            self._begin()
        await asyncio.wait([watcher])

    def begin_anew(self) -> None:
        """The index cannot be read any more."""
        self._work.is_useless = True
        self.wake()

    async def close(self) -> None:
        """End the step under way; what is not in by then comes in at the next start."""
        self._closed = True
        self._stop_timer()
        self._rest(None)
        while self._step is not None:
            await asyncio.wait([self._step])
        if self._end is None:
            self._end = self._bridge.start_thread(self._work.close, name="close the index").future
        await asyncio.shield(self._end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        self._stop_timer()
        if self._held or self._closed:
            return
        try:
            self._step = self._bridge.start_thread(self._work.step, name="index").future
        except Exception as error:  # noqa: BLE001 (no thread, whatever the cause)
            self._rest(str(error))
            return
        self._is_behind = False
        self._served += self._waiting
        self._waiting.clear()
        self._step.add_done_callback(self._ended)

    def _ended(self, step: asyncio.Future[bool]) -> None:
        self._step = None
        _tell(self._watching)
        error = None if step.cancelled() else step.exception()
        if step.cancelled() or error is not None:
            # The next commit, or the next search, tries again.
            self._is_behind = True
            self._rest(str(error or "the host was closed meanwhile"))
            return
        self.problem = None
        if step.result():
            self._is_behind = True
            self._begin()
            return
        _tell(self._served)
        if self._waiting:
            self._begin()
        elif self._is_behind:
            self.wake()

    def _rest(self, problem: str | None) -> None:
        """Nothing can be done before something else is committed."""
        self.problem = problem
        for waiters in (self._watching, self._served, self._waiting):
            _tell(waiters)


def _tell(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()


class _Work:
    """The two connections, made when they are first used; one thread at a time has them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: tuple[sqlite3.Connection, sqlite3.Connection] | None = None
        self.is_useless = False

    def step(self) -> bool:
        if self.is_useless:
            # What was in it is in the log too.
            self._let_go()
            throw_away(beside(self._path))
            self.is_useless = False
        try:
            return self._filling().step()
        except sqlite3.Error as error:
            self._let_go()
            # Tried once, at the next commit or search: it may be the store that is damaged.
            self.is_useless = primary_code(error) in DAMAGED
            raise

    def close(self) -> None:
        # Nothing of what was deleted stays; how much is indexed does not matter here.
        if self._open is not None:
            with suppress(sqlite3.Error):
                self._filling().forget()
        self._let_go()

    def _filling(self) -> IndexStep:
        if self._open is None:
            store = open_for_reading(self._path)
            try:
                self._open = (store, open_index(beside(self._path)))
            except BaseException:
                store.close()
                raise
        return IndexStep(self._path, *self._open)

    def _let_go(self) -> None:
        if self._open is not None:
            for connection in reversed(self._open):
                connection.close()
            self._open = None
