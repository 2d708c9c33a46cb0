"""A site on loopback, and a session with the web tools that may read it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import msgspec
from aiohttp import web

from keryx import ToolContext, tool
from keryx.app import Runtime
from keryx.engine.calls.session_resources import SessionResources
from keryx.engine.steps.batch import Batch
from keryx.messages import CallOutcome, Image, Json, ToolCall
from keryx.models.scripted import ScriptedModel
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.model import Model
from keryx.ports.model_access import Endpoint
from keryx.ports.tool import Tool
from keryx.tools.web.fetching import FetchLimits
from keryx.tools.web.settings import WebSettings, web_tools
from tests.tools.tool_session import PATIENCE, Watch

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

ARTICLE = """<!doctype html><html><head><title>{title}</title></head><body>
<nav><a href="/">Home</a></nav><article><h1>{title}</h1>
<p>{text} The herald carried a staff and spoke for those who sent him, in every city.</p>
<p>A second paragraph says a little more, so that there is something to read on this page.</p>
</article><footer>Imprint</footer></body></html>"""


def article(title: str, text: str) -> str:
    return ARTICLE.format(title=title, text=text)


class Site:
    """A web server on loopback. Pages are texts, or functions that answer a request."""

    def __init__(self) -> None:
        self.pages: dict[str, str | Handler] = {}
        self.requests: list[str] = []
        self.connections: set[Any] = set()
        self.port = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request.path_qs)
        self.connections.add(request.transport)
        page = self.pages.get(request.path)
        if page is None:
            return web.Response(status=404)
        if isinstance(page, str):
            return web.Response(text=page, content_type="text/html")
        return await page(request)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@asynccontextmanager
async def serving() -> AsyncGenerator[Site]:
    site = Site()
    server = web.Server(site.answer, handler_cancellation=True)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        tcp = web.TCPSite(runner, "127.0.0.1", 0)
        await tcp.start()
        site.port = runner.addresses[0][1]
        yield site
    finally:
        await runner.cleanup()


class Names:
    """A name server: what each name stands for, and how often it was asked."""

    def __init__(self, names: dict[str, Sequence[str]] | None = None) -> None:
        self.names = names or {}
        self.lookups: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.lookups.append(host)
        if host not in self.names:
            raise OSError(f"no such host: {host}")
        return self.names[host]


class OneModel:
    """Gives the same model for every purpose."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def find(self, purpose: str, name: str | None = None) -> Model:
        return self._model

    def endpoint(self, purpose: str) -> Endpoint:
        raise AssertionError(f"nobody asks for {purpose}")

    def is_configured(self, purpose: str) -> bool:
        return bool(purpose)

    def add_image(self, data: bytes, media_type: str, name: str = "") -> Image:
        raise NotImplementedError


def script_into(results: list[dict[str, Any]]) -> Tool:
    """A tool that calls another one, as a script does, and keeps what it gets."""

    @tool(effects=NO_EFFECTS, container=True)
    async def script(name: str, arguments: dict[str, Any], context: ToolContext) -> str:
        """Call another tool."""
        outcome = await context.call(name, arguments)
        (part,) = outcome.content
        assert isinstance(part, Json), part
        results.append(msgspec.json.decode(bytes(part.value)))
        return "done"

    return script


class WebSession:
    """The web tools in a session."""

    def __init__(
        self,
        *allow_private: str,
        names: Names | None = None,
        limits: FetchLimits | None = None,
        model: ScriptedModel | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> None:
        settings = WebSettings(allow_private=allow_private, limits=limits or FetchLimits())
        self._results: list[dict[str, Any]] = []
        self.runtime = Runtime(resolve=names or Names())
        self.watch = Watch()
        self.turn = self.runtime.scope.child("turn")
        self._session = self.runtime.scope.child("session")
        self.environment = self.runtime.call_environment(
            "s",
            [*(web_tools(settings) if tools is None else tools), script_into(self._results)],
            workspace=Path("/"),
            hooks=self.watch,
        )
        self.faults: list[str] = []
        self.environment.resources = SessionResources(
            self._session, lambda name, error: self.faults.append(f"{name}: {error!r}")
        )
        self.environment.models = OneModel(model) if model is not None else None
        self._count = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self.environment.resources is not None
        await self.environment.resources.close()
        await self.runtime.close()
        assert self.faults == []

    def start(self, name: str, /, **arguments: Any) -> Batch:
        self._count += 1
        call = ToolCall(f"c{self._count}", name, msgspec.json.encode(arguments).decode())
        return self.runtime.executor.start(self.environment, [call], self.turn)

    async def run(self, name: str, /, **arguments: Any) -> CallOutcome:
        async with asyncio.timeout(PATIENCE):
            (outcome,) = await self.start(name, **arguments).outcomes()
        return outcome

    async def extract(self, *urls: str, **options: Any) -> str:
        """What a model reads of these pages."""
        outcome = await self.run("web_extract", urls=list(urls), **options)
        assert outcome.outcome == "completed", outcome.text
        return outcome.text

    async def nested(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """What a script gets from the tool."""
        outcome = await self.run("script", name=name, arguments=arguments)
        assert outcome.outcome == "completed", outcome.text
        return self._results.pop()

    async def refusal(self, url: str) -> str:
        """Why this page is not read."""
        results = (await self.nested("web_extract", urls=[url]))["results"]
        assert list(results[0]) == ["url", "error"], results
        return results[0]["error"]
