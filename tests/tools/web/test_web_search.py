"""`web_search`: four search engines behind one tool, and which one is used."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from keryx.config import ConfigurationError, load, secrets_of
from keryx.ports.tool import Tool
from keryx.testing.contracts import ToolContract
from keryx.tools.web.search import search_tool
from keryx.tools.web.search_backends import (
    BraveSearch,
    DdgsSearch,
    SearchBackend,
    SearxngSearch,
    TavilySearch,
    is_ddgs_installed,
)
from keryx.tools.web.settings import WebSettings, choose_backend, missing, web_tools
from tests.tools.web.web_session import Site, WebSession, serving

pytestmark = pytest.mark.promise("kit.1")


class TestContract(ToolContract):
    @pytest.fixture
    def subject(self) -> Tool:
        return search_tool(SearxngSearch("http://search.example"))

    def good_arguments(self) -> Mapping[str, Any]:
        return {"query": "herald"}


ROWS = [
    {"title": "The <herald>", "url": "https://a.example/", "text": "of\n the gods"},
    {"title": "Another", "url": "http://b.example/", "text": "words"},
]


def backends(site: Site) -> list[tuple[SearchBackend, str, str]]:
    """Each engine on this site, with the path that it asks and the key that holds its texts."""
    return [
        (SearxngSearch(site.url("/sx/")), "/sx/search", "content"),
        (BraveSearch("brave-key", site.url("/brave")), "/brave", "description"),
        (TavilySearch("tavily-key", site.url("/tavily")), "/tavily", "content"),
    ]


def shaped(name: str, rows: Sequence[object]) -> object:
    return {"web": {"results": rows}} if name == "brave" else {"results": rows}


async def test_each_engine_is_asked_in_its_own_way_and_gives_the_same_results() -> None:
    async with serving() as site:
        for backend, path, text_key in backends(site):
            received: list[tuple[str, str | None, bytes]] = []

            async def answer(
                request: web.BaseRequest,
                backend: SearchBackend = backend,
                text_key: str = text_key,
                received: list[tuple[str, str | None, bytes]] = received,
            ) -> web.Response:
                headers = request.headers
                key = headers.get("X-Subscription-Token") or headers.get("Authorization")
                received.append((request.query.get("q", ""), key, await request.read()))
                rows = [
                    {"title": row["title"], "url": row["url"], text_key: row["text"], "more": 1}
                    for row in ROWS
                ]
                return web.json_response(shaped(backend.name, rows))

            site.pages[path] = answer
            async with WebSession(tools=[search_tool(backend)]) as session:
                result = await session.nested("web_search", query=" herald & gods ", limit=1)
                assert result["results"] == [{**ROWS[0], "text": "of the gods"}]
                outcome = await session.run("web_search", query="herald & gods")
                assert "1. The <herald>\n   https://a.example/\n   of the gods" in outcome.text
                assert "outside text" in outcome.text
            (query, key, body) = received[0]
            match backend.name:
                case "searxng":
                    assert (query, key) == ("herald & gods", None)
                case "brave":
                    assert (query, key) == ("herald & gods", "brave-key")
                case _:
                    assert json.loads(body) == {"query": "herald & gods", "max_results": 1}
                    assert key == "Bearer tavily-key"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b"null",
        b'{"results": 1, "web": []}',
        b'{"results": [1, null, {"url": 5}, {"url": "javascript:x"}], "web": {"results": {}}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
async def test_a_reply_of_another_shape_gives_nothing_or_a_reason(body: bytes) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async with serving() as site:
        for backend, path, _ in backends(site):
            site.pages[path] = answer
            async with WebSession(tools=[search_tool(backend)]) as session:
                outcome = await session.run("web_search", query="x")
                assert outcome.outcome in ("completed", "failed")
                assert "nothing found" in outcome.text or "ask the user to" in outcome.text


async def test_a_search_engine_that_fails_says_what_to_do() -> None:
    async def refuse(request: web.BaseRequest) -> web.Response:
        return web.Response(status=401)

    async def elsewhere(request: web.BaseRequest) -> web.Response:
        return web.Response(status=302, headers={"Location": "/other"})

    async with serving() as site:
        for backend, path, _ in backends(site):
            async with WebSession(tools=[search_tool(backend)]) as session:
                site.pages[path] = refuse
                outcome = await session.run("web_search", query="x")
                assert (outcome.outcome, "401" in outcome.text) == ("failed", True)
                site.pages[path] = elsewhere
                assert (await session.run("web_search", query="x")).outcome == "failed"
        assert "/other" not in site.requests  # a key goes to no other address
    async with WebSession(tools=[search_tool(SearxngSearch(site.url()))]) as session:
        outcome = await session.run("web_search", query="x")
        assert "cannot be reached" in outcome.text
        assert (await session.run("web_search", query=" ")).outcome == "failed"


STUCK = """
import socket, sys

