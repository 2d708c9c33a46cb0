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
        self.marker = marker

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
        """Return once the worker of the browser does a request."""
        browser = await self.session.resources.get(KEY, _no_browser, lambda _: _no_context())
        await browser.begun.wait()

    async def processes(self) -> dict[int, str]:
        """The processes that run for this session, by pid."""
        return await self.session.runtime.bridge.to_thread(processes_with, self.marker)

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
    processes: dict[int, str] = {}
    try:
        async with PageServer() as server:
            yield BrowserSession(session, server, marker)
            processes = await asyncio.to_thread(processes_with, marker)
    finally:
        await session.close()
    left_over = await asyncio.to_thread(still_running, processes)
    assert not left_over, left_over


def processes_with(marker: str) -> dict[int, str]:
    """Processes with this marker in their environment, all below them, and their command lines.

    Chromium's renderers write over their environment, so they are found by their parents.
    """
    commands: dict[int, str] = {}
    parents: dict[int, int] = {}
    marked: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parent = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
            if marker.encode() in (entry / "environ").read_bytes():
                marked.add(int(entry.name))
        except OSError:
            continue  # it has just ended
        if line:
            commands[int(entry.name)], parents[int(entry.name)] = line, parent
    return {pid: line for pid, line in commands.items() if _is_below(pid, marked, parents)}


def _is_below(pid: int | None, marked: set[int], parents: dict[int, int]) -> bool:
    while pid:
        if pid in marked:
            return True
        pid = parents.get(pid)
    return False


def still_running(processes: dict[int, str]) -> dict[int, str]:
    """Those of these processes that run, whoever their parent is now."""
    now = processes_with("")
    return {pid: line for pid, line in processes.items() if now.get(pid) == line}


def reference(text: str, label: str) -> str:
    """The reference of the element with this label."""
    match = re.search(rf"\[(e\d+)\] [\w-]+ \"{re.escape(label)}\"", text)
    assert match is not None, f"there is no {label!r} in:\n{text}"
    return match[1]
