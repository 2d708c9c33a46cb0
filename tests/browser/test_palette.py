"""Everything by its name or its key."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Tab
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.23")]


async def test_commands_are_found_by_name_beside_what_was_said(tab: Tab, house: House) -> None:
    house.stage.on("Remember the kingfisher", Reply(text="Noted."))
    await tab.begin("Remember the kingfisher")
    await expect(tab.replies.last).to_have_text("Noted.")
    await tab.page.keyboard.press("Control+k")
    search = tab.page.get_by_role("dialog", name="Search")
    field = search.get_by_role("searchbox")
    await field.fill("dark")
    await field.press("Enter")
    await expect(tab.page.locator("html")).to_have_attribute("data-theme", "dark")
    await tab.page.keyboard.press("Control+k")
    await field.fill("compact")
    await field.press("ArrowDown")
    await tab.page.keyboard.press("Enter")
    await expect(tab.box).to_have_value("/compact ")
    await expect(tab.box).to_be_focused()
    await tab.box.fill("")
    await tab.page.keyboard.press("Control+k")
    await field.fill("kingfisher")
    await expect(search.locator("mark").first).to_have_text("kingfisher")
    await field.press("Escape")
    await expect(search).to_have_count(0)


async def test_a_question_mark_shows_all_keys_and_escape_closes_menus(
    tab: Tab, house: House
) -> None:
    house.stage.on("Here I am", Reply(text="Indeed."))
    await tab.begin("Here I am")
    await expect(tab.replies.last).to_have_text("Indeed.")
    await tab.box.blur()
    await tab.page.keyboard.press("?")
    keys = tab.page.get_by_role("dialog", name="Commands and keys")
    await expect(keys).to_contain_text("Show this list")
    await tab.page.keyboard.press("Escape")
    await expect(keys).to_have_count(0)
    await tab.list.get_by_role("button", name="Actions for").first.focus()
    await tab.page.keyboard.press("Enter")
    rename = tab.list.get_by_role("button", name="Rename")
    await expect(rename).to_be_visible()
    await tab.page.keyboard.press("Escape")
    await expect(rename).to_have_count(0)
    await tab.box.fill("why?")
    await expect(tab.box).to_have_value("why?")
