"""How many leaves run at once, shared fairly between sessions.

Sessions take turns: a freed slot goes to the session that has waited longest since its last
one. So a session with a thousand calls waiting delays another's first by one call at most.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """A number of places. Belongs to one loop."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        # Ordered: the session that is served next comes first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @property
    def free(self) -> int:
        return self._free

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self._waiting.values())

    def take_nowait(self) -> bool:
        if self._free == 0 or self._waiting:
            return False
        self._free -= 1
        return True

    async def take(self, session_id: str) -> None:
        """Take a slot, in the session's turn. Cancelled, it holds none."""
        if self.take_nowait():
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(session_id, deque()).append(granted)
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
        while self._free and self._waiting:
            session_id = next(iter(self._waiting))
            queue = self._waiting.pop(session_id)
            granted = queue.popleft()
            if queue:
                self._waiting[session_id] = queue
            if not granted.done():
                self._free -= 1
                granted.set_result(None)

    def _forget(self, session_id: str, granted: asyncio.Future[None]) -> None:
        queue = self._waiting.get(session_id)
        if queue is not None and granted in queue:
            queue.remove(granted)
            if not queue:
                del self._waiting[session_id]
