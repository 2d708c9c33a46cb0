"""How each built-in tool is made to hang, and when it does."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keryx.messages import ToolCall
from keryx.tools.files import searching
from keryx.tools.web.settings import WebSettings
from tests.tools.browser import hanging_pages
from tests.tools.browser.browser_session import BrowserSession
from tests.tools.browser.page_server import PageServer
from tests.tools.tool_session import ToolSession


@dataclass(frozen=True)
class Scenario:
    """A call that never ends by itself."""

    arguments: dict[str, Any]
    how: str
    """How it stops, for the table."""
    keeps: str = ""
    """What is kept of its output. Empty: it has printed nothing when it hangs.

    What `web_extract`, `mixture_of_agents` and `delegate` keep has tests beside those of the tools.
    """
    background: bool = False
    model: bool = False
    """A model that takes a request and never answers."""
    memory: bool = False
    """A memory that takes a request and never answers."""
    progress: bool = False
    """It hangs once a nested call reports its progress."""
    slow_ripgrep: bool = False
    """A stand-in for ripgrep, which is too fast to be caught."""
    silent_server: bool = False
    """A web server that takes requests and never answers."""
    page: str = ""
    """A page in which this browser tool hangs."""


PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M8AAAIBAQDJ/pLvAAAAAElFTkSuQmCC"
)
"""One pixel."""

SOUND = b"".join(
    (
        b"RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00",
        (8_000).to_bytes(4, "little"),
        (16_000).to_bytes(4, "little"),
        b"\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00",
    )
)
"""One sample of silence, as a WAV file."""

HANGING: dict[str, Scenario] = {
    "terminal": Scenario(
        {"command": "echo hanging; sleep 1000 | cat"},
        "SIGTERM to its whole process tree, SIGKILL after the grace",
        keeps="hanging",
    ),
    "process": Scenario(
        {"action": "wait", "name": "bg1", "seconds": 1000},
        "the wait is cancelled; the background process goes on",
        background=True,
    ),
    "search_files": Scenario(
        {"pattern": "x"},
        "SIGTERM to ripgrep",
        slow_ripgrep=True,
    ),
    "execute_code": Scenario(
        {"code": "print('hanging', flush=True)\nwhile True: pass"},
        "SIGTERM to the script's whole process tree; its calls in flight are cancelled with it",
        keeps="hanging",
    ),
    "delegate": Scenario(
        {"tasks": [{"task": "Look around"}, {"task": "Look elsewhere"}]},
        "the turns of its child agents are cancelled, and all that runs in them",
        progress=True,
    ),
    "vision_analyze": Scenario(
        {"image": "a.png"}, "the request to the model is cancelled", model=True
    ),
    "mixture_of_agents": Scenario(
        {"question": "Which one?"}, "the requests to the models are cancelled", model=True
    ),
    "session_search": Scenario(
        {"words": "tea", "question": "Which one?"},
        "the request to the model is cancelled",
        model=True,
    ),
    "clarify": Scenario(
        {"question": "Which one?"},
        "the question expires",
    ),
    "web_search": Scenario(
        {"query": "a herald"},
        "the request is cancelled and its connection closed",
        silent_server=True,
    ),
    "web_extract": Scenario(
        {"urls": ["http://127.0.0.1:{port}/"]},
        "the requests are cancelled and their connections closed; pages that came are kept",
        silent_server=True,
    ),
    "memory": Scenario(
        {"action": "add", "text": "Tea"},
        "the wait for the log is cancelled; what was logged stays remembered",
        memory=True,
    ),
    "conclude": Scenario(
        {"text": "Tea"},
        "the wait for the log is cancelled; what was logged stays remembered",
        memory=True,
    ),
    "recall": Scenario(
        {"words": "tea"}, "the requests to the providers are cancelled", memory=True
    ),
    "image_generate": Scenario(
        {"prompt": "A herald"},
        "the request is cancelled and its connection closed; no file is written",
        silent_server=True,
    ),
    "text_to_speech": Scenario(
        {"text": "Hear!"},
        "the request is cancelled and its connection closed, or SIGTERM to the program that "
        "speaks; no file is written",
        silent_server=True,
    ),
    "transcribe": Scenario(
        {"path": "a.wav"},
        "the request is cancelled and its connection closed",
        silent_server=True,
    ),
    **{
        f"browser_{name}": Scenario({}, how, page=name)
        for name, how in hanging_pages.HANGING.items()
    },
}

ATOMIC: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "write_file": {"path": "a.txt", "content": "other\n", "overwrite": True},
    "patch": {"patch": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"},
    "list_files": {},
    "todo": {"items": [{"text": "Look around"}]},
    "skill": {"name": "letters"},
    "browser_console": {},
    "browser_close": {},
    "tool_search": {"query": "anything"},
}
"""Short ones: they are checked before they act, and are over in a moment."""


class SilentServer:
    """Takes connections and requests, and never answers."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if await reader.read(1):
            self.requested.set()
        await reader.read()

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    @property
    def settings(self) -> WebSettings:
        """The web tools with this server as the search engine and as a page."""
        host = f"127.0.0.1:{self.port}"
        return WebSettings(searxng_url=f"http://{host}", allow_private=(host,))

    def arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        urls = [url.format(port=self.port) for url in arguments.get("urls", ())]
        return {**arguments, "urls": urls} if urls else arguments


