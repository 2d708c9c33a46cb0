"""What a person decides on is shown whole, and what is shown is true: approvals, colours, times."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Tab
from tests.browser.conftest import House
from tests.browser.test_asking import begins_carefully

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

LONG = "\n".join(
    ["rm -rf build-1", *(f"echo line {number}" for number in range(120)), "rm -rf end"]
)


def command(text: str) -> Reply:
    return Reply(calls=(Call("terminal", {"command": text}),))


@pytest.mark.promise("page20.7")
async def test_an_approval_shows_all_of_the_command_and_what_always_covers(
    tab: Tab, house: House
) -> None:
    house.stage.on("Clean up", command(LONG), Reply(text="As you like."))
    await begins_carefully(tab, "Clean up")
    card = tab.asks.get_by_role("group", name="Allow terminal?")
    whole = card.get_by_role("region", name="What it would do")
    await expect(whole).to_contain_text("rm -rf build-1")
    await expect(whole).to_contain_text("rm -rf end")
    box = await card.bounding_box()
    assert box is not None
    assert box["height"] < 900, "it scrolls within itself"
    await whole.evaluate("element => element.scrollTo(0, element.scrollHeight)")
    await expect(card).to_contain_text("would cover at least")
    # While one types, digits are text.
    await tab.box.press("4")
    await expect(tab.box).to_have_value("4")
    await tab.box.fill("")
    await tab.transcript.focus()
    await tab.page.keyboard.press("4")
    await expect(tab.asks).to_be_hidden()
    await expect(tab.call("terminal")).to_contain_text("Denied")
    await expect(tab.replies.last).to_contain_text("As you like.")


@pytest.mark.promise("page20.7")
async def test_digits_answer_the_request_that_has_the_focus(tab: Tab, house: House) -> None:
    calls = tuple(Call("terminal", {"command": f"rm -rf nothing-{number}"}) for number in (1, 2))
    house.stage.on("Two at once", Reply(calls=calls), Reply(text="Both."))
    await begins_carefully(tab, "Two at once")
    cards = tab.asks.get_by_role("group", name="Allow terminal?")
    await expect(cards).to_have_count(2)
    await cards.last.get_by_role("button", name="Deny").focus()
    await tab.page.keyboard.press("3")
    # “Always” first says what it covers; its choices have keys too.
    await expect(cards.last.get_by_role("button", name="Only this, in this folder")).to_be_visible()
    await tab.page.keyboard.press("Escape")
    await tab.page.keyboard.press("1")
    await expect(cards).to_have_count(1)
    await expect(cards.first).to_contain_text("nothing-1")
    await tab.transcript.focus()
    await tab.page.keyboard.press("4")
    await expect(tab.replies.last).to_contain_text("Both.")


@pytest.mark.promise("page20.7")
async def test_digits_answer_after_a_message_was_sent_and_nobody_types(
    tab: Tab, house: House
) -> None:
    house.stage.on("Remove it", command("rm -rf nothing-1"), Reply(text="Removed."))
    house.stage.on("Keep it", command("rm -rf nothing-2"), Reply(text="Kept."))
    card = tab.asks.get_by_role("group", name="Allow terminal?")
    keys = card.locator("kbd:visible")
    await begins_carefully(tab, "Remove it")
    await expect(card).to_be_focused()
    await expect(keys).to_have_count(4)
    await tab.page.keyboard.press("1")
    await expect(tab.replies.last).to_have_text("Removed.")
    await expect(tab.box).to_be_focused()
    await expect(tab.box).to_have_value("")
    # Any other character begins a message, and what follows belongs to it.
    await tab.say("Keep it")
    await expect(card).to_be_focused()
    await expect(keys).to_have_count(4)
    await tab.page.keyboard.type("note 1")
    await expect(tab.box).to_have_value("note 1")
    await expect(keys).to_have_count(0)
    await expect(card).to_be_visible()
    # Back at the card, its keys work again.
    await card.get_by_role("button", name="Deny").focus()
    await expect(keys).to_have_count(4)
    await tab.page.keyboard.press("4")
    await expect(tab.replies.last).to_have_text("Kept.")
    await expect(tab.box).to_have_value("note 1")


@pytest.mark.promise("page20.7")
async def test_no_key_that_is_meant_for_a_message_answers(tab: Tab, house: House) -> None:
    slow = command("rm -rf nothing-3")
    slow = Reply(text="Well, ", calls=slow.calls, fault="hang mid-stream", after=1)
    part = house.stage.on("Be careful", slow, Reply(text="Done."))
    house.stage.on("Once more", command("rm -rf nothing-4"), Reply(text="Done again."))
    card = tab.asks.get_by_role("group", name="Allow terminal?")
    await begins_carefully(tab, "Be careful")
    held = await part.held()
    await tab.box.press_sequentially("step ")
    held.resume.set()
    await expect(card).to_be_visible()
    await expect(card.locator("kbd:visible")).to_have_count(0)
    for digit in "1234":
        await tab.page.keyboard.press(digit)
        await tab.page.wait_for_timeout(300)
    await expect(tab.box).to_have_value("step 1234")
    await expect(tab.box).to_be_focused()
    await expect(card).to_be_visible()
    await card.get_by_role("button", name="Deny").click()
    await expect(tab.replies.last).to_have_text("Done.")
    await tab.settles()
    # A digit that is pressed while the focus moves to the card was meant for the message box.
    await tab.page.evaluate("""() => document.addEventListener("focusin", ({ target }) => {
      if (!target.matches(".requests-card")) return;
      target.dispatchEvent(new KeyboardEvent("keydown", { key: "1", bubbles: true }));
      document.documentElement.dataset.moved = "yes";
    })""")
    await tab.say("Once more")
    await expect(tab.page.locator("html")).to_have_attribute("data-moved", "yes")
    await expect(tab.box).to_be_focused()
    await expect(card).to_be_visible()
    await card.get_by_role("button", name="Deny").click()
    await expect(tab.replies.last).to_have_text("Done again.")


@pytest.mark.promise("page20.8")
async def test_a_command_that_fails_by_its_exit_code_is_not_green(tab: Tab, house: House) -> None:
    house.stage.on("Fail softly", command("echo so; exit 3"), Reply(text="It failed."))
    await tab.begin("Fail softly")
    await expect(tab.replies.last).to_contain_text("It failed.")
    row = tab.call("terminal")
    await expect(row).to_contain_text("Exit code 3")
    colours = "element => getComputedStyle(element).backgroundColor"
    amber = await row.locator(".lane-bar").evaluate(colours)
    await row.get_by_role("button", name="Details of terminal").click()
    inspector = tab.page.get_by_role("complementary", name="Inspector")
    await expect(inspector).to_contain_text("Exit code 3")
    house.stage.on("Do it well", command("echo well"), Reply(text="It worked."))
    await tab.begin("Do it well")
    await expect(tab.replies.last).to_contain_text("It worked.")
    await expect(tab.call("terminal")).not_to_contain_text("Exit code")
    assert await tab.call("terminal").locator(".lane-bar").evaluate(colours) != amber


@pytest.mark.promise("page20.8")
async def test_nested_commands_that_fail_are_counted_apart(tab: Tab, house: House) -> None:
    script = (
        "from keryx_tools import terminal\n"
        "for number in range(4):\n"
        "    terminal(command='exit 5' if number == 2 else 'true')\n"
    )
    reply = Reply(calls=(Call("execute_code", {"code": script}),))
    house.stage.on("Many commands", reply, Reply(text="Ran them."))
    await tab.begin("Many commands")
    await expect(tab.replies.last).to_contain_text("Ran them.")
    nested = tab.call("execute_code").get_by_role("list", name="Nested calls")
    await expect(nested).to_contain_text("Exit code not 0")
    await tab.page.reload()
    await expect(nested).to_contain_text("Exit code not 0")


@pytest.mark.promise("page20.8")
async def test_a_retry_counts_down(tab: Tab, house: House) -> None:
    wait = Reply(status=429, message="slow down", headers={"retry-after": "3"})
    house.stage.on("Too fast", wait, Reply(text="Now."))
    await tab.begin("Too fast")
    note = tab.transcript.locator(".row-note")
    await expect(note).to_contain_text("Retrying in 2 s.")
    await expect(note).to_contain_text("Retrying in 1 s.")
    await expect(note).to_contain_text("Retried after 3 s.")
    await expect(tab.replies.last).to_contain_text("Now.")


@pytest.mark.promise("page20.8")
async def test_the_heading_of_a_failed_turn_says_what_its_message_says(
    tab: Tab, house: House
) -> None:
    broken = Reply(status=500, message="out of order", headers={"retry-after": "0"})
    house.stage.on("Break down", *(broken,) * 12)
    await tab.begin("Break down")
    failed = tab.transcript.get_by_role("group", name="The turn failed")
    await expect(failed).to_contain_text("answered 500: out of order")
    await expect(failed).to_contain_text("The model is not available right now")
    await expect(failed).not_to_contain_text("reach")
    gone = Reply(status=404, message="no such model", code="model_not_found")
    house.stage.on("Who is there?", gone)
    await tab.say("Who is there?")
    await expect(failed).to_have_count(2)
    await expect(failed.last).to_contain_text("The model does not exist")
    await expect(failed.last).to_contain_text("check the model's name")
