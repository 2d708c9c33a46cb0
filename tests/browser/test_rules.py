"""What “Always allow” covers is said before it is done, listed afterwards, and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.test_asking import begins_carefully
from tests.browser.test_looks import AXE, LOOKS, Eye

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("mended.15")]


def write(path: str) -> Reply:
    return Reply(calls=(Call("write_file", {"path": path, "content": "x", "overwrite": True}),))


async def test_always_says_what_it_covers_and_is_taken_back(
    somebody: Person, tab: Tab, house: House
) -> None:
    folder = house.served.workspace
    house.stage.on("Write the app", write("app.py"), write("app.py"), Reply(text="Written."))
    await begins_carefully(tab, "Write the app")
    await tab.asks.get_by_role("button", name="Always allow write_file").click()
    choices = tab.asks.get_by_role("group", name="Always allow write_file")
    options = choices.locator(".reach-choice-option")
    await expect(options).to_have_count(3)
    await expect(options.nth(0)).to_be_focused()
    await expect(options.nth(0)).to_contain_text(
        f"write_file: app.py, in sessions that work in {folder}"
    )
    await expect(options.nth(2)).to_contain_text("write_file: every call, in every folder")
    await tab.page.keyboard.press("Escape")
    await expect(choices).to_be_hidden()
    await tab.asks.get_by_role("button", name="Always allow write_file").click()
    await options.nth(0).press("Enter")
    await expect(tab.replies.last).to_have_text("Written.")
    # Another session in this folder is covered as well, and in the list one sees by what.
    other = await somebody.opens()
    house.stage.on(
        "Write it again", write("app.py"), write("other.py"), Reply(text="Written again.")
    )
    await begins_carefully(other, "Write it again")
    await expect(other.asks.get_by_role("group", name="Allow write_file?")).to_contain_text(
        "other.py"
    )
    await other.asks.get_by_role("button", name="Allow once").click()
    await expect(other.replies.last).to_have_text("Written again.")
    await other.list.get_by_role("button", name="Settings").click()
    await other.page.get_by_role("link", name="Approvals").click()
    section = other.page.get_by_role("region", name="Approvals")
    rules = section.get_by_role("list", name="Approval rules").get_by_role("listitem")
    await expect(rules).to_have_count(1)
    await expect(rules.first).to_contain_text(f"app.py, in sessions that work in {folder}")
    await rules.first.get_by_role("button", name="Remove").click()
    await expect(rules).to_have_count(0)
    await expect(section).to_contain_text("No rules yet.")
    await other.page.get_by_role("button", name="Back").click()
    await expect(other.replies.last).to_have_text("Written again.")
    # Also in the session that it was made in, and at once.
    house.stage.on("Write it once more", write("app.py"), Reply(text="Not this time."))
    await tab.looks_here()
    await tab.say("Write it once more")
    await tab.asks.get_by_role("button", name="Deny").click()
    await expect(tab.replies.last).to_have_text("Not this time.")


async def test_consent_for_the_session_can_be_for_the_folder(tab: Tab, house: House) -> None:
    house.stage.on(
        "Write three", write("one.py"), write("lib/two.py"), write("three.py"), Reply(text="Three.")
    )
    await begins_carefully(tab, "Write three")
    await tab.asks.get_by_role("button", name="Allow for this session").click()
    choices = tab.asks.get_by_role("group", name="Allow for this session")
    await expect(choices.locator(".reach-choice-option")).to_have_count(2)
    await expect(choices).not_to_contain_text("in sessions that work in")
    await choices.get_by_role("button", name="Everything in this folder").click()
    await expect(tab.replies.last).to_have_text("Three.")


@pytest.mark.parametrize("look", LOOKS)
async def test_the_choice_and_the_list_can_be_seen_and_used(
    chromium: Browser, house: House, tmp_path: Path, look: str
) -> None:
    words = f"Write in {look}"
    house.stage.on(words, write(f"{look}.py"), write("never.py"), Reply(text="Written."))
    async with person(chromium, house.served.url, state=house.state, **LOOKS[look]) as somebody:
        tab = await somebody.opens()
        eye = Eye(tab, tmp_path, look, AXE.read_text())
        await tab.shows_more()
        await tab.page.get_by_role("combobox", name="Approvals").select_option(
            label="Ask before every change"
        )
        await tab.say(words)
        await tab.asks.get_by_role("button", name="Always allow write_file").click()
        choices = tab.asks.get_by_role("group", name="Always allow write_file")
        await eye.sees("reaches", choices)
        await choices.get_by_role("button", name="Only this").click()
        await expect(tab.asks.get_by_role("group", name="Allow write_file?")).to_contain_text(
            "never.py"
        )
        await tab.asks.get_by_role("button", name="Always allow write_file").click()
        await choices.get_by_role("button", name="Approval rules").click()
        dialog = tab.page.get_by_role("dialog", name="Approval rules")
        rule = dialog.get_by_role("listitem").filter(has_text=f"{look}.py")
        await eye.sees("rules", rule)
        await rule.get_by_role("button", name="Remove").click()
        await expect(rule).to_be_hidden()
        await dialog.get_by_role("button", name="Close").click()
        await choices.get_by_role("button", name="Back").click()
        await tab.asks.get_by_role("button", name="Deny").click()
        await expect(tab.replies.last).to_have_text("Written.")
        assert eye.violations == []
