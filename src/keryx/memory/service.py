"""The memory of a host: it takes in what sessions remember, lets providers store it, and recalls.

Whatever was accepted is visible here at once, whether or not a provider has it yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import msgspec

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.events import MemoryChanged
from keryx.memory import deliveries, intake, memories
from keryx.memory.changes.curation import Curation
from keryx.memory.changes.forgetting import Forgetting, Forgotten
from keryx.memory.deliverer import ATTEMPT_TIMEOUT, FIRST_PAUSE, Deliverer
from keryx.memory.deliveries import FailedDelivery, Lag
from keryx.memory.memory_file import MemoryFile
from keryx.memory.own_words import WordSearch, corrected
from keryx.memory.recalling import BUDGET, Recalling, RecallSource
from keryx.ports.memory import (
    EditedByPeople,
    Memory,
    MemoryItem,
    MemoryProvider,
    MemoryScope,
    TurnMatch,
    TurnMemory,
)
from keryx.ports.memory_access import Recall, TellOwner
from keryx.ports.store import OutboxRow, Store

# Rows of the outbox that are taken in with one transaction.
PAGE: Final = 200


class ProviderState(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider has not stored yet, and how long it is behind."""

    name: str
    lag: Lag
    syncing_for: float | None
    """Seconds since the oldest waiting item was accepted; None: nothing waits."""