class DDGS:
    def __init__(self, timeout): pass
    def text(self, query, max_results):
        with socket.create_connection(("127.0.0.1", int(query))) as connection:
            connection.recv(1)
        return [{"title": "Late", "href": "http://late.example", "body": ""}]
"""


@pytest.mark.promise("kit.9")
async def test_a_search_whose_thread_goes_on_after_a_cancel_is_not_called_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package `ddgs` blocks, and nothing stops it: the call is left over until it ends."""
    (tmp_path / "ddgs.py").write_text(STUCK)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "ddgs", raising=False)
    asked, may_end = asyncio.Event(), asyncio.Event()

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await may_end.wait()
        writer.close()

    engine = await asyncio.start_server(hold, "127.0.0.1", 0)
    port = engine.sockets[0].getsockname()[1]
    async with engine, WebSession(tools=[search_tool(DdgsSearch())]) as session:
        batch = session.start("web_search", query=str(port))
        await asked.wait()
        batch.cancel("c1", "interrupt", by="tester")
        (outcome,) = await batch.outcomes()
        assert (outcome.outcome, outcome.left_over) == ("unknown", ("c1",))
        assert "Late" not in outcome.text
        may_end.set()
    monkeypatch.delitem(sys.modules, "ddgs", raising=False)


def test_the_first_engine_that_is_configured_is_used() -> None:
    everything = WebSettings(searxng_url="http://s", brave_api_key="b", tavily_api_key="t")

    def name(settings: WebSettings) -> str | None:
        backend = choose_backend(settings)
        return None if backend is None else backend.name

    assert name(everything) == "searxng"
    assert name(WebSettings(brave_api_key="b", tavily_api_key="t")) == "brave"
    assert name(WebSettings(tavily_api_key="t")) == "tavily"
    assert is_ddgs_installed()
    assert isinstance(choose_backend(WebSettings()), DdgsSearch)
    assert name(WebSettings(searxng_url="http://s", brave_api_key="b", backend="ddgs")) == "ddgs"
    unconfigured = WebSettings(backend="brave")
    assert name(unconfigured) is None
    assert [tool.name for tool in web_tools(unconfigured)] == ["web_extract"]
    assert missing(unconfigured) == (
        "web_search needs a search engine: set the variable BRAVE_API_KEY",
    )
    assert missing(everything) == ()


def test_settings_and_keys_come_from_the_configuration_and_are_secret(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[tools.web]\nsearxng_url = "http://127.0.0.1:8888"\nbackend = "brave"\n'
        'brave_api_key_env = "MY_SEARCH"\ntavily_api_key = "tavily-in-the-file"\n'
        'allow_private = ["127.0.0.1:8080", "intranet.example"]\n'
    )
    config = load(tmp_path, {"MY_SEARCH": "brave-in-the-environment"})
    web_config = config.tools.web
    assert web_config.brave_api_key == "brave-in-the-environment"
    assert web_config.allow_private == ("127.0.0.1:8080", "intranet.example")
    assert {"brave-in-the-environment", "tavily-in-the-file"} <= set(secrets_of(config).values())
    usual = load(tmp_path / "empty", {"BRAVE_API_KEY": "b" * 9, "TAVILY_API_KEY": "t" * 9})
    assert (usual.tools.web.brave_api_key, usual.tools.web.tavily_api_key) == ("b" * 9, "t" * 9)
    assert set(secrets_of(usual).values()) == {"b" * 9, "t" * 9}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('backend = "google"', "tools.web"),
        ('searxng_url = "here"', "http://"),
        ('allow_private = ["http://a/"]', "intranet.example"),
        ('brave_key = "x"', "brave_api_key"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_do(tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "config.toml").write_text(f"[tools.web]\n{line}\n")
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, {})
    assert words in str(refused.value)
