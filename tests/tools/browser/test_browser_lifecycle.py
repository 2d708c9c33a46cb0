"""When a browser ends: by its tool, with its session, killed from outside. Nothing is left over."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from keryx.tools import toolsets
from keryx.tools.browser import requirements
from keryx.tools.browser.navigation import navigate_tool
from tests.tools.browser import doomed_host
from tests.tools.browser.browser_session import (
    BrowserSession,
    browser_session,
    processes_with,
    still_running,
)

pytestmark = pytest.mark.promise("kit.2")

PATIENCE = 100.0
ROOT = Path(__file__).parent.parent.parent.parent


async def until_ended(browser: BrowserSession) -> None:
    while await browser.processes():  # noqa: ASYNC110 (nothing tells when processes are gone)
        await asyncio.sleep(0)


async def test_a_killed_chromium_is_an_error_and_the_next_page_gets_a_new_one(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(PATIENCE), browser_session(tmp_path) as browser:
        await browser.opens("<title>First</title>")
        url = browser.server.url("/never")
        batch = browser.session.start(browser.call("navigate", url=url))
        await browser.server.wait_for_request("/never")
        os.kill(await browser.pid("chromium", "--headless"), signal.SIGKILL)
        (outcome,) = await batch.outcomes()
        assert outcome.outcome == "failed"
        assert "the browser has ended" in outcome.text
        assert "browser_navigate" in outcome.text
        await until_ended(browser)
        assert "the browser has ended" in await browser.error("snapshot")
        assert "no page is open" in await browser.error("snapshot")
        assert "- title: Second" in await browser.opens("<title>Second</title>")
        # Killed while it rests: the page to open next gets a new browser, and a note says so.
        os.kill(await browser.pid("python", "keryx_browser"), signal.SIGKILL)
        await until_ended(browser)
        text = await browser.opens("<title>Third</title>")
        assert "- title: Third" in text
        assert "a new browser was started" in text
        profiles = tmp_path / "workspace.private" / "keryx-browser"
        assert len(await asyncio.to_thread(lambda: list(profiles.iterdir()))) == 1


async def test_close_ends_the_browser_with_all_its_processes(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), browser_session(tmp_path) as browser:
        await browser.opens("<title>First</title>")
        processes = await browser.processes()
        assert any("--type=renderer" in line for line in processes.values())
        assert await browser.text("close") == "the browser is closed"
        assert await asyncio.to_thread(still_running, processes) == {}
        assert await browser.text("close") == "no browser was open"
        assert "no page is open" in await browser.error("click", ref="e1")


async def test_a_session_that_is_closed_while_its_page_hangs_leaves_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), browser_session(tmp_path) as browser:
        url = browser.server.url("/never")
        batch = browser.session.start(call := browser.call("navigate", url=url))
        await browser.server.wait_for_request("/never")
        batch.cancel(call.call_id, "shutdown", by="tester")
        await batch.outcomes()
        # `browser_session` closes the session now, and looks for processes with its marker.


async def test_when_the_host_is_killed_the_browser_ends_too(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        host = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", doomed_host.__name__, str(tmp_path)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        assert host.stdout is not None
        marker = (await host.stdout.readline()).decode().strip()
        processes = await asyncio.to_thread(processes_with, marker)
        assert any("--type=renderer" in line for line in processes.values())
        host.kill()
        await host.wait()
        while await asyncio.to_thread(still_running, processes):  # noqa: ASYNC110 (same)
            await asyncio.sleep(0)


async def test_a_browser_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE), browser_session(tmp_path) as browser:
        program = tmp_path / "chromium"
        await asyncio.to_thread(program.write_text, "#!/bin/sh\necho broken >&2\nexit 3\n")
        await asyncio.to_thread(program.chmod, 0o755)
        tools = browser.session.environment.tools
        broken = navigate_tool(str(program), confined=True)
        browser.session.environment.tools = {**tools, "browser_navigate": broken}
        error = await browser.error("navigate", url=browser.server.url())
        assert "did not start" in error
        assert await browser.processes() == {}


def test_without_playwright_or_chromium_the_tools_are_not_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert requirements.missing() is None
    assert "browser" in toolsets.built_in()
    monkeypatch.setattr(requirements, "_PROGRAMS", ())
    monkeypatch.setattr(requirements, "_OTHERS", ())
    assert "install Chromium" in (requirements.missing() or "")
    assert "browser" not in toolsets.built_in()
    cached = tmp_path / ".cache/ms-playwright/chromium-1/chrome-linux/chrome"
    cached.parent.mkdir(parents=True)
    cached.touch()
    assert requirements.missing(tmp_path) is not None, "confined processes do not see it"
    assert requirements.missing(tmp_path, confined=False) is None

    def no_package(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(requirements, "find_spec", no_package)
    assert "keryx[browser]" in (requirements.missing() or "")
