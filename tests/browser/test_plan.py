"""The plan of a session on the page: what `todo` wrote last."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Locator, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Tab, person
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("kit.4")]


def plan(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name="Plan")


def todo(**items: str) -> Call:
    return Call("todo", {"items": [{"text": text, "status": is_} for text, is_ in items.items()]})


async def test_the_newest_plan_is_shown_while_it_changes_and_after_a_reload(
    tab: Tab, house: House, stage: ScriptedReplies
) -> None:
    with gate(house.served.workspace, "planned") as held:
        stage.on(
            "Work by a plan",
            Reply(calls=(todo(Read="doing", Write="open"),)),
            Reply(calls=(held.call("reading"),)),
            Reply(calls=(todo(Read="done", Write="doing"),)),
            Reply(text="Half of it is done."),
        )
        await tab.begin("Work by a plan")
        await expect(plan(tab)).to_contain_text("0 of 2 done")
        steps = plan(tab).get_by_role("listitem")
        await expect(steps).to_have_text(["In progress: Read", "Open: Write"])
        await expect(tab.printed("terminal")).to_have_text("reading")
        await tab.page.reload()
        await expect(steps).to_have_text(["In progress: Read", "Open: Write"])
        held.open()
        await expect(steps).to_have_text(["Done: Read", "In progress: Write"])
    await tab.settles()
    await tab.page.reload()
    await expect(plan(tab)).to_contain_text("1 of 2 done")
    await plan(tab).get_by_role("button", name="Plan").click()
    await expect(steps).to_have_count(0)
    await expect(plan(tab)).to_contain_text("Write")


async def test_a_plan_from_long_before_survives_a_reload(
    chromium: Browser, house: House, stage: ScriptedReplies
) -> None:
    looks = [Reply(calls=(Call("list_files", {}),) * 50) for _ in range(8)]
    stage.on("Plan and look", Reply(calls=(todo(Look="doing"),)), *looks, Reply(text="Looked."))
    # Small enough that the page loads no more than the end of the transcript.
    size = {"width": 1280, "height": 650}
    async with person(chromium, house.served.url, state=house.state, viewport=size) as somebody:
        tab = await somebody.opens()
        await tab.say("Plan and look")
        await expect(tab.replies.last).to_have_text("Looked.")
        await tab.page.reload()
        await expect(tab.replies.last).to_have_text("Looked.")
        await expect(plan(tab).get_by_role("listitem")).to_have_text(["In progress: Look"])


async def test_an_undone_turn_takes_its_plan_with_it(tab: Tab, stage: ScriptedReplies) -> None:
    stage.on("Plan first", Reply(calls=(todo(First="open"),)), Reply(text="One plan."))
    stage.on("Plan again", Reply(calls=(todo(Second="open"),)), Reply(text="Another."))
    await tab.begin("Plan first")
    await expect(tab.replies.last).to_have_text("One plan.")
    await tab.say("Plan again")
    await expect(tab.replies.last).to_have_text("Another.")
    await expect(plan(tab).get_by_role("listitem")).to_have_text(["Open: Second"])
    await tab.transcript.get_by_role("button", name="Actions for this turn").nth(1).click()
    await tab.transcript.get_by_role("button", name="Undo this turn").click()
    dialog = tab.page.get_by_role("dialog", name="Undo this turn?")
    await dialog.get_by_role("button", name="Undo").click()
    await expect(plan(tab).get_by_role("listitem")).to_have_text(["Open: First"])


async def test_on_a_phone_the_plan_is_one_line_until_it_is_unfolded(
    chromium: Browser, house: House, stage: ScriptedReplies
) -> None:
    stage.on("Plan on a phone", Reply(calls=(todo(Small="doing"),)), Reply(text="Planned."))
    size = {"width": 360, "height": 740}
    async with person(chromium, house.served.url, state=house.state, viewport=size) as somebody:
        tab = await somebody.opens()
        await tab.say("Plan on a phone")
        await expect(plan(tab)).to_contain_text("Small")
        await expect(plan(tab).get_by_role("listitem")).to_have_count(0)
        await plan(tab).get_by_role("button", name="Plan").click()
        await expect(plan(tab).get_by_role("listitem")).to_have_text(["In progress: Small"])
