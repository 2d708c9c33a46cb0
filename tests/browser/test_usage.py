"""What was used: of the day beside the list, and by model of the day, the session and ever."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from keryx.events import Usage
from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.priced_model import cost_of, money, priced_house

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.7")]

TITLE = 15
"""Tokens that the scripted model says it used for a title, or for a reply."""


@pytest_asyncio.fixture(loop_scope="module")
async def first(chromium: Browser, own_house: House) -> AsyncGenerator[tuple[Person, Tab]]:
    """Somebody at a server on which nothing was used before."""
    async with person(chromium, own_house.served.url) as somebody:
        tab = await somebody.opens(own_house.served.link)
        await expect(tab.box).to_be_visible()
        yield somebody, tab


def opener(tab: Tab) -> Locator:
    return tab.list.get_by_role("button", name="Usage")


async def test_what_today_took_stands_beside_the_list_and_follows_each_turn(
    first: tuple[Person, Tab], own_house: House
) -> None:
    _, tab = first
    await expect(opener(tab)).to_have_text("Usage")
    own_house.stage.on("Use a little", Reply(text="Used."), Reply(text="Used again."))
    await tab.begin("Use a little")
    await expect(opener(tab)).to_have_text(f"Usage{TITLE + 15} tokens today")
    await tab.say("Use a little more")
    await expect(opener(tab)).to_have_text(f"Usage{TITLE + 30} tokens today")


async def test_usage_is_told_of_today_of_the_session_and_of_all_time(
    first: tuple[Person, Tab], own_house: House
) -> None:
    _, tab = first
    own_house.stage.on("Use this", Reply(text="Used."))
    own_house.stage.on("Use that", Reply(text="Used."))
    await tab.begin("Use that")
    await tab.settles()
    await tab.begin("Use this")
    await expect(opener(tab)).to_have_text(f"Usage{2 * (TITLE + 15)} tokens today")
    await opener(tab).press("Enter")
    dialog = tab.page.get_by_role("dialog", name="Usage")
    today = dialog.get_by_role("region", name="Today")
    # The model, its sessions, what it read and wrote, and a cost that nobody knows is not nothing.
    await expect(today.get_by_role("row").last).to_have_text("openai:test-model240200Unknown")
    own = dialog.get_by_role("region", name="This session")
    await expect(own).to_contain_text("Input20")
    await expect(own).to_contain_text("CostUnknown")
    ever = dialog.get_by_role("region", name="All time")
    await expect(ever.get_by_role("row").last).to_have_text("openai:test-model240200Unknown")
    await tab.page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(opener(tab)).to_be_focused()

    # Tomorrow nothing was used yet, but all of it is still there.
    await tab.page.clock.set_fixed_time(dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
    await tab.page.reload()
    await expect(tab.replies).to_have_text(["Used."])
    await opener(tab).click()
    await expect(today).to_contain_text("No usage yet.")
    await expect(ever.get_by_role("row").last).to_contain_text("openai:test-model")
    await expect(opener(tab)).to_have_text("Usage")


async def test_a_cost_that_is_known_is_told_in_money(chromium: Browser, tmp_path: Path) -> None:
    used = Usage(input_tokens=120_000, output_tokens=12_000)
    async with priced_house(chromium, tmp_path) as house:
        house.stage.on("Use much", Reply(text="Used.", usage=used))
        async with person(chromium, house.served.url, state=house.state) as somebody:
            tab = await somebody.opens()
            await expect(opener(tab)).to_have_text("Usage")
            await tab.begin("Use much")
            # The title is paid for as well.
            cost = money(await cost_of(used, Reply().usage))
            assert cost != money(0)
            await expect(opener(tab)).to_have_text(f"Usage{cost} today")
            await tab.settles()
            chip = tab.page.get_by_role("main").get_by_role("button", name="Usage")
            await expect(chip).to_have_text(f"120k of 200k{cost}")
            await opener(tab).click()
            dialog = tab.page.get_by_role("dialog", name="Usage")
            own = dialog.get_by_role("region", name="This session")
            await expect(own).to_contain_text(f"Cost{cost}")
            ever = dialog.get_by_role("region", name="All time")
            await expect(ever.get_by_role("row").last).to_have_text(f"shop:gpt-4o1120k12k0{cost}")
