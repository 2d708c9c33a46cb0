"""Reading a session that another process hosts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Self

from keryx.events import Event

Relayed = Callable[[str, int], AsyncGenerator[Event]]


class Relay:
    """A reader of a session that another process hosts, over any change of hosts."""

    def __init__(self, relayed: Relayed, session_id: str, after: int) -> None:
        """`relayed` reads the stream after a fact from whoever hosts the session now."""
        self._relayed = relayed
        self._session_id = session_id
        self.seen = after

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def __aiter__(self) -> AsyncGenerator[Event]:
        while True:
            async with aclosing(self._relayed(self._session_id, self.seen)) as events:
                async for event in events:
                    self.seen = getattr(event, "seq", self.seen)
                    yield event
