"""Passes over the outbox, one at a time. A caller waits for one of them, not for all to come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.errors import StoreError
from keryx.memory import intake, intake_rows
from keryx.memory.memory_file import MemoryFile
from keryx.ports.memory import MemoryItem
from keryx.ports.store import Store

# Rows of the outbox that are taken in with one transaction.
PAGE: Final = 200
# Seconds. Another process of the home may have read a row before it left the outbox, and apply it.
MARKED: Final = 600.0


class Passes:
    """Runs `one_pass` again whenever somebody has asked since the last one began.

    A pass that runs already may have read the outbox before a row was committed there. So a caller
    waits for the first pass that began after its request, however many rows come later.
    """

    def __init__(self, group: Group, one_pass: Callable[[], Awaitable[None]], *, name: str) -> None:
        self._group = group
        self._one_pass = one_pass
        self._name: Final = name
        self._next: asyncio.Future[None] | None = None
        """Done with the next pass. None: nobody has asked for one."""
        self._last: asyncio.Future[None] | None = None
        """The pass that was asked for last."""
        self._task: asyncio.Task[None] | None = None

    @property
    def unfinished(self) -> asyncio.Future[None] | None:
        """The pass that was asked for last, until it has ended."""
        return None if self._last is None or self._last.done() else self._last

    def request(self) -> asyncio.Future[None] | None:
        """Return a pass that begins from now on; None if the group has ended. Shield what waits."""
        if self._group.scope.is_cancelled:
            return None
        if self._next is None:
            self._next = self._last = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = self._group.start(self._run(), name=self._name)
        return self._next

    async def wait(self) -> None:
        """Wait for a pass that begins from now on. Its error is raised here."""
        requested = self.request()
        if requested is not None:
            await asyncio.shield(requested)

    async def _run(self) -> None:
        running: asyncio.Future[None] | None = None
        try:
            while (running := self._next) is not None:
                self._next = None
                await self._one_pass()
                running.set_result(None)
        except Exception as error:
            # All that wait learn of it; the next request tries again.
            for waiting in (running, self._next):
                if waiting is not None:
                    waiting.set_exception(error)
                    waiting.exception()  # marks it as read, also if nobody waits
            raise
        finally:
            for waiting in (running, self._next):
                if waiting is not None and not waiting.done():
                    waiting.cancel()
            self._next = self._task = None


class OutboxPages:
    """Takes in the rows of the outbox, a page in one transaction."""

    def __init__(
        self,
        store: Store,
        file: MemoryFile,
        providers: Sequence[str],
        clock: Clock,
        taken_in: Callable[[Sequence[MemoryItem]], None],
    ) -> None:
        """`taken_in` gets what providers should store, after each page."""
        self._store, self._file = store, file
        self._providers, self._clock = providers, clock
        self._taken_in = taken_in
        self._applied: deque[tuple[float, list[str]]] = deque()
        self.fault: StoreError | None = None
        """Why the last page could not be taken in."""

    async def take_in(self) -> None:
        """Take in everything that is in the outbox when this begins."""
        # A page that is not full was the last one of what was there when the pass began.
        while await self._take_in_page() == PAGE:
            pass

    async def _take_in_page(self) -> int:
        """Take in the oldest rows; return how many there were."""
        rows = await self._store.outbox(intake_rows.TOPIC, limit=PAGE)
        apply = partial(intake.apply_rows, rows=rows, providers=self._providers)
        try:
            items = await self._file.write(apply) if rows else []
        except StoreError as error:
            self.fault = error
            raise
        self.fault = None
        if not rows:
            return 0
        ids = [row.id for row in rows]
        await self._store.sent(ids)
        self._applied.append((now := self._clock.monotonic(), ids))
        while self._applied[0][0] <= now - MARKED:
            await self._file.write(partial(intake.forget_applied, ids=self._applied.popleft()[1]))
        self._taken_in(items)
        return len(rows)

    async def forget_old_marks(self) -> None:
        """Remove the marks of applied rows that processes left which have ended."""
        if not await self._store.outbox(intake_rows.TOPIC, limit=1):
            await self._file.write(intake.forget_all_applied)
