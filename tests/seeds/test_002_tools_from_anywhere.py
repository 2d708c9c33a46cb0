"""hermes-agent pull request #2701: the tools that ask a model, from every kind of caller.

There, `vision_analyze`, `web_extract`, `session_search` and `mixture_of_agents` hung or failed when
they were called from a worker thread, from a thread inside a loop, or from the gateway. Here each
of them is called from the running loop, a plain thread, a thread inside a loop, the blocking
library, a script in the sandbox, and from two loops at once.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from keryx import Keryx
from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.loops import LoopThread, run_loop
from keryx.aio.scope import Scope
from keryx.sync import Keryx as BlockingKeryx
from keryx.testing.modelserver import ModelServer, Reply

pytestmark = pytest.mark.promise("002.1", "kit.10", "kit.3")

PATIENCE = 60.0
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M8AAAIBAQDJ/pLvAAAAAElFTkSuQmCC"
)
ANSWER = "So says the model."


class Servers:
    """A model server and a page, on a loop of their own; they count their connections."""

    def __init__(self) -> None:
        self.model = ModelServer(lambda _request: Reply(text=ANSWER))
        self.page_url = ""
        self.page_clients: set[tuple[str, int]] = set()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        await self.model.__aenter__()
        app = web.Application()
        app.router.add_get("/page", self._page)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.page_url = f"http://{host}:{port}/page"

    async def _page(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.page_clients.add(request.transport.get_extra_info("peername"))
        body = "<html><body><article><p>Tea grows in the hills. " * 20 + "</article></body></html>"
        return web.Response(text=body, content_type="text/html")

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()
        await self.model.__aexit__()


@pytest.fixture
def servers() -> Iterator[Servers]:
    new_servers = Servers()
    with LoopThread(name="keryx-servers") as thread:
        thread.call(new_servers.start)
        yield new_servers
        thread.call(new_servers.stop)


class Case:
    """A home that asks the servers, and the arguments of each tool."""

    def __init__(self, folder: Path, servers: Servers) -> None:
        self.home, self.workspace = folder / "home", folder / "workspace"
        self.home.mkdir(parents=True)
        self.workspace.mkdir()
        (self.workspace / "a.png").write_bytes(PICTURE)
        host = servers.page_url.split("/")[2]
        (self.home / "config.toml").write_text(
            'model = "openai:test-model"\n'
            f'[providers.openai]\nbase_url = "{servers.model.url}"\nimages = ["*"]\n'
            '[models.auxiliary]\nsearch = "openai:test-model"\n'
            f'[tools.web]\nallow_private = ["{host}"]\n'
        )
        self.arguments: dict[str, dict[str, Any]] = {
            "vision_analyze": {"image": "a.png"},
            "web_extract": {"urls": [servers.page_url], "question": "Where does tea grow?"},
            "session_search": {"words": "hills", "question": "Where?"},
            "mixture_of_agents": {"question": "Where does tea grow?"},
        }

    async def from_loop(self, tool: str, rounds: int = 1) -> list[str]:
        """Call the tool on the running loop."""
        async with Keryx(home=self.home, workspace=self.workspace) as app:
            session = await app.open()
            await (await session.send("Remember: hills")).result()
            return [await self._call(session, tool) for _ in range(rounds)]

    async def _call(self, session: Any, tool: str) -> str:
        async for event in session.run(tool, json.dumps(self.arguments[tool])):
            if isinstance(event, ev.CallFinished):
                return _result(event)
        raise AssertionError("the call has no end")

    def blocking(self, tool: str) -> str:
        """Call the tool with the blocking library, in whatever thread this is."""
        with BlockingKeryx(home=self.home, workspace=self.workspace) as app:
            session = app.open()
            session.send("Remember: hills").result()
            for event in session.run(tool, json.dumps(self.arguments[tool])):
                if isinstance(event, ev.CallFinished):
                    return _result(event)
        raise AssertionError("the call has no end")

    async def from_script(self, tool: str) -> str:
        """Call the tool from a script in the sandbox."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments[tool].items())
        code = f"import keryx_tools\nprint(dict(keryx_tools.{tool}({arguments})))"
        async with Keryx(home=self.home, workspace=self.workspace) as app:
            session = await app.open()
            await (await session.send("Remember: hills")).result()
            async for event in session.run("execute_code", json.dumps({"code": code})):
                if isinstance(event, ev.CallFinished):
                    return _result(event)
        raise AssertionError("the call has no end")


def _result(event: ev.CallFinished) -> str:
    assert event.outcome == "completed", event
    return "".join(
        bytes(getattr(part, "value", b"")).decode() + getattr(part, "text", "")
        for part in event.result
    )


TOOLS = pytest.mark.parametrize(
    "tool", ["vision_analyze", "web_extract", "session_search", "mixture_of_agents"]
)


@TOOLS
async def test_from_the_running_loop_with_one_client(
    tmp_path: Path, servers: Servers, tool: str
) -> None:
    async with asyncio.timeout(PATIENCE):
        results = await Case(tmp_path, servers).from_loop(tool, rounds=3)
    assert all(ANSWER in result for result in results)
    assert len(servers.page_clients) <= 1, "every call uses the same connection"


@TOOLS
def test_from_the_blocking_library(tmp_path: Path, servers: Servers, tool: str) -> None:
    assert ANSWER in Case(tmp_path, servers).blocking(tool)


@TOOLS
def test_from_a_plain_thread(tmp_path: Path, servers: Servers, tool: str) -> None:
    results: list[str] = []
    case = Case(tmp_path, servers)
    thread = threading.Thread(target=lambda: results.append(case.blocking(tool)))
    thread.start()
    thread.join(PATIENCE)
    assert ANSWER in results[0]


@TOOLS
async def test_from_a_thread_inside_a_loop(tmp_path: Path, servers: Servers, tool: str) -> None:
    scope = Scope("caller")
    bridge = Bridge(scope)
    async with asyncio.timeout(PATIENCE):
        result = await bridge.to_thread(Case(tmp_path, servers).blocking, tool)
    await bridge.close()
    scope.close()
    assert ANSWER in result


@TOOLS
async def test_from_a_script_in_the_sandbox(tmp_path: Path, servers: Servers, tool: str) -> None:
    async with asyncio.timeout(PATIENCE):
        assert ANSWER in await Case(tmp_path, servers).from_script(tool)


@TOOLS
def test_from_two_loops_at_once(tmp_path: Path, servers: Servers, tool: str) -> None:
    results: list[list[str]] = []
    cases = [Case(tmp_path / name, servers) for name in ("one", "two")]
    both = threading.Barrier(2)

    def work(case: Case) -> None:
        both.wait(PATIENCE)
        results.append(run_loop(case.from_loop(tool, rounds=2)))

    threads = [threading.Thread(target=work, args=(case,)) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(results) == 2
    assert all(ANSWER in result for answers in results for result in answers)
