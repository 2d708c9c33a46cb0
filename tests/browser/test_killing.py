"""The server dies in mid-turn and comes back: whoever only waits sees all of it, once."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.screen_check import compare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("server.1")]

WORDS = " ".join(f"word{number}" for number in range(40))


@pytest_asyncio.fixture(loop_scope="module")
async def two(chromium: Browser, house: House) -> AsyncGenerator[tuple[Person, Tab, Tab]]:
    """Somebody who logged in before the crash, with two tabs; both show the same session."""
    async with person(chromium, house.served.url, state=house.state) as somebody:
        tab = await somebody.opens()
        house.stage.on("Before it", Reply(text="All is well."))
        await tab.begin("Before it")
        await tab.settles()
        other = await somebody.opens(tab.page.url)
        await expect(other.replies).to_have_text(["All is well."])
        await tab.looks_here()
        somebody.watch.expects_outage()
        yield somebody, tab, other


async def dies_and_comes_back(house: House, tab: Tab) -> None:
    await house.served.kill()
    lost = tab.page.get_by_role("main").get_by_role("status").get_by_text("Connection lost")
    await expect(lost).to_be_visible()
    await house.served.start()


async def ends_true(somebody: Person, *tabs: Tab, last: str) -> None:
    for tab in tabs:
        await tab.looks_here()
        await expect(tab.replies.last).to_have_text(last)
        await tab.settles()
    await compare(somebody, *tabs)


async def test_killed_while_text_streams(two: tuple[Person, Tab, Tab], house: House) -> None:
    somebody, tab, other = two
    part = house.stage.on(
        "Stream it",
        Reply(text=WORDS, chunk=6, fault="hang mid-stream", after=20),
        Reply(text=WORDS, chunk=6, fault="hang mid-stream", after=9),
    )
    await tab.say("Stream it")
    await part.held()
    await expect(tab.replies.last).to_contain_text("word15")
    await dies_and_comes_back(house, tab)
    again = await part.held(2)
    await expect(tab.replies.last).not_to_contain_text("word15")
    again.resume.set()
    await ends_true(somebody, tab, other, last=WORDS)
    await expect(tab.transcript.get_by_text("Resumed after a restart.")).to_be_visible()


async def test_killed_while_a_tool_runs(two: tuple[Person, Tab, Tab], house: House) -> None:
    somebody, tab, other = two
    with gate(house.served.workspace, "never") as closed:
        part = house.stage.on(
            "Run it",
            Reply(text="I run it.", calls=(closed.call("began"),)),
            Reply(text="I cannot know how it ended."),
        )
        await tab.say("Run it")
        await expect(tab.printed("terminal")).to_have_text("began")
        await dies_and_comes_back(house, tab)
        await part.request(2)
        await ends_true(somebody, tab, other, last="I cannot know how it ended.")
    await expect(tab.call("terminal")).to_contain_text("Unknown")


NESTED = """
from keryx_tools import terminal
for number in range(3):
    terminal(f"echo step-{number}")
terminal("echo last; read go < nested", timeout=1000)
"""


@pytest.mark.promise("page20.8")
async def test_killed_while_a_script_calls_what_its_calls_had_done_is_shown(
    two: tuple[Person, Tab, Tab], house: House
) -> None:
    somebody, tab, other = two
    with gate(house.served.workspace, "nested"):
        part = house.stage.on(
            "Run a script",
            Reply(calls=(Call("execute_code", {"code": NESTED, "timeout": 1_000}),)),
            Reply(text="I cannot know how the script ended."),
        )
        await tab.say("Run a script")
        await expect(tab.replies.last).to_contain_text("4 nested calls, 3 done")
        await dies_and_comes_back(house, tab)
        await part.request(2)
        await ends_true(somebody, tab, other, last="I cannot know how the script ended.")
    for each in (tab, other, await somebody.opens(tab.page.url)):
        await expect(each.call("execute_code")).to_contain_text("Unknown")
        await expect(each.replies.nth(-2)).to_contain_text("3 nested calls")
    script = tab.call("execute_code")
    await expect(script.get_by_role("button", name="terminal: 3 done")).to_be_visible()
    await expect(script).to_contain_text("3 nested calls had ended before that")
    await expect(script).to_contain_text("terminal echo step-2 (completed")


async def test_killed_while_an_approval_waits(two: tuple[Person, Tab, Tab], house: House) -> None:
    somebody, tab, other = two
    await tab.button("Session settings").click()
    settings = tab.page.get_by_role("region", name="Session settings")
    await settings.get_by_role("combobox", name="Approvals").select_option("ask")
    await expect(tab.transcript.get_by_text("Approvals is now ask.")).to_be_visible()
    house.stage.on(
        "Change it",
        Reply(calls=(Call("terminal", {"command": "touch changed"}),)),
        Reply(text="It is changed."),
    )
    await tab.say("Change it")
    await expect(tab.asks).to_contain_text("touch changed")
    await dies_and_comes_back(house, tab)
    await other.looks_here()
    await expect(other.page.get_by_text("Connection lost")).to_have_count(0)
    await other.asks.get_by_role("button", name="Allow once").click()
    await ends_true(somebody, tab, other, last="It is changed.")
    assert (house.served.workspace / "changed").exists()


async def test_killed_with_messages_in_the_queue(
    two: tuple[Person, Tab, Tab], house: House
) -> None:
    somebody, tab, other = two
    part = house.stage.on(
        "First in line",
        Reply(text="First.", fault="hang mid-stream", after=1),
        Reply(text="First."),
    )
    house.stage.on("Second in line", Reply(text="Second."))
    await tab.say("First in line")
    await part.held()
    await tab.say("Second in line")
    await expect(tab.queue).to_contain_text("Second in line")
    await dies_and_comes_back(house, tab)
    await ends_true(somebody, tab, other, last="Second.")


async def test_killed_between_turns_the_next_message_is_sent_as_ever(
    two: tuple[Person, Tab, Tab], house: House
) -> None:
    somebody, tab, other = two
    house.stage.on("After it", Reply(text="Still well."))
    await dies_and_comes_back(house, tab)
    await tab.say("After it")
    await ends_true(somebody, tab, other, last="Still well.")
