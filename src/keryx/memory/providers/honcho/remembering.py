"""Asks Honcho what fits a question, and labels it: what is ours, and what Honcho derived.

Honcho derives from all sessions of a profile. A scope gets only what comes from sessions of its
workspace, and nothing from a session with a withdrawn turn: its text could come back that way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final

import msgspec

from keryx.aio.owned import Owned
from keryx.events import RecalledMemory, Trust
from keryx.memory.own_words import recalled
from keryx.memory.providers.honcho.connection import Connection
from keryx.memory.providers.honcho.failures import RequestRefusedError, answer
from keryx.memory.providers.honcho.names import (
    AGENT,
    USER,
    clean,
    digest_of,
    observed_name,
    workspace_name,
)
from keryx.memory.providers.honcho.remote_items import Entry, RemoteItems
from keryx.ports.memory import MemoryScope, ProviderUnavailableError

NAME: Final = "honcho"
MAX_RESULTS: Final = 100
# Characters of a question. Honcho refuses one with more than 8,192 tokens.
MAX_QUESTION: Final = 2_000
# Characters of what Honcho knows about the user, as one memory.
MAX_REPRESENTATION: Final = 1_500
# Sessions of a workspace that derived memories may come from: the newest.
MAX_SESSIONS: Final = 200


class Remembering:
    """Searches at Honcho. Belongs to the provider."""

    def __init__(
        self, connections: Owned[Connection], remote_items: RemoteItems, configured: str
    ) -> None:
        self._connections = connections
        self._remote_items = remote_items
        self._configured = configured

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> list[RecalledMemory]:
        """Return our memories that fit, then what Honcho derived, then what the person said."""
        question = _question(words)
        if not (scope.profile and question):
            return []
        count = max(1, min(limit, MAX_RESULTS))
        workspace = workspace_name(self._configured, scope.profile)
        sessions = await self._remote_items.turn_sessions(workspace, scope.workspace, MAX_SESSIONS)
        about = [observed_name(place) for place in dict.fromkeys(("", scope.workspace))]
        queries = [self._own(workspace, scope, name, question, count) for name in about]
        if sessions:
            queries += [
                self._derived(workspace, sessions, question, count),
                self._said(workspace, sessions, question, count),
            ]
        own_count = len(about)
        answers = await _all(queries)
        own = _in_turn(answers[:own_count])
        return _distinct([*own, *(memory for rest in answers[own_count:] for memory in rest)])[
            :limit
        ]

    async def context(self, scope: MemoryScope, words: str, limit: int) -> list[RecalledMemory]:
        """Return what Honcho knows about the user from here, and our memories that fit."""
        memories = await self.recall(scope, words, limit)
        question = _question(words)
        if not (scope.profile and question):
            return memories
        workspace = workspace_name(self._configured, scope.profile)
        sessions = await self._remote_items.turn_sessions(workspace, scope.workspace, MAX_SESSIONS)
        if not sessions:
            return memories
        representation = await _all([self._representation(workspace, sessions, question, limit)])
        return [*representation[0], *memories][:limit]

    async def _representation(
        self, workspace: str, sessions: Sequence[str], question: str, limit: int
    ) -> list[RecalledMemory]:
        peer = await (await self._connections.get()).peer(workspace, USER)
        count = max(1, min(limit, MAX_RESULTS))
        representation = await answer(
            peer.aio.representation(search_query=question, max_conclusions=count, sessions=sessions)
        )
        text = _shortened(str(representation))
        return [_derived(text, digest_of(text).hex())] if text else []

    async def _own(
        self, workspace: str, scope: MemoryScope, observed: str, question: str, count: int
    ) -> list[RecalledMemory]:
        view = await (await self._connections.get()).conclusions(workspace, observed)
        conclusions: Sequence[Any] = await answer(view.query(question, top_k=count))
        entries = await self._remote_items.of_remotes(
            workspace, [entry.id for entry in conclusions]
        )
        memories = await self._remote_items.memories(entry.item for entry in entries.values())
        results: list[RecalledMemory] = []
        for conclusion in conclusions:
            entry = entries.get(conclusion.id)
            if entry is None:
                # Of another home: nobody here knows whom it was trusted like there.
                text = str(conclusion.content)
                results.append(_derived(text, conclusion.id, trust="page"))
                continue
            memory = memories.get(entry.item)
            if memory is None:
                results.append(_ours(entry, str(conclusion.content)))
            elif memory.state == "active" and memory.workspace in ("", scope.workspace):
                results.append(recalled(memory, NAME))
        return results

    async def _derived(
        self, workspace: str, sessions: Sequence[str], question: str, count: int
    ) -> list[RecalledMemory]:
        connection = await self._connections.get()
        view = await connection.conclusions(workspace, USER, observer=USER)
        filters = {"session_id": {"in": list(sessions)}}
        conclusions = await answer(view.query(question, top_k=count, filters=filters))
        return [
            _derived(str(conclusion.content), conclusion.id)
            for conclusion in conclusions
            if conclusion.session_id in sessions
        ]

    async def _said(
        self, workspace: str, sessions: Sequence[str], question: str, count: int
    ) -> list[RecalledMemory]:
        """Return words of the person. Answers are left out: nobody knows what they quote."""
        peer = await (await self._connections.get()).peer(workspace, USER)
        filters = {"session_id": {"in": list(sessions)}}
        messages: Sequence[Any] = await answer(
            peer.aio.search(question, filters=filters, limit=count)
        )
        turns = [str(message.metadata.get("turn_id")) for message in messages]
        entries = await self._remote_items.of_items(turns)
        return [
            msgspec.structs.replace(
                _derived(str(message.content), message.id),
                session_id=entries[turn].session_id,
                at=entries[turn].at,
            )
            for message, turn in zip(messages, turns, strict=True)
            if turn in entries and not entries[turn].ended and message.peer_id != AGENT
        ]


async def _all(
    queries: Iterable[Awaitable[list[RecalledMemory]]],
) -> list[list[RecalledMemory]]:
    """Await all queries at once; one that the server refuses has no answer."""

    async def one(query: Awaitable[list[RecalledMemory]]) -> list[RecalledMemory] | Exception:
        try:
            return await query
        except RequestRefusedError:
            return []
        except ProviderUnavailableError as error:
            return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(query)) for query in queries]
    answers: list[list[RecalledMemory]] = []
    for result in (task.result() for task in tasks):
        if isinstance(result, Exception):
            raise result
        answers.append(result)
    return answers


def _question(words: str) -> str:
    return clean(words).strip()[:MAX_QUESTION]


def _shortened(text: str) -> str:
    if len(text) <= MAX_REPRESENTATION:
        return text.strip()
    return text[:MAX_REPRESENTATION].rpartition("\n")[0].strip() or text[:MAX_REPRESENTATION]


def _in_turn(answers: Sequence[Sequence[RecalledMemory]]) -> list[RecalledMemory]:
    ranks = range(max(map(len, answers), default=0))
    return [answer[rank] for rank in ranks for answer in answers if rank < len(answer)]


def _distinct(memories: Iterable[RecalledMemory]) -> list[RecalledMemory]:
    """Return the first of each text."""
    first: dict[str, RecalledMemory] = {}
    for memory in memories:
        first.setdefault(memory.text, memory)
    return list(first.values())


def _ours(entry: Entry, text: str) -> RecalledMemory:
    return RecalledMemory(
        memory_id=entry.item,
        text=text,
        trust=entry.trust,
        provider=NAME,
        session_id=entry.session_id,
        at=entry.at,
    )


def _derived(text: str, remote: str, trust: Trust = "tool") -> RecalledMemory:
    """Return something that no item of ours is: what Honcho says by itself is like a tool's."""
    return RecalledMemory(memory_id=f"honcho:{remote}", text=text, trust=trust, provider=NAME)
