"""`tool_search`: finds tools of MCP servers by words, and makes them available to the model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from keryx.tools.mcp.tool import McpTool

MOST_LOADED: Final = 20
DEFAULT_LIMIT: Final = 8
LONGEST_LINE: Final = 200
"""Characters of a description in the result; the whole one comes with the next request."""
# The usual constants of BM25: how fast repeated words stop to count, and how much length matters.
_SATURATION: Final = 1.2
_LENGTH: Final = 0.75
_NAME_WEIGHT: Final = 3
"""A word in a name says more than one in a description."""
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")


def ranked(query: str, tools: Sequence[McpTool]) -> list[McpTool]:
    """Return the tools that match the query, the best first."""
    documents = [_words(tool) for tool in tools]
    average = sum(map(len, documents)) / len(documents) if documents else 0.0
    counts = [Counter(words) for words in documents]
    scores = [0.0] * len(tools)
    for term in dict.fromkeys(_split(query)):
        matching = [_count(term, count) for count in counts]
        present = sum(1 for number in matching if number)
        rarity = math.log(1 + (len(tools) - present + 0.5) / (present + 0.5))
        for at, number in enumerate(matching):
            if number:
                length = 1 - _LENGTH + _LENGTH * len(documents[at]) / average
                scores[at] += rarity * number * (_SATURATION + 1) / (number + _SATURATION * length)
    order = sorted(range(len(tools)), key=lambda at: (-scores[at], tools[at].name))
    return [tools[at] for at in order if scores[at] > 0]


@tool(effects=NO_EFFECTS, replay="safe")
async def tool_search(
    query: str,
    context: ToolContext,
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_LOADED)] = DEFAULT_LIMIT,
) -> Any:
    """Find more tools, those of the connected MCP servers, and make them available to you.

    The tools that it finds are described to you from your next step on; call them by their names.

    Args:
        query: What the tool should do, in a few words; or the name of a server or tool.
        limit: How many tools to load at most.
    """
    candidates = [tool for tool in context.tools.values() if isinstance(tool, McpTool)]
    matches = ranked(query, candidates)
    chosen = matches[:limit]
    if chosen:
        context.load_tools([tool.name for tool in chosen])
    if context.nested:
        return {
            "tools": [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                }
                for tool in chosen
            ],
            "matches": len(matches),
        }
    return _summary(query, chosen, len(matches), len(candidates))


def _summary(query: str, chosen: Sequence[McpTool], matches: int, candidates: int) -> str:
    if not candidates:
        return "[there are no tools of MCP servers in this session]"
    if not chosen:
        return f"[none of the {candidates} tools matches {query!r}; try other words]"
    lines = [f"{tool.name}: {_line(tool.description)}" for tool in chosen]
    more = (
        f"\n[{matches - len(chosen)} more match; use other words]" if matches > len(chosen) else ""
    )
    return "You can call these tools from now on:\n" + "\n".join(lines) + more


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"


def _words(entry: McpTool) -> list[str]:
    names = _split(f"{entry.server} {entry.listed.name}") * _NAME_WEIGHT
    parameters = " ".join(entry.parameters.get("properties", {}))
    return names + _split(f"{entry.listed.description} {parameters}")


def _split(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _count(term: str, words: Counter[str]) -> int:
    """Count a word, also in its plural and other endings."""
    exact = words[term]
    if exact or len(term) < 4:  # noqa: PLR2004 (shorter words begin many others)
        return exact
    stem = term.rstrip("s")
    return sum(count for word, count in words.items() if word.startswith(stem))