@asynccontextmanager
async def opened(
    folder: Path, scenario: Scenario
) -> AsyncGenerator[tuple[ToolSession, ToolCall, Callable[[], Awaitable[None]]]]:
    """The tools in a workspace, the call, and a function that returns once the call hangs."""
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    (workspace / "a.png").write_bytes(PICTURE)
    (workspace / "a.wav").write_bytes(SOUND)
    fifo = folder / "hangs"
    os.mkfifo(fifo)
    installed = searching._installed  # pyright: ignore[reportPrivateUsage] (a slow one stands in for it)
    if scenario.slow_ripgrep:
        program = folder / "rg"
        program.write_text(f"#!/bin/sh\necho hanging > {fifo}\nsleep 1000\n")
        program.chmod(0o755)
        searching._installed = lambda: str(program)  # pyright: ignore[reportPrivateUsage] (same)
    server = SilentServer()
    if scenario.silent_server:
        await server.open()
    shop = ToolSession(workspace, web=server.settings)
    await shop.open()
    shop.models.base_url = f"http://127.0.0.1:{server.port}/v1"
    try:
        if scenario.page:
            async with PageServer() as pages:
                browser = BrowserSession(shop, pages)
                hanging = await hanging_pages.hang(browser, scenario.page)
                yield shop, hanging.call, hanging.hangs
            return
        if scenario.background:
            await shop.run(shop.call("terminal", command="sleep 1000", background=True))
        name = next(name for name, candidate in HANGING.items() if candidate is scenario)
        call = shop.call(name, **server.arguments(scenario.arguments))
        yield shop, call, lambda: _until_hanging(shop, call, scenario, fifo, server)
    finally:
        searching._installed = installed  # pyright: ignore[reportPrivateUsage] (same)
        await shop.close()
        await server.close()


async def _until_hanging(
    shop: ToolSession, call: ToolCall, scenario: Scenario, fifo: Path, server: SilentServer
) -> None:
    if scenario.keeps:
        await shop.watch.until(call.call_id, scenario.keeps)
    elif scenario.slow_ripgrep:
        await shop.runtime.bridge.to_thread(fifo.read_bytes)
    elif scenario.model:
        await shop.models.requested.wait()
    elif scenario.memory:
        await shop.memory.requested.wait()
    elif scenario.progress:
        await shop.watch.progressed.wait()
    elif scenario.silent_server:
        await server.requested.wait()
    elif scenario.background:
        await shop.watch.until_started(call.call_id)
    else:
        await shop.watch.question_asked.wait()
