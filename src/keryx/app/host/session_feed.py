"""Which sessions changed: told to whoever shows a list of them, after each commit.

A reader that does not keep up is told of each session once, as it is by then: what waits for it
grows with the number of sessions, never with what happens in them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from keryx.ports.dispatch import Change
from keryx.ports.store import Store

MOST: Final = 10_000
"""Sessions that are told of at once to who was away; of more, those that changed last."""


class SessionFeed:
    """Tells its readers of changes. Belongs to one loop; noting one is synchronous."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: set[_Reader] = set()
        self._closed = False

    def note(self, session_id: str) -> None:
        """This session has changed, or is gone."""
        for reader in self._readers:
            reader.waiting[session_id] = None
            reader.wake()

    def close(self) -> None:
        """Nothing more will change here."""
        self._closed = True
        for reader in self._readers:
            reader.wake()

    async def read(self, after: int | None) -> AsyncGenerator[Change]:
        """What changed after that position, then what does; None: from the first step on."""
        reader, upto = _Reader(), after or 0
        self._readers.add(reader)
        try:
            if after is not None:
                rows = await self._store.sessions(after=after, archived=None, limit=MOST)
                for row in reversed(rows):
                    upto = row.position
                    yield Change(row.session_id, row, upto)
            while True:
                while reader.waiting:
                    session_id = next(iter(reader.waiting))
                    del reader.waiting[session_id]
                    row = await self._store.session(session_id)
                    upto = max(upto, 0 if row is None else row.position)
                    # A session that changed twice is told of late, and so before older changes.
                    yield Change(session_id, row, None if reader.waiting else upto)
                if self._closed:
                    return
                await reader.wait()
        finally:
            self._readers.discard(reader)


class _Reader:
    def __init__(self) -> None:
        self.waiting: dict[str, None] = {}
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
