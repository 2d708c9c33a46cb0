"""Child agents on the page: the bars of `delegate` lead to them, and they lead back."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("kit.4")]


def agents(tab: Tab) -> Locator:
    """The lines of child agents."""
    return tab.call("delegate").get_by_role("button", name=re.compile("^Open the child agent:"))


def parent_link(tab: Tab, title: str) -> Locator:
    return tab.page.get_by_role("main").get_by_role("link", name=title)


def delegates(stage: ScriptedReplies, cue: str, *tasks: str) -> None:
    call = Call("delegate", {"tasks": [{"task": task} for task in tasks]})
    stage.on(cue, Reply(calls=(call,)), Reply(text=f"{cue}: all have ended."))


async def test_a_running_child_is_opened_by_enter_and_leads_back(
    tab: Tab, house: House, stage: ScriptedReplies
) -> None:
    with gate(house.served.workspace, "child") as held:
        delegates(stage, "Share the work", "Count the left half", "Count the right half")
        stage.on("Count the left half", Reply(text="Left: 3."))
        stage.on(
            "Count the right half", Reply(calls=(held.call("counting"),)), Reply(text="Right: 4")
        )
        await tab.begin("Share the work")
        await expect(agents(tab)).to_have_count(2)
        parent = tab.session_id
        running = agents(tab).filter(has_text="running")
        await expect(running).to_have_count(1)
        await running.press("Enter")
        await expect(tab.said).to_have_text(["Count the right half"])
        await expect(tab.printed("terminal")).to_have_text("counting")
        assert tab.session_id != parent
        held.open()
        await expect(tab.replies.last).to_have_text("Right: 4")
        await expect(tab.page.get_by_text("Child agent of")).to_be_visible()
        await parent_link(tab, "Share the work").click()
        await expect(tab.replies.last).to_have_text("Share the work: all have ended.")
        assert tab.session_id == parent


async def test_after_a_reload_bars_lead_to_children_and_children_back(
    tab: Tab, stage: ScriptedReplies
) -> None:
    tasks = ("Look at the north", "Look at the south", "Look at the east")
    delegates(stage, "Look around", *tasks)
    for task in tasks:
        stage.on(task, Reply(text=f"{task}: seen."))
    await tab.begin("Look around")
    await expect(tab.replies.last).to_have_text("Look around: all have ended.")
    await tab.page.reload()
    await expect(agents(tab)).to_have_count(3)
    # The bar of a line leads where the line does.
    line = tab.call("delegate").get_by_role("listitem").filter(has_text="Look at the east")
    await line.locator(".lane").click()
    await expect(tab.replies).to_have_text(["Look at the east: seen."])
    await tab.page.reload()
    await expect(tab.replies).to_have_text(["Look at the east: seen."])
    await parent_link(tab, "Look around").click()
    await expect(tab.replies.last).to_have_text("Look around: all have ended.")
    await expect(tab.session("Look around")).to_be_visible()
    for task in tasks:
        await expect(tab.session(task)).to_have_count(0)


async def test_a_child_that_waits_for_a_person_is_in_the_list_until_it_is_answered(
    tab: Tab, stage: ScriptedReplies
) -> None:
    delegates(stage, "Let one ask", "Ask which one")
    question = Call("clarify", {"question": "Which one?", "choices": ["This", "That"]})
    stage.on("Ask which one", Reply(calls=(question,)), Reply(text="That one."))
    await tab.begin("Let one ask")
    await expect(tab.session("Ask which one")).to_contain_text("Waiting for you")
    # What changes later is newer than the child, so the stream does not repeat the child.
    stage.on("Say something", Reply(text="Something."))
    await tab.begin("Say something")
    await expect(tab.replies.last).to_have_text("Something.")
    await tab.page.reload()
    await expect(tab.replies.last).to_have_text("Something.")
    await expect(tab.session("Ask which one")).to_contain_text("Waiting for you")
    await tab.session("Ask which one").get_by_role("button").first.click()
    await tab.asks.get_by_role("button", name="That").click()
    await expect(tab.replies.last).to_have_text("That one.")
    await expect(tab.session("Ask which one")).to_have_count(0)
    await parent_link(tab, "Let one ask").click()
    await expect(tab.replies.last).to_have_text("Let one ask: all have ended.")


async def test_many_children_share_a_line_and_each_is_opened_from_it(
    tab: Tab, stage: ScriptedReplies
) -> None:
    tasks = [f"Visit room {number:02}" for number in range(20)]
    delegates(stage, "Walk the house", *tasks)
    for task in tasks:
        stage.on(task, Reply(text=f"{task}: empty."))
    await tab.begin("Walk the house")
    await expect(tab.replies.last).to_have_text("Walk the house: all have ended.")
    await tab.page.reload()
    crowd = tab.call("delegate").get_by_role("button", name=re.compile("^agent: 20"))
    await crowd.click()
    # In the order in which they began; those in view are in the document.
    first = tab.call("delegate").get_by_role("region", name="agent: 20 calls").get_by_role("button")
    task = await first.first.locator(".call-line-argument").inner_text()
    assert task in tasks
    await first.first.click()
    await expect(tab.replies).to_have_text([f"{task}: empty."])


async def test_a_child_that_was_deleted_is_reported(
    somebody: Person, tab: Tab, house: House, stage: ScriptedReplies
) -> None:
    delegates(stage, "Lose one", "Get lost")
    stage.on("Get lost", Reply(text="Lost."))
    await tab.begin("Lose one")
    await expect(tab.replies.last).to_have_text("Lose one: all have ended.")
    (child,) = (await somebody.asks(f"/api/sessions?parent={tab.session_id}"))["sessions"]
    origin = house.served.url.rstrip("/")
    address = f"{origin}/api/sessions/{child['session_id']}"
    answer = await somebody.context.request.delete(address, headers={"Origin": origin})
    assert answer.ok, await answer.text()
    await agents(tab).click()
    await expect(tab.page.get_by_role("alert")).to_contain_text("has no session")
