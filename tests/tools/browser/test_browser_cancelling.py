"""A browser tool that hangs, cancelled: control comes back, and the page can be used again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from keryx.messages import Reason
from keryx.tools.browser import session_browser
from tests.tools.browser.browser_session import BrowserSession, browser_session, reference
from tests.tools.browser.hanging_pages import HANGING, hang
from tests.tools.browser.page_server import Page

pytestmark = pytest.mark.promise("kit.2")

REASONS: tuple[Reason, ...] = ("interrupt", "steer", "timeout", "shutdown", "parent")
shared = pytest.mark.asyncio(loop_scope="module")


# Every tool, and every reason; all in one browser, which stays usable.
CASES = [(name, reason) for name in HANGING for reason in REASONS]


@shared
@pytest.mark.promise("kit.9")
@pytest.mark.parametrize(("name", "reason"), CASES)
async def test_a_hanging_browser_tool_gives_control_back(
    browser: BrowserSession, name: str, reason: Reason
) -> None:
    call = await hang(browser, name)
    batch = browser.session.start(call.call)
    await call.hangs()
    batch.cancel(call.call.call_id, reason, by="tester")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", reason)
    assert outcome.left_over == ()
    assert "- title: Fine" in await browser.opens("<title>Fine</title>")


@shared
async def test_a_page_that_never_loads_is_stopped_and_the_one_before_stays(
    browser: BrowserSession,
) -> None:
    await browser.opens("<title>Before</title>")
    worker = await browser.pid("python", "keryx_browser")
    url = browser.server.url("/never/this")
    batch = browser.session.start(call := browser.call("navigate", url=url, timeout=600))
    await browser.server.wait_for_request("/never/this")
    batch.cancel(call.call_id, by="tester")
    await batch.outcomes()
    assert "- title: Before" in await browser.text("snapshot")
    assert await browser.pid("python", "keryx_browser") == worker


@shared
async def test_an_endless_script_is_stopped_and_its_page_stays(browser: BrowserSession) -> None:
    text = await browser.opens(
        """<title>Busy</title><button onclick="loop()">Loop</button><script>
        function loop() {
          const request = new XMLHttpRequest();
          request.open("GET", "/looping", false); request.send();
          while (true) {}
        }</script>"""
    )
    batch = browser.session.start(call := browser.call("click", ref=reference(text, "Loop")))
    await browser.server.wait_for_request("/looping")
    batch.cancel(call.call_id, by="tester")
    await batch.outcomes()
    text = await browser.text("snapshot")
    assert "- title: Busy" in text
    assert "was closed" not in text


@shared
async def test_a_script_that_starts_again_and_again_loses_its_page_only(
    browser: BrowserSession,
) -> None:
    await browser.opens("<title>Other</title>")
    worker = await browser.pid("python", "keryx_browser")
    browser.server.pages["/endless"] = Page(
        """<title>Endless</title><script>
        const request = new XMLHttpRequest();
        request.open("GET", "/endless-loops", false); request.send();
        setInterval(() => { while (true) {} }, 0); while (true) {}
        </script>"""
    )
    url = browser.server.url("/endless")
    batch = browser.session.start(call := browser.call("navigate", url=url))
    await browser.server.wait_for_request("/endless-loops")
    batch.cancel(call.call_id, by="tester")
    await batch.outcomes()
    assert "- title: Next" in await browser.opens("<title>Next</title>")
    assert await browser.pid("python", "keryx_browser") == worker


@shared
async def test_a_cancelled_click_does_not_happen_later(browser: BrowserSession) -> None:
    text = await browser.opens(
        """<title>Covered</title><div style="height:3000px"></div>
        <button onclick="document.title = 'clicked'">Press</button>
        <div id="cover" style="position:fixed;inset:0">Cover</div>
        <script>
        document.onkeydown = () => cover.remove();
        onscroll = () => fetch("/scrolled-to-the-button");
        </script>"""
    )
    batch = browser.session.start(call := browser.call("click", ref=reference(text, "Press")))
    await browser.server.wait_for_request("/scrolled-to-the-button")
    batch.cancel(call.call_id, by="tester")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    # The button can be clicked now. All that the cancelled call did in the page is over.
    assert "- title: Covered" in await browser.text("press", key="a")
    assert "- title: Covered" in await browser.text("snapshot")
    assert "- title: clicked" in await browser.text("click", ref=reference(text, "Press"))


async def test_a_worker_that_does_not_stop_is_killed_and_a_new_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_browser, "SETTLE", 0.1)
    async with asyncio.timeout(60), browser_session(tmp_path) as browser:
        await browser.opens("<title>First</title>")
        first = await browser.processes()
        worker = await browser.pid("python", "keryx_browser")
        url = browser.server.url("/never")
        batch = browser.session.start(call := browser.call("navigate", url=url))
        await browser.server.wait_for_request("/never")
        os.kill(worker, signal.SIGSTOP)
        batch.cancel(call.call_id, by="tester")
        (outcome,) = await batch.outcomes()
        assert outcome.outcome == "cancelled"
        text = await browser.opens("<title>Second</title>")
        assert "- title: Second" in text
        assert "a new browser was started" in text
        assert not first.keys() & (await browser.processes()).keys()
