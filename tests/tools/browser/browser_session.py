"""A session with the browser tools behind all walls, and a server whose pages it opens."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from keryx.messages import CallOutcome, Needs, ToolCall
from keryx.ports.resources import ResourceContext
from keryx.sandbox.local import Mode
from keryx.tools.browser.current_browser import KEY
from keryx.tools.browser.session_browser import SessionBrowser
from tests.tools.browser.page_server import Page, PageServer
from tests.tools.tool_session import ENVIRONMENT, ToolSession


class BrowserSession:
    """The browser tools, by their short names."""

    def __init__(self, session: ToolSession, server: PageServer, marker: str = "") -> None:
        self.session = session
        self.server = server
        self.workspace = session.workspace
        self._marker = marker

    def call(self, name: str, **arguments: Any) -> ToolCall:
        return self.session.call(f"browser_{name}", **arguments)

    async def run(self, name: str, **arguments: Any) -> CallOutcome:
        (outcome,) = await self.session.run(self.call(name, **arguments))
        return outcome

    async def text(self, name: str, **arguments: Any) -> str:
        """Run a tool that works; return what a model sees."""
        outcome = await self.run(name, **arguments)
        assert outcome.outcome == "completed", outcome.text
        return outcome.text

    async def error(self, name: str, **arguments: Any) -> str:
        outcome = await self.run(name, **arguments)
        assert outcome.outcome == "failed", outcome.text
        return outcome.text

    async def opens(self, body: str, path: str = "/test", **more: Page) -> str:
        """Open a page with this content; return what a model sees."""
        self.server.pages = {path: Page(body), **{f"/{name}": page for name, page in more.items()}}
        return await self.text("navigate", url=self.server.url(path))

    async def until_busy(self) -> None:
        """Return once the browser has a request that it has not answered."""
        browser = await self.session.resources.get(KEY, _no_browser, lambda _: _no_context())
        while not browser.is_busy:
            await asyncio.sleep(0)

    async def processes(self) -> dict[int, str]:
        """The processes that run for this session, by pid."""
        return await self.session.runtime.bridge.to_thread(processes_with, self._marker)

    async def pid(self, name: str, argument: str = "") -> int:
        """The oldest process whose name is this, and whose command line has the argument."""
        return min(
            pid
            for pid, command in (await self.processes()).items()
            if name in command and argument in command
        )


async def _no_browser(_: ResourceContext) -> SessionBrowser:
    raise AssertionError("no browser is open")


def _no_context() -> ResourceContext:
    raise AssertionError("no browser is open")


@asynccontextmanager
async def browser_session(
    folder: Path, *, confinement: Mode = "on", network: bool = True
) -> AsyncGenerator[BrowserSession]:
    """All calls have the consent to the network, unless the test says otherwise."""
    workspace = folder / "workspace"
    await asyncio.to_thread(workspace.mkdir)
    marker = uuid.uuid4().hex
    environment = {**ENVIRONMENT, "KERYX_TEST_MARKER": marker}
    session = ToolSession(workspace, environment, confinement=confinement)
    await session.open()
    session.watch.granted = Needs(network=network)
    try:
        async with PageServer() as server:
            yield BrowserSession(session, server, marker)
    finally:
        await session.close()
    left_over = await asyncio.to_thread(processes_with, marker)
    assert not left_over, left_over


def processes_with(marker: str) -> dict[int, str]:
    """Processes with this marker in their environment, and their command lines."""
    commands: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if marker.encode() in (entry / "environ").read_bytes():
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if line:
                    commands[int(entry.name)] = line
        except OSError:
            continue  # it has just ended
    return commands


def reference(text: str, label: str) -> str:
    """The reference of the element with this label."""
    match = re.search(rf"\[(e\d+)\] [\w-]+ \"{re.escape(label)}\"", text)
    assert match is not None, f"there is no {label!r} in:\n{text}"
    return match[1]
