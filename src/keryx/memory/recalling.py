"""Asks the providers what fits a question, and waits for them no longer than one budget.

A provider that fails, or that has not answered the question before, is not waited for at all; what
it answers late is used for the next turn of that session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.events import RecalledMemory
from keryx.ports.memory import MemoryProvider, MemoryScope, TurnMatch, TurnSearch
from keryx.ports.memory_access import Recall

BUDGET: Final = 0.5
"""Seconds that a turn or a call waits for a provider, on every path."""
MAX_GIVEN: Final = 8
"""Memories that a model is given with one message."""
MAX_CHARACTERS: Final = 4_000
"""Characters of all memories that a model is given with one message."""
# Answers that came late are kept for so many sessions; the next turn of others asks again.
MAX_LATE: Final = 200


class RecallSource(msgspec.Struct, frozen=True):
    """A provider to ask, and whether it fails at the moment."""

    provider: MemoryProvider
    is_failing: Callable[[], bool]


class Recalling:
    """Asks all providers at once. Belongs to the host's loop."""

    def __init__(
        self,
        sources: Sequence[RecallSource],
        scope: Scope,
        *,
        budget: float,
        report: Callable[[str, BaseException], None],
    ) -> None:
        self._sources = sources
        self._clock: Clock = scope.clock
        self._group = Group(scope.child("recalling"), on_error=report)
        self._budget = budget
        self._asked: dict[tuple[str, str], asyncio.Task[Sequence[RecalledMemory]]] = {}
        """The last request for context, by session and provider."""

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Recall:
        """Return what fits these words best, from all providers that answer in time."""
        began = self._clock.monotonic()
        tasks = {
            source.provider.name: self._group.start(
                _ask(source.provider, scope, words, limit), name="recall"
            )
            for source in self._sources
            if not source.is_failing()
        }
        await _wait(tasks.values(), self._budget)
        for task in tasks.values():
            task.cancel()
        return self._collect(tasks, limit, began)

    async def context(self, session_id: str, scope: MemoryScope, words: str) -> Recall:
        """Return what the model should be given with a message of this session."""
        began = self._clock.monotonic()
        answers: dict[str, asyncio.Task[Sequence[RecalledMemory]]] = {}
        new: list[asyncio.Task[Sequence[RecalledMemory]]] = []
        for source in self._sources:
            key = (session_id, source.provider.name)
            earlier = self._asked.pop(key, None)
            if earlier is not None and not earlier.done():
                self._asked[key] = answers[key[1]] = earlier
            elif source.is_failing() and earlier is not None:
                answers[key[1]] = earlier
            elif not source.is_failing():
                asking = _ask_context(source.provider, scope, words)
                task = self._group.start(asking, name=f"context for {session_id}")
                self._asked[key] = answers[key[1]] = task
                new.append(task)
        await _wait(new, self._budget)
        self._drop_oldest()
        recall = self._collect(answers, MAX_GIVEN, began)
        # What a page said is recalled only on request, with its label.
        trusted = tuple(memory for memory in recall.memories if memory.trust != "page")
        return msgspec.structs.replace(recall, memories=trusted)

    async def search_turns(self, scope: MemoryScope, words: str, limit: int) -> list[TurnMatch]:
        """Return earlier turns by their meaning; a provider that cannot, or is late, gives none."""
        tasks = [
            self._group.start(_ask_turns(source.provider, scope, words, limit), name="search turns")
            for source in self._sources
            if isinstance(source.provider, TurnSearch) and not source.is_failing()
        ]
        await _wait(tasks, self._budget)
        matches: dict[tuple[str, str], TurnMatch] = {}
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is None:
                matches.update(((match.turn_id, match.id), match) for match in task.result())
            task.cancel()
        return list(matches.values())[:limit]

    def forget(self, session_id: str) -> None:
        """Drop what was asked for a session that is closed or deleted."""
        for key in [key for key in self._asked if key[0] == session_id]:
            self._asked.pop(key).cancel()

    async def close(self) -> None:
        await self._group.leave()
        self._group.scope.close()

    def _drop_oldest(self) -> None:
        most = MAX_LATE * max(1, len(self._sources))
        for key in list(self._asked)[: max(0, len(self._asked) - most)]:
            self._asked.pop(key).cancel()

    def _collect(
        self,
        tasks: dict[str, asyncio.Task[Sequence[RecalledMemory]]],
        limit: int,
        began: float,
    ) -> Recall:
        gave: list[Sequence[RecalledMemory]] = []
        late = [s.provider.name for s in self._sources if s.provider.name not in tasks]
        for name, task in tasks.items():
            if task.done() and not task.cancelled() and task.exception() is None:
                gave.append(task.result())
            else:
                late.append(name)
        return Recall(
            memories=tuple(merged(gave, limit)),
            late=tuple(sorted(late)),
            waited=self._clock.monotonic() - began,
        )


async def _ask(
    provider: MemoryProvider, scope: MemoryScope, words: str, limit: int
) -> Sequence[RecalledMemory]:
    return await provider.recall(scope, words, limit)


async def _ask_context(
    provider: MemoryProvider, scope: MemoryScope, words: str
) -> Sequence[RecalledMemory]:
    return await provider.context(scope, words, MAX_GIVEN)


async def _ask_turns(
    provider: TurnSearch, scope: MemoryScope, words: str, limit: int
) -> Sequence[TurnMatch]:
    return await provider.search_turns(scope, words, limit)


async def _wait(tasks: Iterable[asyncio.Task[Any]], seconds: float) -> None:
    waiting = list(tasks)
    if waiting:
        await asyncio.wait(waiting, timeout=seconds)


def merged(answers: Sequence[Sequence[RecalledMemory]], limit: int) -> list[RecalledMemory]:
    """Return the best of all answers in turn. Restatements are folded, contradictions are not."""
    chosen: dict[str, RecalledMemory] = {}
    texts: set[str] = set()
    size = 0
    for rank in range(max(map(len, answers), default=0)):
        for answer in answers:
            if rank >= len(answer) or len(chosen) >= limit:
                continue
            memory = answer[rank]
            text = " ".join(memory.text.casefold().split())
            if memory.memory_id in chosen or text in texts:
                continue
            if size + len(memory.text) > MAX_CHARACTERS and chosen:
                continue
            size += len(memory.text)
            chosen[memory.memory_id] = memory
            texts.add(text)
    return list(chosen.values())