class MemoryService:
    """The memories of one home, for one host. Belongs to the host's loop."""

    def __init__(
        self,
        store: Store,
        file: MemoryFile,
        scope: Scope,
        *,
        providers: Sequence[MemoryProvider],
        report: Callable[[str, BaseException], None],
        budget: float = BUDGET,
        attempt_timeout: float = ATTEMPT_TIMEOUT,
        first_pause: float = FIRST_PAUSE,
        tell_owner: TellOwner | None = None,
    ) -> None:
        """The file and the providers belong to the service, which closes them.

        With `tell_owner` another process owns the home: that one takes in and delivers.
        """
        self._store, self._clock = store, scope.clock
        self.file: Final = file
        self._group = Group(scope.child("memory"), on_error=report)
        self.budget: Final = budget
        deliverer = partial(
            Deliverer, report=report, attempt_timeout=attempt_timeout, first_pause=first_pause
        )
        self._deliverers = [deliverer(p, file, self._group.scope) for p in providers]
        self._names = tuple(deliverer.provider.name for deliverer in self._deliverers)
        words = RecallSource(WordSearch(self.file), lambda: False)
        self._recalling = Recalling(
            [words, *(RecallSource(d.provider, d.fails) for d in self._deliverers)],
            self._group.scope,
            budget=budget,
            correct=partial(corrected, self.file),
            report=report,
        )
        self._forgetting = Forgetting(
            self.file, self._deliverers, scope.clock, budget, partial(self._announce, wait=True)
        )
        self.curation: Final = Curation(
            file,
            self._names,
            scope.clock,
            edited=[p for p in providers if isinstance(p, EditedByPeople)],
            take_in=self.take_in,
            announce=self._announce,
        )
        self._takes_in = tell_owner is None
        self.tell_owner: TellOwner | None = tell_owner
        self._taking_in: asyncio.Task[None] | None = None
        self._is_behind = self._delivers = False

    def wall(self) -> float:
        """Return the time of day by the clock that deliveries use."""
        return self._clock.wall()

    async def start(self) -> None:
        """Deliver what earlier processes left. Only the owner of a home calls this."""
        self._delivers = True
        await self.take_in()
        for deliverer in self._deliverers:
            await deliverer.start()

    async def close(self, drain: float = 0.0) -> None:
        """Deliver what is left for `drain` seconds; the next start delivers the rest."""
        if self._delivers and drain > 0:
            await self.take_in()
            deadline = self._clock.monotonic() + drain
            for deliverer in self._deliverers:
                if not deliverer.is_failing:
                    await deliverer.wait_idle(deadline - self._clock.monotonic())
        await self._recalling.close()
        for deliverer in self._deliverers:
            await deliverer.close()
        await self._group.leave()
        for deliverer in self._deliverers:
            await deliverer.provider.close()
        await self.file.close()
        self._group.scope.close()

    # -- what sessions remember

    def turn_row(self, turn: TurnMemory) -> OutboxRow:
        return intake.row_of(turn.id, intake.TurnEnded(turn))

    def undone_row(self, session_id: str, turn_id: str, at: float) -> OutboxRow:
        row = intake.TurnTakenBack(session_id=session_id, turn_id=turn_id, at=at)
        return intake.row_of(f"undo/{turn_id}", row)

    def changed_row(self, event: MemoryChanged) -> OutboxRow:
        return intake.row_of(event.memory_id, intake.Changed(event))

    def wake(self) -> None:
        """Take in new rows of the outbox soon; they are durable already."""
        self._is_behind = True
        if self._taking_in is None and not self._group.scope.is_cancelled:
            self._taking_in = self._group.start(self._take_in_all(), name="take in memories")

    async def take_in(self) -> None:
        """Take in everything that is in the outbox now."""
        if not self._takes_in:
            await self._announce()
            return
        self.wake()
        while self._taking_in is not None:
            await asyncio.shield(self._taking_in)

    async def _take_in_all(self) -> None:
        try:
            while self._is_behind:
                self._is_behind = False
                while await self._take_in_page():
                    pass
        finally:
            self._taking_in = None

    async def _take_in_page(self) -> bool:
        rows = await self._store.outbox(intake.TOPIC, limit=PAGE)
        if not rows:
            return False
        items = await self.file.write(partial(intake.apply_rows, rows=rows, providers=self._names))
        ids = [row.id for row in rows]
        await self._store.sent(ids)
        await self.file.write(partial(intake.forget_applied, ids=ids))
        self._prefetch(items)
        self._deliver(items)
        return True

    def _prefetch(self, items: Iterable[MemoryItem]) -> None:
        """Ask for the next turn of each session whose turn has ended."""
        for item in items:
            if isinstance(item, TurnMemory):
                scope = MemoryScope(item.profile, item.workspace)
                words = " ".join(text.text for text in item.texts)
                self._recalling.prefetch(item.session_id, scope, words)

    def _deliver(self, items: Sequence[MemoryItem]) -> None:
        if self._delivers:
            sessions = {intake.session_of(item) for item in items}
            for deliverer in self._deliverers:
                deliverer.wake(sessions)
        elif items:
            self._group.start(self._announce(), name="tell the owner")

    async def rescan(self, *, retry: bool = False, wait: bool = False) -> None:
        """Take in and deliver what other processes of the home have written.

        `retry`: also to providers that are left alone. `wait`: return when it is delivered, or
        after the time that a provider is waited for.
        """
        await self.take_in()
        await self._announce(retry=retry, wait=wait)

    async def _announce(self, *, retry: bool = False, wait: bool = False) -> None:
        """Let what is written be delivered: here, or by the owner of the home."""
        if not self._delivers:
            if self.tell_owner is not None:
                await self.tell_owner(retry=retry, wait=wait)
            return
        for deliverer in self._deliverers:
            name = deliverer.provider.name
            deliverer.wake(
                await self.file.read(partial(deliveries.sessions_waiting, provider=name))
            )
            if retry:
                deliverer.retry_now()
        for deliverer in self._deliverers:
            if wait and (retry or not deliverer.is_failing):
                await deliverer.wait_idle(self.budget)

    # -- recalling

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Recall:
        """Return what fits these words best, with everything that was accepted so far."""
        await self.take_in()
        recall = await self._recalling.recall(scope, words, limit)
        if not recall.late:
            return recall
        behind = [state.syncing_for for state in await self.states() if state.name in recall.late]
        longest = max((age for age in behind if age is not None), default=None)
        return msgspec.structs.replace(recall, syncing_for=longest)

    async def context(self, session_id: str, scope: MemoryScope, words: str) -> Recall:
        """Return what the model should be given with a message of this session."""
        if self._taking_in is not None:  # what another session has just remembered
            await asyncio.wait([self._taking_in], timeout=self.budget)
        return await self._recalling.context(session_id, scope, words)

    async def search_turns(self, scope: MemoryScope, words: str, limit: int) -> list[TurnMatch]:
        """Return earlier turns by their meaning, of the providers that can and answer in time."""
        return await self._recalling.search_turns(scope, words, limit)

    def session_closed(self, session_id: str) -> None:
        self._recalling.forget(session_id)

    # -- what people do

    async def get(self, memory_id: str) -> Memory | None:
        await self.take_in()
        return await self.file.read(partial(memories.get, memory_id=memory_id))

    async def forget(self, ids: Sequence[str]) -> Forgotten:
        """Erase these memories here and at every provider; say what still remains there."""
        await self.take_in()
        return await self._forgetting.forget(ids)

    async def forget_session(self, session_id: str) -> Forgotten:
        """Erase what only this session taught."""
        await self.take_in()
        return await self._forgetting.forget_session(session_id)

    # -- how far the providers are

    async def states(self) -> list[ProviderState]:
        """Return how far each provider is behind."""
        await self.take_in()
        now = self._clock.wall()
        states: list[ProviderState] = []
        for name in self._names:
            lag = await self.file.read(partial(deliveries.lag, provider=name))
            behind = None if lag.oldest is None else max(0.0, now - lag.oldest)
            states.append(ProviderState(name=name, lag=lag, syncing_for=behind))
        return states

    async def failures(self) -> list[FailedDelivery]:
        return await self.file.read(deliveries.failures)

    async def retry(self, places: Sequence[int] | None = None) -> int:
        """Send failed items again, and do not wait any longer for providers that failed."""
        count = await self.file.write(partial(deliveries.retry, places=places))
        # A process that is started for this alone must not end before the attempt is made.
        await self._announce(retry=True, wait=True)
        return count

    async def wait_delivered(self, seconds: float) -> bool:
        """Wait until all providers have everything. False: the time was over before."""
        await self.take_in()
        deadline = self._clock.monotonic() + seconds
        idle = [
            await deliverer.wait_idle(max(0.0, deadline - self._clock.monotonic()))
            for deliverer in self._deliverers
        ]
        return all(idle)
