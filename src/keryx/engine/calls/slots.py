"""Limits how many calls run at once, and shares the slots fairly between sessions.

A freed slot goes to the session that was served least recently. A session that begins to wait is
queued before the one that was served last and behind all others. So a session with a thousand
calls delays the first call of another by one call at most, and new sessions starve nobody.

Calls that never end must not take all slots, so each session has a limit. Calls beyond it wait,
even if slots are free.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter, deque
from typing import Final

# One session leaves an eighth of all slots to the others: of 64 threads, it can still use 56.
RESERVED_PART: Final = 8


class Slots:
    """A limited number of slots. Belongs to one loop."""

    def __init__(self, limit: int, *, session_limit: int | None = None) -> None:
        """`session_limit`: how many one session may hold; by default, seven eighths."""
        self._free = limit
        self._session_limit = (
            limit - limit // RESERVED_PART if session_limit is None else session_limit
        )
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # A heap of the sessions that wait and are below their limit, each once, by when they were
        # served: (service, order, session).
        self._turns: list[tuple[int, int, str]] = []
        self._order = itertools.count()
        self._services = 0
        self._last_served = ""

    @property
    def free(self) -> int:
        return self._free

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    async def take(self, session_id: str) -> None:
        """Wait for a slot. If this is cancelled, no slot is held."""
        if self._free and not self._turns and self._is_below_limit(session_id):
            self._serve(session_id)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add_waiter(session_id, granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release(session_id)
            else:
                self._remove_waiter(session_id, granted)
            raise

    def release(self, session_id: str) -> None:
        self._free += 1
        if session_id in self._waiting and not self._is_below_limit(session_id):
            self._queue(session_id)
        self._held[session_id] -= 1
        if not self._held[session_id]:
            del self._held[session_id]
        self._serve_next()

    def _serve_next(self) -> None:
        while self._free and self._turns:
            served, _, session_id = heapq.heappop(self._turns)
            queue = self._waiting.get(session_id)
            if queue is None:
                continue  # all its waiters were cancelled
            granted = queue.popleft()
            if not granted.done():  # else it was cancelled, and has not run since
                self._serve(session_id)
                granted.set_result(None)
                served = self._services
            if not queue:
                del self._waiting[session_id]
            elif self._is_below_limit(session_id):
                heapq.heappush(self._turns, (served, next(self._order), session_id))

    def _is_below_limit(self, session_id: str) -> bool:
        return self._held[session_id] < self._session_limit

    def _serve(self, session_id: str) -> None:
        self._free -= 1
        self._held[session_id] += 1
        self._services += 1
        self._last_served = session_id

    def _add_waiter(self, session_id: str, granted: asyncio.Future[None]) -> None:
        queue = self._waiting.get(session_id)
        if queue is not None:
            queue.append(granted)
            return
        self._waiting[session_id] = deque([granted])
        if self._is_below_limit(session_id):
            self._queue(session_id)

    def _queue(self, session_id: str) -> None:
        """Add a waiting session to the heap."""
        served = self._services if session_id == self._last_served else self._services - 1
        heapq.heappush(self._turns, (served, next(self._order), session_id))

    def _remove_waiter(self, session_id: str, granted: asyncio.Future[None]) -> None:
        queue = self._waiting.get(session_id)
        if queue is not None and granted in queue:
            queue.remove(granted)
            if not queue:
                del self._waiting[session_id]
                self._turns = [turn for turn in self._turns if turn[2] != session_id]
                heapq.heapify(self._turns)
