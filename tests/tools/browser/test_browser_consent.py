"""The network of the browser: only with a person's consent, by host, in a whole host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from keryx import Keryx
from keryx import events as ev
from keryx.app import SessionHandle
from keryx.messages import Decision, Needs, text_of
from tests.tools.browser.browser_session import processes_with, still_running
from tests.tools.browser.page_server import Page, PageServer

pytestmark = pytest.mark.promise("kit.2")

PATIENCE = 120.0


class Person:
    """Runs tools in a session, and answers what is asked."""

    def __init__(self, session: SessionHandle) -> None:
        self.session = session
        self.requests: list[ev.ApprovalAsked] = []

    async def run(self, tool: str, answer: Decision | None, **arguments: Any) -> tuple[str, str]:
        """Return the outcome and the text."""
        attended = answer is not None
        run = self.session.run(tool, json.dumps(arguments), attended=attended)
        async for event in run:
            if isinstance(event, ev.ApprovalAsked):
                self.requests.append(event)
                if answer is not None:
                    await self.session.answer(event.approval_id, answer)
            if isinstance(event, ev.CallFinished):
                return event.outcome, text_of(event.result) or str(event.reason)
        raise AssertionError("the call did not end")


@asynccontextmanager
async def person(
    folder: Path, confinement: str = "on", **settings: Any
) -> AsyncGenerator[tuple[Person, PageServer]]:
    home, workspace = folder / "home", folder / "workspace"
    for path in (home, workspace):
        await asyncio.to_thread(path.mkdir)
    config = f'confinement = "{confinement}"\n'
    await asyncio.to_thread((home / "config.toml").write_text, config)
    page = Page("<title>Served</title><script>fetch('/more')</script>")
    async with (
        asyncio.timeout(PATIENCE),
        PageServer({"/": page, "/more": Page("more")}) as server,
        Keryx(model="scripted:demo", home=home, workspace=workspace) as app,
    ):
        session = await app.open(**settings)
        yield Person(session), server
        marker = f"KERYX_SESSION_ID={session.session_id}"
        processes = await asyncio.to_thread(processes_with, marker)
        await app.delete(session.session_id)
        assert await asyncio.to_thread(still_running, processes) == {}


async def test_without_consent_nothing_reaches_a_server(tmp_path: Path) -> None:
    async with person(tmp_path) as (user, server):
        arguments = {"url": server.url(), "network": True}
        outcome, _ = await user.run("browser_navigate", None, **arguments)
        assert outcome == "denied"
        outcome, _ = await user.run("browser_navigate", "deny", **arguments)
        assert outcome == "denied"
        request = user.requests[-1]
        assert request.needs == Needs(network=True)
        assert request.patterns == ("127.0.0.1",)
        # Localhost is the session's own: no question, and no way to the machine's servers.
        outcome, text = await user.run("browser_navigate", None, url=server.url())
        assert outcome == "failed"
        assert "ERR_CONNECTION_REFUSED" in text
        assert server.requests == []


async def test_consent_gives_the_network_until_a_page_without_it_is_opened(tmp_path: Path) -> None:
    async with person(tmp_path) as (user, server):
        arguments = {"url": server.url(), "network": True}
        outcome, text = await user.run("browser_navigate", "once", **arguments)
        assert outcome == "completed", text
        assert "- title: Served" in text
        await server.wait_for_request("/more")
        sent = len(server.requests)
        page = f"<title>File</title><script>fetch('{server.url('/leak')}')</script>"
        target = tmp_path / "workspace" / "page.html"
        await asyncio.to_thread(target.write_text, page)
        outcome, text = await user.run("browser_navigate", None, url="file:page.html")
        assert outcome == "completed", text
        assert "- title: File" in text
        assert "a new browser was started, without the network" in text
        outcome, text = await user.run("browser_console", None)
        assert "request failed" in text
        assert len(server.requests) == sent
        # Once is once: the next page of that host is asked about again.
        outcome, _ = await user.run("browser_navigate", None, **arguments)
        assert outcome == "denied"


async def test_consent_for_the_session_covers_one_host(tmp_path: Path) -> None:
    async with person(tmp_path) as (user, server):
        arguments = {"url": server.url(), "network": True}
        assert (await user.run("browser_navigate", "session", **arguments))[0] == "completed"
        assert (await user.run("browser_navigate", None, **arguments))[0] == "completed"
        other = {"url": server.url().replace("127.0.0.1", "localhost"), "network": True}
        assert (await user.run("browser_navigate", None, **other))[0] == "denied"


async def test_a_server_of_the_session_needs_no_consent(tmp_path: Path) -> None:
    async with person(tmp_path) as (user, _):
        page = tmp_path / "workspace" / "index.html"
        await asyncio.to_thread(page.write_text, "<title>Own server</title>")
        code = (
            "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), "
            "h.SimpleHTTPRequestHandler); open('port', 'w').write(str(s.server_port)); "
            "print('serving', flush=True); s.serve_forever()"
        )
        command = f'python3 -c "{code}"'
        await user.run("terminal", None, command=command, background=True)
        outcome, _ = await user.run(
            "terminal", None, command="while ! [ -s port ]; do sleep 0.05; done"
        )
        assert outcome == "completed"
        port = await asyncio.to_thread((tmp_path / "workspace" / "port").read_text)
        outcome, text = await user.run("browser_navigate", None, url=f"localhost:{port}")
        assert outcome == "completed", text
        assert "- title: Own server" in text


async def test_where_nobody_is_asked_nothing_is_granted(tmp_path: Path) -> None:
    async with person(tmp_path, approvals="never") as (user, server):
        outcome, text = await user.run("browser_navigate", None, url=server.url(), network=True)
        assert outcome == "failed"
        assert "has no network" in text
        assert server.requests == []


async def test_without_walls_a_person_is_asked_too(tmp_path: Path) -> None:
    async with person(tmp_path, "off") as (user, server):
        assert (await user.run("browser_navigate", None, url=server.url()))[0] == "denied"
        assert server.requests == []
        outcome, text = await user.run("browser_navigate", "once", url=server.url())
        assert outcome == "completed", text
