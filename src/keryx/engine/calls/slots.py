"""How many leaves run at once, shared fairly between sessions.

A freed slot goes to the session that was served least recently; one that joins goes before
whoever was served last and behind all others that wait. So a session with a thousand calls
delays another's first by one call at most, and a stream of newcomers starves nobody.

That holds for calls that end. Those that do not must not take all there is, so no session holds
more than its most; what it wants beyond that waits, whatever is free.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter, deque
from typing import Final

# What one session leaves to the others, as a part of all: an eighth of 64 threads is little, and
# the rest still takes fifty blocking tools at once.
LEFT: Final = 8


class Slots:
    """A number of places. Belongs to one loop."""

    def __init__(self, limit: int, *, most_each: int | None = None) -> None:
        """`most_each`: how many one session may hold; unless it is said, almost all."""
        self._free = limit
        self._most_each = limit - limit // LEFT if most_each is None else most_each
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # The sessions that wait and may have more, each once, by when they were served:
        # (service, order, session).
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
        if self._free and not self._turns and self._may_have_more(session_id):
            self._serve(session_id)
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._join(session_id, granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release(session_id)
            else:
                self._forget(session_id, granted)
            raise

    def release(self, session_id: str) -> None:
        self._free += 1
        if session_id in self._waiting and not self._may_have_more(session_id):
            self._queue(session_id)
        self._held[session_id] -= 1
        if not self._held[session_id]:
            del self._held[session_id]
        self._pass_on()

    def _pass_on(self) -> None:
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
            if not queue:
                del self._waiting[session_id]
            elif self._may_have_more(session_id):
                heapq.heappush(self._turns, (served, next(self._order), session_id))

    def _may_have_more(self, session_id: str) -> bool:
        return self._held[session_id] < self._most_each

    def _serve(self, session_id: str) -> None:
        self._free -= 1
        self._held[session_id] += 1
        self._services += 1
        self._last_served = session_id

    def _join(self, session_id: str, granted: asyncio.Future[None]) -> None:
        queue = self._waiting.get(session_id)
        if queue is not None:
            queue.append(granted)
            return
        self._waiting[session_id] = deque([granted])
        if self._may_have_more(session_id):
            self._queue(session_id)

    def _queue(self, session_id: str) -> None:
        """It takes turns from now on."""
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
