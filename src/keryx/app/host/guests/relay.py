"""A reader for sessions that another process hosts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Self

from keryx.events import Event

EventSource = Callable[[str, int], AsyncGenerator[Event]]


class Relay:
    """Reads a session that another process hosts, and continues when its host changes."""

    def __init__(self, read_from_host: EventSource, session_id: str, after: int) -> None:
        """`read_from_host` yields the events after a sequence number, from the present host."""
        self._read_from_host = read_from_host
        self._session_id = session_id
        self.seen = after

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def __aiter__(self) -> AsyncGenerator[Event]:
        while True:
            async with aclosing(self._read_from_host(self._session_id, self.seen)) as events:
                async for event in events:
                    self.seen = getattr(event, "seq", self.seen)
                    yield event
