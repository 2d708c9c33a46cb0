"""Two people sign in by name on one server, in two browsers."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from keryx.server.access.users import Users
from tests.browser.browser_user import Tab, person
from tests.browser.conftest import House
from tests.server.served_host import in_thread

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.40")]

PASSWORD = "correct horse"


async def signs_in(tab: Tab, name: str, password: str) -> None:
    form = tab.page.get_by_role("form", name="Sign in to Keryx")
    await form.get_by_label("Name", exact=True).fill(name)
    await form.get_by_placeholder("Password").fill(password)
    await form.get_by_role("button", name="Sign in").click()


async def test_each_person_sees_only_their_own_sessions(
    chromium: Browser, own_house: House
) -> None:
    served = own_house.served
    for name in ("anna", "ben"):
        await in_thread(Users(served.home).add, name, PASSWORD)
    async with person(chromium, served.url) as anna, person(chromium, served.url) as ben:
        anna.watch.expects("401")
        ben.watch.expects("401")
        hers, his = await anna.opens(), await ben.opens()
        await signs_in(hers, "anna", "wrong password")
        await expect(hers.page.get_by_role("alert")).to_contain_text("is wrong")
        await signs_in(hers, "anna", PASSWORD)
        await expect(hers.box).to_be_visible()
        await signs_in(his, "ben", PASSWORD)
        await expect(his.box).to_be_visible()
        await hers.box.fill("the cormorant dives")
        await hers.box.press("Enter")
        await expect(hers.list.get_by_text("the cormorant dives")).to_be_visible()
        await his.page.reload()
        await expect(his.box).to_be_visible()
        await expect(his.page.get_by_text("cormorant")).to_have_count(0)
        await hers.page.get_by_role("button", name="Sign out (anna)").click()
        await expect(hers.page.get_by_role("form", name="Sign in to Keryx")).to_be_visible()


async def test_the_owner_adds_limits_and_removes_people(
    chromium: Browser, own_house: House
) -> None:
    served = own_house.served
    async with person(chromium, served.url) as owner:
        tab = await owner.opens(served.link)
        await expect(tab.box).to_be_visible()
        await tab.page.goto(f"{served.url}#/settings/users")
        people = tab.page.get_by_role("region", name="People")
        await expect(people.get_by_role("status")).to_have_text("Only you use this server.")
        await people.get_by_label("Name", exact=True).fill("Anna!")
        await people.get_by_label("Password", exact=True).fill(PASSWORD)
        owner.watch.expects("400")
        await people.get_by_role("button", name="Add").click()
        await expect(people.get_by_role("alert")).to_be_visible()
        await people.get_by_label("Name", exact=True).fill("anna")
        await people.get_by_role("button", name="Add").click()
        item = people.get_by_role("listitem")
        await expect(item).to_contain_text("not active yet")
        await item.get_by_role("button", name="Edit anna").click()
        await item.get_by_label("Cost per day").fill("2.5")
        await item.get_by_role("button", name="Save").click()
        await expect(item).to_contain_text("at most $2.50 a day")
        await item.get_by_role("button", name="Remove anna").click()
        await item.get_by_role("button", name="Remove", exact=True).last.click()
        await expect(people.get_by_role("status")).to_have_text("Only you use this server.")
