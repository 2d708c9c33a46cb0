"""`web_search`: asks the search engine that is configured."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from keryx.tools.web.outside_text import marked
from keryx.tools.web.search_backends import Hit, SearchBackend


def search_tool(backend: SearchBackend) -> Tool:
    """Return `web_search` with this search engine."""

    @tool(effects=NO_EFFECTS, replay="safe", risk=Risk("low", "sends the words to a search engine"))
    async def web_search(
        query: str,
        context: ToolContext,
        limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10,
    ) -> Any:
        """Search the web; returns titles, addresses and short descriptions.

        Read the pages themselves with `web_extract`.

        Args:
            query: What to search for, as in any search engine.
            limit: How many results to return at most.
        """
        if not query.strip():
            raise ToolFailedError("there is nothing to search for; give `query`")
        hits = await backend.search(query.strip(), limit, context)
        if context.nested:
            return {
                "results": [msgspec.to_builtins(hit) for hit in hits],
                "backend": backend.name,
                "text": "\n".join(hit.url for hit in hits),
            }
        if not hits:
            return f"nothing found for {query!r}; try other words"
        lines = "\n\n".join(_entry(number, hit) for number, hit in enumerate(hits, 1))
        return marked(lines, f"a search with {backend.name}")

    return web_search


def _entry(number: int, hit: Hit) -> str:
    description = f"\n   {hit.text}" if hit.text else ""
    return f"{number}. {hit.title or hit.url}\n   {hit.url}{description}"
