"""When a request without an answer can be taken as not stored, if it cannot be read back.

A server may store something after its client has given up. So an item that is missing when it is
read back is sent again only after a delay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from keryx.aio.clock import Clock
from keryx.memory.providers.honcho.failures import MaybeStoredError, RequestRefusedError
from keryx.ports.memory import ProviderUnavailableError


class Settling:
    """The times of requests without an answer, by session. Belongs to one loop."""

    def __init__(self, clock: Clock, delay: float) -> None:
        self._clock = clock
        self._delay = delay
        # A process before this one may have sent something just before it ended.
        self._started = clock.monotonic()
        self._unanswered: dict[str, float] = {}

    def wall(self) -> float:
        return self._clock.wall()

    @property
    def delay(self) -> float:
        return self._delay

    @contextmanager
    def sending(self, session_id: str) -> Generator[None]:
        """Note it if a request of this session gets no answer, also because of a cancel."""
        try:
            yield
        except RequestRefusedError:
            raise
        except BaseException as error:
            is_unsent = isinstance(error, ProviderUnavailableError)
            if isinstance(error, MaybeStoredError) or not is_unsent:
                self._unanswered[session_id] = self._clock.monotonic()
            raise

    def is_settled(self, session_id: str) -> bool:
        if self._rest(session_id) > 0:
            return False
        self._unanswered.pop(session_id, None)
        return True

    async def wait(self, session_id: str) -> None:
        """Wait until nothing of this session can be stored late any more."""
        rest = self._rest(session_id)
        if rest > 0:
            over = asyncio.get_running_loop().create_future()
            timer = self._clock.call_at(self._clock.monotonic() + rest, lambda: _end(over))
            try:
                await over
            finally:
                timer.cancel()
        self._unanswered.pop(session_id, None)

    def _rest(self, session_id: str) -> float:
        since = self._unanswered.get(session_id, self._started)
        return since + self._delay - self._clock.monotonic()


def _end(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
