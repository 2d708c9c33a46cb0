"""The feed of changed sessions, for lists of sessions: readers get each change after its commit.

A slow reader gets each session once, in its latest state: its queue grows with the number of
sessions, never with the number of changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from keryx.ports.dispatch import Change
from keryx.ports.store import Store

MAX_MISSED: Final = 10_000
"""Missed sessions that a returning reader gets; if there are more, the latest ones."""


class SessionFeed:
    """Sends changes to its readers. Belongs to one loop; `note` is synchronous."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: set[_Reader] = set()
        self._closed = False

    def note(self, session_id: str) -> None:
        """Queue a session that was changed or deleted, for all readers."""
        for reader in self._readers:
            reader.queued[session_id] = None
            reader.wake()

    def close(self) -> None:
        """End the streams of all readers after what is queued."""
        self._closed = True
        for reader in self._readers:
            reader.wake()

    async def read(self, after: int | None) -> AsyncGenerator[Change]:
        """Yield the changes after that position, then each new one; None: only new ones."""
        reader, position = _Reader(), after or 0
        self._readers.add(reader)
        try:
            if after is not None:
                rows = await self._store.sessions(
                    after=after, archived=None, parent=None, limit=MAX_MISSED
                )
                for row in reversed(rows):
                    position = row.position
                    yield Change(row.session_id, row, position)
            while True:
                while reader.queued:
                    session_id = next(iter(reader.queued))
                    del reader.queued[session_id]
                    row = await self._store.session(session_id)
                    position = max(position, 0 if row is None else row.position)
                    # Sessions that changed twice come out of order: only the last has a position.
                    yield Change(session_id, row, None if reader.queued else position)
                if self._closed:
                    return
                await reader.wait()
        finally:
            self._readers.discard(reader)


class _Reader:
    def __init__(self) -> None:
        self.queued: dict[str, None] = {}
        self._woken: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def wait(self) -> None:
        self._woken = asyncio.get_running_loop().create_future()
        try:
            await self._woken
        finally:
            self._woken = None
