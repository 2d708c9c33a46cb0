"""Reloads, second tabs and lost connections in mid-turn: the screen ends as the transcript is."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.network_line import Line, line
from tests.browser.page_server import PageServer
from tests.browser.screen_check import compare
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.promise("server.1"),
    pytest.mark.promise("page.9"),
]

WORDS = " ".join(f"word{number}" for number in range(40))
LOST = "Connection lost. Reconnecting…"
SILENCE_MS = 41_000
"""Longer than the page waits for the server's beat."""


def half(words: str = WORDS) -> Reply:
    return Reply(text=words, chunk=6, fault="hang mid-stream", after=20)


async def test_a_reload_while_the_reply_streams_shows_all_of_it_once(
    somebody: Person, tab: Tab, house: House
) -> None:
    part = house.stage.on("Stream and reload", half())
    await tab.begin("Stream and reload")
    held = await part.held()
    await expect(tab.replies.first).to_contain_text("word15")
    await tab.page.reload()
    await expect(tab.replies.first).to_contain_text("word15")
    await expect(tab.stop).to_be_visible()
    held.resume.set()
    await tab.settles()
    rows = await compare(somebody, tab)
    assert [row.text for row in rows] == ["Stream and reload", WORDS]


async def test_a_reload_while_a_tool_runs_shows_what_it_printed_and_then_its_end(
    somebody: Person, tab: Tab, house: House
) -> None:
    with gate(house.served.workspace, "reloading") as closed:
        house.stage.on(
            "Run and reload",
            Reply(text="Running.", calls=(closed.call("printed before", "printed after"),)),
            Reply(text="It ran."),
        )
        await tab.begin("Run and reload")
        await expect(tab.printed("terminal")).to_have_text("printed before")
        await tab.page.reload()
        await expect(tab.call("terminal")).to_contain_text("Running")
        await expect(tab.printed("terminal")).to_have_text("printed before")
        closed.open()
        await expect(tab.replies.last).to_have_text("It ran.")
    await tab.settles()
    await compare(somebody, tab)


async def test_two_tabs_show_the_same_whoever_types(
    somebody: Person, tab: Tab, house: House
) -> None:
    part = house.stage.on("Said in the first", half())
    house.stage.on("Said in the second", Reply(text="Heard in both."))
    await tab.begin("Said in the first")
    held = await part.held()
    other = await somebody.opens(tab.page.url)
    await expect(other.replies.first).to_contain_text("word15")
    await other.say("Said in the second")
    await expect(other.queue).to_contain_text("Said in the second")
    await tab.looks_here()
    await expect(tab.queue).to_contain_text("Said in the second")
    held.resume.set()
    for browser_tab in (tab, other):
        await browser_tab.looks_here()
        await expect(browser_tab.replies.last).to_have_text("Heard in both.")
        await browser_tab.settles()
    await compare(somebody, tab, other)


@pytest_asyncio.fixture(loop_scope="module")
async def wire() -> AsyncGenerator[Line]:
    async with line() as network:
        yield network


@pytest_asyncio.fixture(loop_scope="module")
async def remote(
    chromium: Browser, wire: Line, own_stage: tuple[ScriptedReplies, str], tmp_path: Path
) -> AsyncGenerator[tuple[Person, Tab, ScriptedReplies]]:
    """Somebody who reaches the server only through the line."""
    stage, model_url = own_stage
    served = PageServer(tmp_path, model_url, allowed_host=wire.address)
    await served.start()
    wire.leads_to(served.url)
    try:
        async with person(chromium, f"http://{wire.address}/") as somebody:
            somebody.watch.expects_outage()
            tab = await somebody.opens(f"{somebody.url}#{served.link.partition('#')[2]}")
            yield somebody, tab, stage
    finally:
        await served.stop()


async def test_a_connection_that_was_cut_for_long_misses_nothing(
    remote: tuple[Person, Tab, ScriptedReplies], wire: Line
) -> None:
    somebody, tab, stage = remote
    await expect(tab.box).to_be_visible()
    part = stage.on("Stream over a bad line", half())
    later = stage.on("Queued before the cut", Reply(text="Answered in the dark."))
    await tab.begin("Stream over a bad line")
    held = await part.held()
    await tab.say("Queued before the cut")
    await expect(tab.queue).to_be_visible()
    wire.cut()
    lost = tab.page.get_by_role("main").get_by_role("status").get_by_text(LOST)
    await expect(lost).to_be_visible()
    held.resume.set()
    await (await later.request()).answered.wait()
    await expect(lost).to_be_visible()
    wire.mend()
    await expect(tab.replies.last).to_have_text("Answered in the dark.")
    await expect(lost).to_be_hidden()
    await tab.settles()
    rows = await compare(somebody, tab)
    assert [row.text for row in rows if row.who == "Reply"] == [WORDS, "Answered in the dark."]


async def test_a_line_that_fell_silent_is_noticed_by_the_missing_beat(
    remote: tuple[Person, Tab, ScriptedReplies], wire: Line
) -> None:
    somebody, tab, stage = remote
    await tab.page.clock.install()
    await tab.page.reload()
    await expect(tab.box).to_be_visible()
    part = stage.on("Stream into silence", half())
    await tab.begin("Stream into silence")
    held = await part.held()
    await expect(tab.replies.first).to_contain_text("word15")
    wire.fall_silent()
    held.resume.set()
    await held.answered.wait()
    await tab.page.clock.fast_forward(SILENCE_MS)
    lost = tab.page.get_by_role("main").get_by_role("status").get_by_text(LOST)
    await expect(lost).to_be_visible()
    wire.mend()
    await expect(tab.replies.last).to_have_text(WORDS)
    await tab.settles()
    await compare(somebody, tab)


async def test_a_browser_that_goes_offline_and_comes_back_catches_up(
    somebody: Person, tab: Tab, house: House
) -> None:
    part = house.stage.on("Stream into a tunnel", half())
    await tab.begin("Stream into a tunnel")
    held = await part.held()
    somebody.watch.expects_outage()
    await somebody.context.set_offline(True)
    held.resume.set()
    await held.answered.wait()
    await somebody.context.set_offline(False)
    await expect(tab.replies.first).to_have_text(WORDS)
    await tab.settles()
    await compare(somebody, tab)
