"""The Tour, from the first visit to the end, as somebody does it who has no key."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.browser.browser_user import STOPPED, Tab
from tests.browser.empty_home import look_at, newcomer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.8")]

SLOW = "Cancel nested terminal sleep 45; echo sa-east-1"
FAREWELL = "Now it is your turn"


def tried(tab: Tab, words: str) -> Locator:
    """That step of the tour, once it is ticked."""
    steps = tab.page.get_by_role("list", name="Try it yourself")
    return steps.get_by_role("listitem").filter(has_text=f"{words}, done")


async def test_the_tour_shows_what_is_special_on_any_machine(
    chromium: Browser, tmp_path: Path
) -> None:
    async with newcomer(chromium, tmp_path) as (served, somebody, tab):
        # It opens by itself, and says what it is.
        await expect(tab.said).to_have_text(["Show me."])
        line = tab.page.get_by_role("region", name="Take the tour")
        await expect(line).to_contain_text("Scripted model, real tools")
        await expect(tab.page).to_have_title("The tour · Keryx")

        # Thirteen at once, of which one is cancelled and twelve go on.
        await expect(tab.replies.first).to_contain_text("terminal: 12 done")
        await look_at(tab, "tour", tab.button(SLOW), tmp_path)
        await tab.button(SLOW).click()
        await expect(tried(tab, "Cancel one call")).to_be_visible()
        script = tab.call("execute_code")
        await expect(script).not_to_contain_text("Running")
        await expect(script).to_contain_text("terminal: 12 done")
        await expect(script).to_contain_text(STOPPED)

        # It asks before it does what is risky, also in the title of the tab.
        ask = tab.asks.get_by_role("group", name="Allow terminal?")
        await expect(ask).to_contain_text("keryx-tour")
        await expect(tab.page).to_have_title("(1) The tour · Keryx")
        await look_at(tab, "tour-asks", ask, tmp_path)
        await ask.get_by_role("button", name="Allow once").click()
        await expect(tab.replies.last).to_contain_text(FAREWELL)
        await expect(tab.page).to_have_title("The tour · Keryx")
        await expect(tried(tab, "Allow or deny")).to_be_visible()
        await tab.settles()

        # A steer stops what runs, and is answered.
        await tab.say("again")
        await expect(tab.call("execute_code").nth(1)).to_contain_text("13 nested calls")
        await tab.box.fill("Never mind.")
        steers = tab.page.get_by_role("form", name="Message")
        await expect(steers).to_contain_text(
            "Steer cancels 1 running call and sends your message now."
        )
        await tab.button("Steer").click()
        await expect(tab.replies.last).to_contain_text("You said: “Never mind.”")
        await expect(tab.call("execute_code").last).to_contain_text("Cancelled by your steer")
        await expect(tried(tab, "Steer")).to_be_visible()
        await tab.settles()

        # The server is killed while it works; nothing is lost, and nothing is twice.
        await tab.say("again")
        await expect(tab.call("execute_code").nth(2)).to_contain_text("13 nested calls")
        somebody.watch.expects_outage()
        await served.kill()
        await expect(tab.page.get_by_text("Connection lost. Reconnecting…").first).to_be_visible()
        await served.start()
        await expect(tried(tab, "kill -9 the server")).to_be_visible()
        await expect(tab.call("execute_code").last).to_contain_text("Unknown")
        # Only rows near the screen are in the document: on this one, all of them are.
        await tab.page.set_viewport_size({"width": 1280, "height": 5000})
        await tab.page.reload()
        await expect(tab.said).to_have_text(["Show me.", "again", "SteeredNever mind.", "again"])
        await expect(tab.call("execute_code")).to_have_count(3)
        await expect(tab.call("execute_code").last).to_contain_text("Unknown")
        await tab.asks.get_by_role("button", name="Deny").click()
        await expect(tab.call("terminal").last).to_contain_text("Denied")
        await expect(tab.replies.last).to_contain_text(FAREWELL)
        await tab.settles()


async def test_whoever_has_seen_the_tour_is_not_led_into_it_again(
    chromium: Browser, tmp_path: Path
) -> None:
    async with newcomer(chromium, tmp_path) as (_, somebody, tab):
        await expect(tab.said).to_have_text(["Show me."])
        first = tab.session_id
        await tab.stop.click()
        await expect(tab.transcript.get_by_text("Stopped by you")).to_be_visible()
        await tab.choose("The tour", "Delete")
        dialog = tab.page.get_by_role("dialog", name="Delete this session?")
        await dialog.get_by_role("button", name="Delete").click()
        welcome = tab.page.get_by_role("heading", name="Welcome to Keryx")
        await expect(welcome).to_be_visible()
        await tab.page.reload()
        await expect(welcome).to_be_visible()
        await tab.button("Take the tour").click()
        await expect(tab.said).to_have_text(["Show me."])
        assert tab.session_id != first
        await tab.stop.click()
        await tab.settles()
        assert len((await somebody.asks("/api/sessions"))["sessions"]) == 1
