"""The search in all sessions, for tools: by words, and by meaning if the host's memory can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from keryx.ports.memory import MemoryScope, TurnMatch
from keryx.ports.memory_access import HostMemory
from keryx.ports.search import SessionMatch
from keryx.ports.store import Store

MAX_TEXT: Final = 500
"""Characters of a turn that is found by its meaning."""


async def search_sessions(
    store: Store,
    memory: HostMemory | None,
    scope: MemoryScope,
    person: str | None,
    words: str,
    limit: int,
) -> list[SessionMatch]:
    """Return texts that have these words; behind them turns of this scope that mean the like.

    For a person only their own sessions are searched; None: all of the home, for its owner.
    """
    matches: list[SessionMatch] = []
    for hit in await store.search(words, limit=limit, person=person):
        text = "".join(piece.text for piece in hit.snippet)
        title = await _title(store, hit.session_id)
        matches.append(
            SessionMatch(
                session_id=hit.session_id, title=title or "", at=hit.at, kind=hit.kind, text=text
            )
        )
    if memory is None or len(matches) >= limit:
        return matches
    for turn in await memory.search_turns(scope, words, limit):
        title = await _title(store, turn.session_id)
        # A session that was deleted a moment ago may still be in the index.
        if title is not None and len(matches) < limit and not _is_among(turn, matches):
            matches.append(_match(turn, title))
    return matches


async def _title(store: Store, session_id: str) -> str | None:
    row = await store.session(session_id)
    return None if row is None else row.title


def _is_among(turn: TurnMatch, matches: Sequence[SessionMatch]) -> bool:
    text = " ".join(turn.text.split())
    return any(
        match.session_id == turn.session_id and " ".join(match.text.strip("…").split()) in text
        for match in matches
    )


def _match(turn: TurnMatch, title: str) -> SessionMatch:
    is_long = len(turn.text) > MAX_TEXT
    return SessionMatch(
        session_id=turn.session_id,
        title=title,
        at=turn.at,
        kind="message" if turn.by == "user" else "reply",
        text=f"{turn.text[:MAX_TEXT]}…" if is_long else turn.text,
    )
