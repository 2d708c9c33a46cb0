"""Dialogs whose code comes later: one that cannot be fetched is reported, and opens when it can."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Route, expect

from tests.browser.browser_user import Person, Tab

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.23")]

CODE = re.compile(r"/assets/dialogs-[^/]+\.js$")


async def test_the_code_comes_by_itself_once_the_page_is_drawn(somebody: Person) -> None:
    page = await somebody.context.new_page()
    async with page.expect_response(CODE) as code:
        await page.goto(somebody.url)
    assert (await code.value).ok


async def test_a_dialog_opens_once_its_code_can_be_fetched(somebody: Person) -> None:
    somebody.watch.expects_outage()
    page = await somebody.context.new_page()
    refused: list[str] = []

    async def refuse(route: Route) -> None:
        refused.append(route.request.url)
        await route.abort()

    await page.route(CODE, refuse)
    await page.goto(somebody.url)
    tab = Tab(page)
    await expect(tab.box).to_be_focused()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("keys")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("Cannot reach the server.")
    keys = page.get_by_role("dialog", name="Commands and keys")
    await expect(keys).to_be_hidden()
    assert refused
    await page.unroute(CODE, refuse)
    await tab.box.fill("/help")
    await tab.box.press("Enter")
    await expect(keys.get_by_role("button", name="Close")).to_be_focused()
    await expect(page.get_by_role("alert")).to_be_hidden()
