"""The start of a session: what a person sees before the first message, and what opens by itself."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Route, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Tab
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.20")]


async def test_an_example_fills_the_box_and_a_draft_is_never_replaced(tab: Tab) -> None:
    await tab.starts_anew()
    examples = tab.page.get_by_role("list", name="Examples")
    await expect(examples.get_by_role("button")).to_have_count(3)
    first = examples.get_by_role("button").first
    text = await first.inner_text()
    await first.click()
    await expect(tab.box).to_have_value(text)
    await expect(tab.box).to_be_focused()
    await expect(examples).to_have_count(0)
    await tab.box.fill("")
    await expect(examples).to_be_visible()


async def test_the_chips_choose_the_model_and_the_folder(tab: Tab, house: House) -> None:
    other = house.served.workspace / "other"
    other.mkdir()
    await tab.starts_anew()
    await expect(tab.page.get_by_role("combobox", name="Approvals")).to_have_count(0)
    await tab.button("Folder:").click()
    field = tab.page.get_by_role("combobox", name="Workspace")
    await field.fill(str(other))
    await field.press("Enter")
    await expect(tab.button(f"Folder: {other}")).to_have_text("other")
    house.stage.on("Where am I?", Reply(text="There."))
    await tab.say("Where am I?")
    await expect(tab.replies.last).to_have_text("There.")
    chip = tab.page.get_by_role("button", name=f"Workspace: {other}")
    await expect(chip).to_be_visible()


async def test_a_folder_that_is_typed_while_the_choices_come_stays(tab: Tab, house: House) -> None:
    other = house.served.workspace / "typed"
    other.mkdir()
    may_come = asyncio.Event()

    async def answer_late(route: Route) -> None:
        await may_come.wait()
        await route.continue_()

    await tab.starts_anew()
    await tab.page.route("**/api/profiles", answer_late)
    await tab.page.reload()
    await tab.button("Folder:").click()
    field = tab.page.get_by_role("combobox", name="Workspace")
    await field.fill(str(other))
    async with tab.page.expect_response("**/api/profiles"):
        may_come.set()
    await expect(field).to_have_attribute("placeholder", str(house.served.workspace))
    await expect(field).to_have_value(str(other))
    await field.press("Enter")
    await expect(tab.button(f"Folder: {other}")).to_have_text("typed")


async def loads_without_its_setup(tab: Tab) -> asyncio.Event:
    """Load the page anew; what is configured comes when the event is set."""
    may_come = asyncio.Event()

    async def answer_late(route: Route) -> None:
        await may_come.wait()
        await route.continue_()

    await tab.starts_anew()
    await tab.page.route("**/api/setup", answer_late)
    await tab.page.reload()
    await expect(tab.box).to_be_focused()
    return may_come


async def test_the_focus_stays_where_a_person_put_it_while_the_page_loads(tab: Tab) -> None:
    may_come = await loads_without_its_setup(tab)
    search = tab.list.get_by_role("button", name="Search")
    await search.focus()
    may_come.set()
    await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    await expect(search).to_be_focused()
    await search.press("Enter")
    await expect(tab.page.get_by_role("dialog", name="Search")).to_be_visible()


async def test_a_draft_that_is_typed_while_the_page_loads_goes_on(tab: Tab) -> None:
    may_come = await loads_without_its_setup(tab)
    await tab.page.keyboard.type("Half a ")
    may_come.set()
    await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    await expect(tab.box).to_be_focused()
    await tab.page.keyboard.type("sentence")
    await expect(tab.box).to_have_value("Half a sentence")


async def test_the_inspector_opens_when_there_is_something_in_it(tab: Tab, house: House) -> None:
    house.stage.on("Just talk", Reply(text="Talking."))
    house.stage.on(
        "Now work",
        Reply(calls=(Call("terminal", {"command": "echo worked"}),)),
        Reply(text="Worked."),
    )
    inspector = tab.page.get_by_role("complementary", name="Inspector")
    await tab.begin("Just talk")
    await expect(tab.replies.last).to_have_text("Talking.")
    await expect(inspector).to_have_count(0)
    await tab.say("Now work")
    await expect(inspector).to_be_visible()
    await expect(tab.replies.last).to_have_text("Worked.")
    # It opens with the newest call, whoever made it, and at once where calls are old.
    await expect(inspector.get_by_role("group", name="Arguments")).to_contain_text("echo worked")
    await tab.settles()
    await tab.say("!echo by hand")
    await expect(inspector.get_by_role("group", name="Result")).to_contain_text("by hand")
    await tab.page.reload()
    await expect(inspector.get_by_role("group", name="Result")).to_contain_text("by hand")


async def test_many_alike_calls_fold_when_they_are_done(tab: Tab, house: House) -> None:
    (house.served.workspace / "page.txt").write_text("a page")
    read = Call("read_file", {"path": "page.txt"})
    house.stage.on(
        "Read it often",
        Reply(calls=(*[read] * 7, Call("read_file", {"path": "missing.txt"}))),
        Reply(text="Read."),
    )
    await tab.begin("Read it often")
    await expect(tab.replies.last).to_have_text("Read.")
    line = tab.transcript.get_by_role("button", name="read_file 7 calls, all done")
    await expect(line).to_be_visible()
    # What failed is seen beside the line.
    await expect(tab.call("read_file")).to_have_count(1)
    await line.click()
    await expect(tab.call("read_file")).to_have_count(8)
