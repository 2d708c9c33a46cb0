"""Asks the providers what fits a question, and waits for them no longer than one budget.

A provider that fails is not asked. One that has left a question unanswered for longer is asked,
but no session waits for it until it answers again. After each turn the providers are asked for the
next one; what they answer, also late, is used then.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec

from keryx.aio.clock import Clock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.decoding import convert
from keryx.events import RecalledMemory
from keryx.messages import well_formed
from keryx.ports.memory import MemoryProvider, MemoryScope, TurnMatch, TurnSearch
from keryx.ports.memory_access import Recall

BUDGET: Final = 0.5
"""Seconds that a turn or a call waits for a provider, on every path."""
MAX_GIVEN: Final = 8
"""Memories that a model is given with one message."""
MAX_CHARACTERS: Final = 4_000
"""Characters of all memories that a model is given with one message."""
MOMENT: Final = 0.05
"""Seconds that a turn waits for a provider whose earlier answer is there."""
GIVE_UP_AFTER: Final = 10.0
"""Seconds after which a question that has no answer is asked anew: it may be lost."""
MAX_ANSWERS: Final = 1_000
MAX_ENTRIES: Final = 200
"""Entries that are read of one answer."""
LAST_YEAR: Final = 250_000_000_000.0
"""A later time of a memory has no date."""
_NOT_IN_ID: Final = re.compile(r"[^\w./:@+-]")

_Key = tuple[str, str, MemoryScope]
"""A session, the name of a provider, and whose memories were asked for."""
_Asking = asyncio.Task[list[RecalledMemory] | None]
T = TypeVar("T", RecalledMemory, TurnMatch)


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
        correct: Callable[[Sequence[RecalledMemory]], Awaitable[tuple[RecalledMemory, ...]]],
        report: Callable[[str, BaseException], None],
    ) -> None:
        self._sources = sources
        self._clock: Clock = scope.clock
        self._group = Group(scope.child("recalling"), on_error=report)
        self._budget = budget
        self._correct = correct
        self._requests: dict[_Key, tuple[_Asking, float]] = {}
        """Requests for context that are not answered yet, and when they were made."""
        self._answers: dict[_Key, list[RecalledMemory]] = {}
        """The last answers, the newest last."""
        self._silent_since: dict[str, float] = {}
        """When each provider was asked first after its last answer."""

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Recall:
        """Return what fits these words best, from all providers that answer in time."""
        began = self._clock.monotonic()
        tasks = {
            source.provider.name: self._group.start(
                _memories(source, partial(source.provider.recall, scope, words, limit)),
                name="recall",
            )
            for source in self._sources
            if not source.is_failing()
        }
        await _wait(tasks.values(), self._budget)
        gave = {
            name: answer for name, task in tasks.items() if (answer := _result(task)) is not None
        }
        for task in tasks.values():
            task.cancel()
        return await self._recall(gave, limit, began)

    async def context(self, session_id: str, scope: MemoryScope, words: str) -> Recall:
        """Return what the model should be given with a message of this session.

        A provider that has answered for this session before is waited for only a moment.
        """
        began = self._clock.monotonic()
        new = self._ask_all(session_id, scope, words)
        unanswered = [
            task
            for key, task in new.items()
            if not (key in self._answers or self._is_silent(key[1]))
        ]
        await _wait(unanswered, self._budget)
        await _wait(new.values(), min(MOMENT, self._budget))
        gave: dict[str, Sequence[RecalledMemory]] = {}
        for source in self._sources:
            answer = self._answers.get((session_id, source.provider.name, scope))
            if answer is not None:
                gave[source.provider.name] = answer
        recall = await self._recall(gave, MAX_GIVEN, began)
        # What a page said is recalled only on request, with its label.
        trusted = tuple(memory for memory in recall.memories if memory.trust != "page")
        return msgspec.structs.replace(recall, memories=trusted)

    def prefetch(self, session_id: str, scope: MemoryScope, words: str) -> None:
        """Ask for the next turn of this session, whose message is not known yet."""
        if not self._group.scope.is_cancelled:
            self._ask_all(session_id, scope, words)

    def _ask_all(self, session_id: str, scope: MemoryScope, words: str) -> dict[_Key, _Asking]:
        """Ask all providers that work. A question that was asked just now is asked anew."""
        new: dict[_Key, _Asking] = {}
        for source in self._sources:
            key = (session_id, source.provider.name, scope)
            if not (source.is_failing() or self._is_hanging(key)):
                ask = partial(source.provider.context, scope, words, MAX_GIVEN)
                asking = _memories(source, ask)
                task = self._group.start(asking, name=f"context for {session_id}")
                task.add_done_callback(partial(self._on_answer, key))
                self._requests[key] = (task, now := self._clock.monotonic())
                self._silent_since.setdefault(key[1], now)
                new[key] = task
        return new

    def _is_silent(self, name: str) -> bool:
        """Return whether a provider has answered no question of any session for longer."""
        since = self._silent_since.get(name)
        return since is not None and self._clock.monotonic() - since >= self._budget

    def _is_hanging(self, key: _Key) -> bool:
        """Return whether the answer to the last question may still come.

        A question that was asked just now, or that is given up, is dropped for the new one.
        """
        task, since = self._requests.get(key, (None, 0.0))
        if task is None:
            return False
        if self._budget <= self._clock.monotonic() - since < GIVE_UP_AFTER:
            return True
        del self._requests[key]
        task.cancel()
        return False

    def _on_answer(self, key: _Key, task: _Asking) -> None:
        if self._requests.get(key, (None, 0.0))[0] is task:
            del self._requests[key]
        if not task.cancelled():  # a failure is an answer too
            self._silent_since.pop(key[1], None)
        if (answer := _result(task)) is not None:
            self._answers.pop(key, None)
            self._answers[key] = answer
            for oldest in list(self._answers)[: max(0, len(self._answers) - MAX_ANSWERS)]:
                del self._answers[oldest]

    async def search_turns(self, scope: MemoryScope, words: str, limit: int) -> list[TurnMatch]:
        """Return earlier turns by their meaning; a provider that cannot, or is late, gives none."""
        tasks = [
            self._group.start(
                _answer(partial(source.provider.search_turns, scope, words, limit), TurnMatch),
                name="search turns",
            )
            for source in self._sources
            if isinstance(source.provider, TurnSearch) and not source.is_failing()
        ]
        await _wait(tasks, self._budget)
        matches: dict[tuple[str, str], TurnMatch] = {}
        for task in tasks:
            matches.update(((match.turn_id, match.id), match) for match in _result(task) or ())
            task.cancel()
        return list(matches.values())[:limit]

    def forget(self, session_id: str) -> None:
        """Drop what was asked for a session that is closed or deleted."""
        for key in [key for key in self._answers if key[0] == session_id]:
            del self._answers[key]
        for key in [key for key in self._requests if key[0] == session_id]:
            self._requests.pop(key)[0].cancel()
            self._drop_silence(key[1])

    def _drop_silence(self, name: str) -> None:
        """Forget when a provider was asked, if nobody waits for it any more before it is late."""
        if not (self._is_silent(name) or any(key[1] == name for key in self._requests)):
            self._silent_since.pop(name, None)

    async def close(self) -> None:
        await self._group.leave()
        self._group.scope.close()

    async def _recall(
        self, gave: Mapping[str, Sequence[RecalledMemory]], limit: int, began: float
    ) -> Recall:
        names = [source.provider.name for source in self._sources]
        return Recall(
            memories=await self._correct(
                merged([gave[name] for name in names if name in gave], limit)
            ),
            late=tuple(sorted(name for name in names if name not in gave)),
            waited=self._clock.monotonic() - began,
        )


async def _memories(
    source: RecallSource, ask: Callable[[], Awaitable[Sequence[RecalledMemory]]]
) -> list[RecalledMemory] | None:
    """Return the memories of a provider as they can be logged and shown to a model."""
    answer = await _answer(ask, RecalledMemory)
    if answer is None:
        return None
    return [
        msgspec.structs.replace(
            memory,
            memory_id=_NOT_IN_ID.sub("_", memory.memory_id)[:200],
            session_id=well_formed(memory.session_id),
            provider=source.provider.name,
        )
        for memory in answer
    ]


async def _answer(ask: Callable[[], Awaitable[Sequence[T]]], kind: type[T]) -> list[T] | None:
    """Return the answer; None if the provider fails, or answers something else than entries.

    What it has to store shows the failure.
    """
    try:
        entries = msgspec.to_builtins(list(islice(await ask(), MAX_ENTRIES)))
        return [_plain(entry) for entry in convert(entries, list[kind])]
    except Exception:  # noqa: BLE001 (whatever fails in a provider, it gives nothing)
        return None


def _plain(entry: T) -> T:
    """Return an entry with a text that can be written, and a time that has a date."""
    has_date = 0.0 <= entry.at < LAST_YEAR
    return msgspec.structs.replace(
        entry, text=well_formed(entry.text), at=entry.at if has_date else 0.0
    )


async def _wait(tasks: Iterable[asyncio.Task[Any]], seconds: float) -> None:
    waiting = [task for task in tasks if not task.done()]
    if waiting:
        await asyncio.wait(waiting, timeout=seconds)


def _result(task: asyncio.Task[list[T] | None]) -> list[T] | None:
    return task.result() if task.done() and not task.cancelled() else None


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
            chosen[memory.memory_id] = _shortened(memory)
            texts.add(text)
    return list(chosen.values())


def _shortened(memory: RecalledMemory) -> RecalledMemory:
    """Return a memory that does not fill the context alone; a person can write a longer one."""
    if len(memory.text) <= MAX_CHARACTERS:
        return memory
    return msgspec.structs.replace(memory, text=f"{memory.text[:MAX_CHARACTERS]}…")
