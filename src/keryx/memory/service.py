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
from keryx.errors import StoreError
from keryx.memory import deliveries, intake, intake_rows, memories
from keryx.memory.changes.curation import Curation
from keryx.memory.changes.forgetting import Forgetting, Forgotten
from keryx.memory.deliverer import ATTEMPT_TIMEOUT, FIRST_PAUSE, Deliverer
from keryx.memory.deliveries import FailedDelivery, ProviderState
from keryx.memory.memory_file import MemoryFile
from keryx.memory.own_words import NAME as WORDS
from keryx.memory.own_words import WordSearch, corrected
from keryx.memory.passes import OutboxPages, Passes
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
from keryx.ports.store import Store


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
        self._clock = scope.clock
        self.file: Final = file
        self._group = Group(scope.child("memory"), on_error=report)
        self.budget: Final = budget
        deliverer = partial(
            Deliverer, report=report, attempt_timeout=attempt_timeout, first_pause=first_pause
        )
        self._deliverers = [deliverer(p, file, self._group.scope) for p in providers]
        self._names = tuple(deliverer.provider.name for deliverer in self._deliverers)
        sources = [RecallSource(d.provider, d.fails) for d in self._deliverers]
        sources.insert(0, RecallSource(WordSearch(file), lambda: False))
        correct = partial(corrected, file)
        self._recalling = Recalling(
            sources, self._group.scope, budget=budget, correct=correct, report=report
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
        self.tell_owner, self._takes_in = tell_owner, tell_owner is None
        self._pages = OutboxPages(store, file, self._names, scope.clock, self._taken_in)
        self._intake = Passes(self._group, self._pages.take_in, name="take in memories")
        self._delivers = False

    def redact_with(self, redact: Callable[[str], str]) -> None:
        """Remove secrets from what people write with this function: providers may be elsewhere."""
        self.curation.redact = redact

    @property
    def fault(self) -> StoreError | None:
        """Why nothing could be taken in, or why the file failed the last time; None: neither did.

        A delivery that could be noted since then does not mean that something can be taken in.
        """
        return self._pages.fault or self.file.fault

    def wall(self) -> float:
        """Return the time of day by the clock that deliveries use."""
        return self._clock.wall()

    async def start(self) -> None:
        """Deliver what earlier processes left. Only the owner of a home calls this."""
        self._delivers = True
        for deliverer in self._deliverers:
            await deliverer.register()
        await self._pages.forget_old_marks()
        await self.take_in()
        for deliverer in self._deliverers:
            await deliverer.start()

    async def close(self, drain: float = 0.0) -> None:
        """Deliver what is left for `drain` seconds; the next start delivers the rest."""
        try:
            if self._delivers and drain > 0:
                await self._drain(drain)
        finally:
            await self._recalling.close()
            for deliverer in self._deliverers:
                await deliverer.close()
            await self._group.leave()
            await self.file.close()
            self._group.scope.close()

    async def _drain(self, seconds: float) -> None:
        await self.take_in()
        deadline = self._clock.monotonic() + seconds
        for deliverer in [d for d in self._deliverers if not d.is_failing]:
            await deliverer.wait_idle(deadline - self._clock.monotonic())

    # -- what sessions remember

    turn_row = staticmethod(intake_rows.turn_row)
    undone_row = staticmethod(intake_rows.undone_row)
    restored_row = staticmethod(intake_rows.restored_row)
    changed_row = staticmethod(intake_rows.changed_row)

    def wake(self) -> None:
        """Take in new rows of the outbox soon; they are durable already."""
        self._intake.request()

    async def take_in(self) -> None:
        """Take in everything that is in the outbox now; what comes later is not waited for."""
        if self._takes_in:
            await self._intake.wait()
        else:
            await self._announce()

    def _taken_in(self, items: Sequence[MemoryItem]) -> None:
        self._prefetch(items)
        self._deliver(items)

    def _prefetch(self, items: Iterable[MemoryItem]) -> None:
        """Ask for the next turn of each session whose turn has ended."""
        for item in items:
            if isinstance(item, TurnMemory):
                words = " ".join(text.text for text in item.texts)
                scope = MemoryScope(item.profile, item.workspace)
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
        """Return what fits these words best, with everything that was accepted so far.

        If that could not be taken in within the budget, the memory itself is among the late ones.
        """
        is_complete = await self._is_taken_in()
        recall = await self._recalling.recall(scope, words, limit)
        if not is_complete:
            recall = msgspec.structs.replace(recall, late=(WORDS, *recall.late))
        if not recall.late:
            return recall
        behind = [state.syncing_for for state in await self._lags() if state.name in recall.late]
        longest = max((age for age in behind if age is not None), default=None)
        return msgspec.structs.replace(recall, syncing_for=longest)

    async def _is_taken_in(self) -> bool:
        """Take in what is in the outbox now; return whether that took no longer than the budget."""
        taking_in = self._group.start(self.take_in(), name="take in before a search")
        await asyncio.wait([taking_in], timeout=self.budget)
        return taking_in.done() and not taking_in.cancelled() and taking_in.exception() is None

    async def context(self, session_id: str, scope: MemoryScope, words: str) -> Recall:
        """Return what the model should be given with a message of this session."""
        if (intake := self._intake.unfinished) is not None:  # what was remembered just now
            await asyncio.wait([intake], timeout=self.budget)
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
        return await self._lags()

    async def _lags(self) -> list[ProviderState]:
        names = {deliverer.provider.name: deliverer.left_out for deliverer in self._deliverers}
        return await self.file.read(
            partial(deliveries.states, providers=names, now=self._clock.wall())
        )

    def failing(self) -> dict[str, str]:
        """Return the reasons of providers whose last attempt failed; none that is left out."""
        tried = [d for d in self._deliverers if d.left_out is None and d.breaker.failures]
        return {deliverer.provider.name: deliverer.breaker.error for deliverer in tried}

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
        idle = [await d.wait_idle(deadline - self._clock.monotonic()) for d in self._deliverers]
        return all(idle)
