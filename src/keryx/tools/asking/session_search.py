"""`session_search`: finds what was said in earlier sessions."""

from __future__ import annotations

from datetime import UTC
from typing import Any, Final

from keryx.dates import time_text
from keryx.errors import ToolFailedError
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.search import SessionMatch
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool

MOST_MATCHES: Final = 50
SYSTEM: Final = (
    "You get excerpts from earlier sessions of the same person. Answer the question from them "
    "alone, name the sessions by their ids, and say so if they do not answer it."
)


@tool(effects=NO_EFFECTS, replay="safe")
async def session_search(
    words: str, context: ToolContext, question: str | None = None, limit: int = 10
) -> Any:
    """Search in the transcripts of all sessions, this one included.

    Args:
        words: Words that must occur; "a phrase" in quotes.
        question: What to find out; a model answers it from the excerpts if one is set for search.
        limit: The most excerpts.
    """
    if not words.strip():
        raise ToolFailedError("session_search needs words to search for")
    limit = min(max(limit, 1), MOST_MATCHES)
    matches = [
        match
        for match in await context.search_sessions(words, 2 * limit)
        # Every search would find itself: its words are arguments of a call of this session.
        if match.session_id != context.session_id or match.kind != "call"
    ][:limit]
    rows = [_described(match) for match in matches]
    answer: str | None = None
    if matches and question and context.has_model_for("search"):
        excerpts = "\n\n".join(f"[{row['session']}, {row['date']}] {row['text']}" for row in rows)
        text = f"Question: {question}\n\nExcerpts:\n{excerpts}"
        answer = await context.ask_model("search", text, system=SYSTEM)
    return {"matches": rows, "answer": answer} if answer is not None else {"matches": rows}


def _described(match: SessionMatch) -> dict[str, str]:
    return {
        "session": match.session_id,
        "title": match.title,
        "date": time_text(match.at, UTC),
        "kind": match.kind,
        "text": match.text,
    }
