"""What the web tools need from the configuration, as plain values, and the tools made from it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from keryx.ports.tool import Tool
from keryx.tools.web.extract import extract_tool
from keryx.tools.web.extraction import missing as missing_packages
from keryx.tools.web.fetching import FetchLimits
from keryx.tools.web.search import search_tool
from keryx.tools.web.search_backends import (
    BraveSearch,
    DdgsSearch,
    SearchBackend,
    SearxngSearch,
    TavilySearch,
    is_ddgs_installed,
)

BackendName = Literal["searxng", "brave", "tavily", "ddgs"]


class WebSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the web tools."""

    backend: BackendName | None = None
    """The search engine; None: the first one that is configured."""
    searxng_url: str | None = None
    brave_api_key: str | None = None
    tavily_api_key: str | None = None
    allow_private: tuple[str, ...] = ()
    limits: FetchLimits = FetchLimits()


NO_SETTINGS: Final = WebSettings()


def web_tools(settings: WebSettings = NO_SETTINGS) -> list[Tool]:
    """Return the web tools that can work here."""
    tools: list[Tool] = []
    backend = choose_backend(settings)
    if backend is not None:
        tools.append(search_tool(backend))
    if missing_packages() is None:
        tools.append(extract_tool(settings.allow_private, settings.limits))
    return tools


def missing(settings: WebSettings = NO_SETTINGS) -> tuple[str, ...]:
    """Return what is missing for each tool that is not offered, and how to get it."""
    lines: list[str] = []
    if choose_backend(settings) is None:
        lines.append(f"web_search needs a search engine: {_advice(settings)}")
    if (packages := missing_packages()) is not None:
        lines.append(f"web_extract needs {packages}")
    return tuple(lines)


def choose_backend(settings: WebSettings) -> SearchBackend | None:
    """Return the named search engine, else the first one that is configured; None if none is."""
    available: dict[str, SearchBackend] = {}
    if settings.searxng_url:
        available["searxng"] = SearxngSearch(settings.searxng_url)
    if settings.brave_api_key:
        available["brave"] = BraveSearch(settings.brave_api_key)
    if settings.tavily_api_key:
        available["tavily"] = TavilySearch(settings.tavily_api_key)
    if is_ddgs_installed():
        available["ddgs"] = DdgsSearch()
    if settings.backend is not None:
        return available.get(settings.backend)
    return next(iter(available.values()), None)


def _advice(settings: WebSettings) -> str:
    match settings.backend:
        case "searxng":
            return "set searxng_url in [tools.web]"
        case "brave":
            return "set the variable BRAVE_API_KEY"
        case "tavily":
            return "set the variable TAVILY_API_KEY"
        case "ddgs":
            return "pip install 'keryx[ddgs]'"
        case None:
            return (
                "set searxng_url in [tools.web], or the variable BRAVE_API_KEY or TAVILY_API_KEY, "
                "or pip install 'keryx[ddgs]'"
            )
