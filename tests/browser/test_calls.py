"""Tool calls on the screen: live output, outcome, what is inside, and cancelling one of them."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Tab
from tests.browser.command_gate import gate
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.1")]


async def test_a_call_shows_its_output_while_it_runs_and_then_its_result(
    tab: Tab, house: House
) -> None:
    with gate(house.served.workspace, "slow") as slow:
        house.stage.on(
            "Run it slowly",
            Reply(text="I run it.", calls=(slow.call("halfway", "done"),)),
            Reply(text="It has run."),
        )
        await tab.begin("Run it slowly")
        call = tab.call("terminal")
        await expect(tab.printed("terminal")).to_have_text("halfway")
        await expect(call).to_contain_text("Running")
        await expect(tab.button("Cancel terminal")).to_be_visible()
        slow.open()
        await expect(tab.replies.last).to_have_text("It has run.")
    await expect(tab.button("Cancel terminal")).to_be_hidden()
    await expect(call).not_to_contain_text("Running")
    fold = call.get_by_role("button", name="terminal echo halfway")
    await expect(fold).to_have_attribute("aria-expanded", "false")
    await fold.click()
    result = call.get_by_role("group", name="Result")
    await expect(result.locator("pre")).to_have_text("halfway\ndone\n")
    await expect(result).to_contain_text("exit code: 0")
    await expect(call.get_by_role("group", name="Arguments")).to_contain_text("read go < slow")


async def test_a_call_that_fails_says_so_and_the_turn_goes_on(tab: Tab, house: House) -> None:
    house.stage.on(
        "Read what is not there",
        Reply(calls=(Call("read_file", {"path": "nowhere.txt"}),)),
        Reply(text="There is no such file."),
    )
    await tab.begin("Read what is not there")
    await expect(tab.replies.last).to_have_text("There is no such file.")
    await expect(tab.call("read_file")).to_contain_text("Failed")


async def test_one_call_can_be_cancelled_while_its_neighbour_goes_on(
    tab: Tab, house: House
) -> None:
    workspace = house.served.workspace
    with gate(workspace, "left") as left, gate(workspace, "right") as right:
        part = house.stage.on(
            "Run two",
            Reply(calls=(left.call("left waits"), right.call("right waits", "right ends"))),
            Reply(text="One of two."),
        )
        await tab.begin("Run two")
        calls = tab.call("terminal")
        await expect(tab.printed("terminal").nth(0)).to_have_text("left waits")
        await expect(tab.printed("terminal").nth(1)).to_have_text("right waits")
        await expect(tab.replies.first).to_contain_text("2 calls, 2 running")
        await calls.nth(0).get_by_role("button", name="Cancel terminal").click()
        await expect(calls.nth(0)).to_contain_text("Cancelled by you")
        await expect(calls.nth(1)).to_contain_text("Running")
        right.open()
        await expect(tab.replies.last).to_have_text("One of two.")
    seen = str((await part.request(2)).body["messages"])
    assert "left waits" in seen
    assert "right ends" in seen


async def test_a_failed_turn_says_what_went_wrong_and_what_to_do(tab: Tab, house: House) -> None:
    house.stage.on("Ask in vain", Reply(status=401, message="no such key", code="invalid_api_key"))
    await tab.begin("Ask in vain")
    end = tab.transcript.get_by_role("group", name="The turn failed")
    await expect(end).to_contain_text("The model's provider refused the API key")
    await expect(end).to_contain_text("check the key")
    await expect(tab.session("Ask in vain")).to_contain_text("Failed")
    house.stage.on("Ask again", Reply(text="Now it works."))
    await tab.say("Ask again")
    await expect(tab.replies.last).to_have_text("Now it works.")
    await expect(tab.session("Ask in vain")).not_to_contain_text("Failed")
