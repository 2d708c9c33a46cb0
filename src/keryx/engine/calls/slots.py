"""How many leaves run at once, shared fairly between sessions.

A freed slot goes to the session that was served least recently; one that joins goes before
whoever was served last and behind all others that wait. So a session with a thousand calls
delays another's first by one call at most, and a stream of newcomers starves nobody.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque


class Slots:
    """A number of places. Belongs to one loop."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # The sessions that wait, each once, by when they were served: (service, order, session).
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
        """Take a slot, in the session's turn. Cancelled, it holds none."""
        if self._free and not self._waiting:
            self._serve(session_id)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._join(session_id, granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release()
            else:
                self._forget(session_id, granted)
            raise

    def release(self) -> None:
        self._free += 1
        while self._free and self._turns:
            served, _, session_id = heapq.heappop(self._turns)
            queue = self._waiting.get(session_id)
            if queue is None:
                continue  # all that waited there were cancelled
            granted = queue.popleft()
            if not granted.done():  # cancelled, and not yet woken to say so
                self._serve(session_id)
                granted.set_result(None)
                served = self._services
            if queue:
                heapq.heappush(self._turns, (served, next(self._order), session_id))
            else:
                del self._waiting[session_id]

    def _serve(self, session_id: str) -> None:
        self._free -= 1
        self._services += 1
        self._last_served = session_id

    def _join(self, session_id: str, granted: asyncio.Future[None]) -> None:
        queue = self._waiting.get(session_id)
        if queue is not None:
            queue.append(granted)
            return
        self._waiting[session_id] = deque([granted])
        served = self._services if session_id == self._last_served else self._services - 1
        heapq.heappush(self._turns, (served, next(self._order), session_id))

    def _forget(self, session_id: str, granted: asyncio.Future[None]) -> None:
        queue = self._waiting.get(session_id)
        if queue is not None and granted in queue:
            queue.remove(granted)
            if not queue:
                del self._waiting[session_id]
                self._turns = [turn for turn in self._turns if turn[2] != session_id]
                heapq.heapify(self._turns)
