"""Search engines behind one interface: SearXNG, Brave, Tavily, and the package `ddgs`."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, Final, Protocol, cast

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.tool_context import ToolContext

BRAVE_URL: Final = "https://api.search.brave.com/res/v1/web/search"
TAVILY_URL: Final = "https://api.tavily.com/search"
SECONDS: Final = 30.0
MAX_REPLY: Final = 5_000_000
_LONGEST: Final = 1_000
"""Characters of a title or a description."""
_MOST_PER_REQUEST: Final = 20  # Brave and Tavily accept no larger number


class Hit(msgspec.Struct, frozen=True):
    """One result of a search."""

    title: str
    url: str
    text: str


class SearchBackend(Protocol):
    """A search engine."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, limit: int, context: ToolContext) -> list[Hit]:
        """Return up to so many results; `ToolFailedError` says what to do if it cannot."""
        ...


class SearxngSearch:
    """A SearXNG server; its settings must allow the format `json`."""

    name = "searxng"

    def __init__(self, url: str) -> None:
        self._url = f"{url.rstrip('/')}/search"

    async def search(self, query: str, limit: int, context: ToolContext) -> list[Hit]:
        parameters = {"q": query, "format": "json"}
        advice = "check `searxng_url`, and that the server's `search.formats` include json"
        reply = await _ask(context, "GET", self._url, advice, params=parameters)
        return _hits(reply.get("results"), limit, "content")


class BraveSearch:
    """The search of Brave."""

    name = "brave"

    def __init__(self, key: str, url: str = BRAVE_URL) -> None:
        self._key = key
        self._url = url

    async def search(self, query: str, limit: int, context: ToolContext) -> list[Hit]:
        parameters = {"q": query[:400], "count": str(min(limit, _MOST_PER_REQUEST))}
        headers = {"X-Subscription-Token": self._key, "Accept": "application/json"}
        advice = "check the key of Brave"
        reply = await _ask(context, "GET", self._url, advice, params=parameters, headers=headers)
        return _hits(_mapping(reply.get("web")).get("results"), limit, "description")


class TavilySearch:
    """The search of Tavily."""

    name = "tavily"

    def __init__(self, key: str, url: str = TAVILY_URL) -> None:
        self._key = key
        self._url = url

    async def search(self, query: str, limit: int, context: ToolContext) -> list[Hit]:
        body = {"query": query, "max_results": min(limit, _MOST_PER_REQUEST)}
        headers = {"Authorization": f"Bearer {self._key}"}
        reply = await _ask(
            context, "POST", self._url, "check the key of Tavily", json=body, headers=headers
        )
        return _hits(reply.get("results"), limit, "content")


class DdgsSearch:
    """The package `ddgs`, which asks public search engines. It blocks, so it runs in a thread."""

    name = "ddgs"

    async def search(self, query: str, limit: int, context: ToolContext) -> list[Hit]:
        rows = await context.to_thread(_ask_ddgs, query, limit)
        return _hits(rows, limit, "body", "href")


def is_ddgs_installed() -> bool:
    return importlib.util.find_spec("ddgs") is not None


def _ask_ddgs(query: str, limit: int) -> object:
    ddgs: Any = importlib.import_module("ddgs")
    try:
        return ddgs.DDGS(timeout=int(SECONDS)).text(query, max_results=limit)
    except Exception as error:
        # The package raises its own errors for "no results" and for every fault of an engine.
        if "no results" in str(error).lower():
            return []
        raise ToolFailedError(
            f"the search failed ({type(error).__name__}: {error!s:.200}); try again later, or ask "
            "the user to configure another search engine in [tools.web]"
        ) from error


async def _ask(
    context: ToolContext, method: str, url: str, advice: str, **options: Any
) -> Mapping[str, Any]:
    """Return the reply of a search engine as an object; `ToolFailedError` if there is none."""
    import aiohttp  # noqa: PLC0415 (heavy; loaded with the first request)

    client = await context.http()
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        # A key in a header goes to no other host.
        async with client.request(
            method, url, timeout=timeout, allow_redirects=False, **options
        ) as response:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_REPLY:
                    raise ToolFailedError(f"the search engine's reply is too long; {advice}")
            if response.status != 200:  # noqa: PLR2004 (OK)
                raise ToolFailedError(
                    f"the search engine answered with status {response.status}; ask the user to "
                    f"{advice}, or try again later"
                )
    except TimeoutError as error:
        raise ToolFailedError(
            f"the search engine did not answer within {SECONDS:g} s; try again later"
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ToolFailedError(
            f"the search engine cannot be reached ({type(error).__name__}); "
            f"ask the user to {advice}"
        ) from error
    try:
        return _mapping(msgspec.json.decode(bytes(body)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ToolFailedError(
            f"the search engine did not answer with JSON; ask the user to {advice}"
        ) from error


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _hits(rows: object, limit: int, text_key: str, url_key: str = "url") -> list[Hit]:
    """Return the well-formed rows of a reply."""
    hits: list[Hit] = []
    for row in cast("list[object]", rows) if isinstance(rows, list) else ():
        fields = _mapping(row)
        url = fields.get(url_key)
        if isinstance(url, str) and url.startswith(("http://", "https://")):
            hits.append(Hit(_line(fields.get("title")), url, _line(fields.get(text_key))))
    return hits[:limit]


def _line(value: object) -> str:
    """Return the text as one line; search engines send line breaks and other things."""
    return " ".join(value.split())[:_LONGEST] if isinstance(value, str) else ""
