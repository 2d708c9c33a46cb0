"""A store and a memory over it, without sessions: rows of the outbox are committed directly."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.events import MemoryChanged, SessionChanged, SessionOpened
from keryx.memory import intake_rows
from keryx.memory.memory_file import MemoryFile
from keryx.memory.service import MemoryService
from keryx.ports.memory import MemoryProvider, MemoryScope, TurnMemory, TurnText
from keryx.ports.store import Commit, OutboxRow
from keryx.store.sqlite import SqliteStore

SCOPE: Final = MemoryScope("default", "/work")
PATIENCE: Final = 30.0


class RememberingStore:
    """Sessions that remember, and the memory that takes it in."""

    def __init__(self, store: SqliteStore, service: MemoryService) -> None:
        self.store = store
        self.service = service
        self._sessions: dict[str, tuple[int, int]] = {}
        self._turns = itertools.count()

    async def conclude(self, session_id: str, *texts: str) -> list[str]:
        """Commit conclusions, each with its row of the outbox; return their ids."""
        epoch, seq = await self._session(session_id)
        events = [
            MemoryChanged(
                session_id=session_id,
                seq=seq + at,
                at=1_000.0 + seq + at,
                memory_id=f"{session_id}/{seq + at}",
                change="add",
                call_id=f"c{seq + at}",
                turn_id=f"{session_id}/t",
                text=text,
                kind="conclusion",
                profile="default",
                workspace="/work",
            )
            for at, text in enumerate(texts, 1)
        ]
        self._sessions[session_id] = (epoch, seq + len(events))
        rows = [intake_rows.changed_row(event) for event in events]
        await self.store.append(
            Commit(session_id=session_id, epoch=epoch, events=tuple(events), outbox=tuple(rows))
        )
        self.service.wake()
        return [event.memory_id for event in events]

    async def sync_turn(self, session_id: str, said: str, answer: str) -> TurnMemory:
        """Commit the row of a turn that has ended."""
        epoch, _ = await self._session(session_id)
        number = next(self._turns)
        turn = TurnMemory(
            id=f"{session_id}/t{number}",
            session_id=session_id,
            profile="default",
            workspace="/work",
            at=1_000.0 + number,
            seq=number,
            texts=(
                TurnText(f"{session_id}/m{number}", "user", said),
                TurnText(f"{session_id}/p{number}", "assistant", answer),
            ),
        )
        row = intake_rows.turn_row(turn)
        await self.store.append(Commit(session_id=session_id, epoch=epoch, outbox=(row,)))
        self.service.wake()
        return turn

    async def commit_row(self, session_id: str, row: OutboxRow) -> None:
        """Commit a row of the outbox with some event of the session, and take it in."""
        epoch, seq = await self._session(session_id)
        self._sessions[session_id] = (epoch, seq + 1)
        event = SessionChanged(session_id=session_id, seq=seq + 1, at=2_000.0, by="test", title="t")
        await self.store.append(
            Commit(session_id=session_id, epoch=epoch, events=(event,), outbox=(row,))
        )
        await self.service.take_in()

    async def _session(self, session_id: str) -> tuple[int, int]:
        if session_id not in self._sessions and await self.store.session(session_id) is not None:
            epoch = await self.store.claim(session_id)
            last = len(await self.store.events(session_id))
            self._sessions[session_id] = (epoch, last)
        if session_id not in self._sessions:
            opened = SessionOpened(
                session_id=session_id,
                seq=1,
                at=1_000.0,
                model="m",
                profile="default",
                place="",
                workspace="/work",
                tools=(),
            )
            commit = Commit(session_id=session_id, epoch=0, events=(opened,))
            self._sessions[session_id] = (await self.store.create(commit), 1)
        return self._sessions[session_id]


@asynccontextmanager
async def remembering_store(
    folder: Path,
    providers: Sequence[MemoryProvider] | Callable[[MemoryFile, Bridge], MemoryProvider],
    *,
    budget: float = 0.2,
    attempt_timeout: float = 5.0,
    first_pause: float = 0.02,
    drain: float = 0.0,
    start: bool = True,
    patience: float = PATIENCE,
) -> AsyncGenerator[RememberingStore]:
    """Open a store and its memory; leave them as a host does."""
    errors: list[str] = []
    scope = Scope("test")
    bridge = Bridge(scope)
    store = await SqliteStore.open(folder / "store.db", bridge)
    file = MemoryFile(folder / "memory.db", bridge)
    service = MemoryService(
        store,
        file,
        scope,
        providers=[providers(file, bridge)] if callable(providers) else providers,
        report=lambda name, error: errors.append(f"{name}: {error!r}"),
        budget=budget,
        attempt_timeout=attempt_timeout,
        first_pause=first_pause,
    )
    try:
        if start:
            await service.start()
        async with asyncio.timeout(patience):
            yield RememberingStore(store, service)
    finally:
        await service.close(drain)
        await store.close()
        await bridge.close()
        scope.close()
    assert errors == []
