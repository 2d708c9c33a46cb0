"""What a person has typed is never lost, whatever fails: an edit, a queued message, an answer."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Locator, Route, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.test_phone import PHONE

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SENDS = re.compile(r"/api/sessions/[^/]+/messages$")
CHANGES = re.compile(r"/api/sessions/[^/]+/messages/[^/]+$")
MANY = 1_100_000


async def edits(tab: Tab) -> Locator:
    """Open the editor of the first message."""
    await tab.said.first.hover()
    await tab.transcript.get_by_role("button", name="Actions for this turn").first.click()
    await tab.button("Edit", exact=True).click()
    return tab.page.get_by_role("textbox", name="Edited message")


async def refuse(route: Route) -> None:
    """As a network does that is gone; what is only read is read."""
    if route.request.method == "GET":
        await route.continue_()
    else:
        await route.abort()


async def fill_with_many(field: Locator) -> None:
    """A key press for each would take minutes."""
    await field.evaluate(
        """(field, many) => {
          field.value = "x".repeat(many);
          field.dispatchEvent(new Event("input", { bubbles: true }));
        }""",
        MANY,
    )


@pytest.mark.promise("page20.5")
async def test_an_edit_that_cannot_be_sent_stays_in_its_editor(
    tab: Tab, house: House, somebody: Person
) -> None:
    somebody.watch.expects_outage()
    house.stage.on("Draw a cat", Reply(text="A cat."))
    house.stage.on("Draw a dog", Reply(text="A dog."))
    await tab.begin("Draw a cat")
    await tab.settles()
    editor = await edits(tab)
    await editor.fill("Draw a dog")
    await tab.page.route(SENDS, refuse)
    await editor.press("Enter")
    form = tab.page.get_by_role("form", name="Edit")
    await expect(form.get_by_role("alert")).to_contain_text("Your text is still here.")
    await expect(editor).to_have_value("Draw a dog")
    # Neither a reload nor another session takes it away.
    await tab.page.reload()
    await expect(editor).to_have_value("Draw a dog")
    address = tab.page.url
    await tab.starts_anew()
    await tab.page.goto(address)
    await expect(editor).to_have_value("Draw a dog")
    await expect(tab.box).to_be_focused()
    await tab.page.unroute(SENDS, refuse)
    await editor.press("Enter")
    await expect(tab.replies).to_have_text(["A dog."])
    await expect(editor).to_be_hidden()
    await expect(tab.box).to_be_focused()
    await tab.page.reload()
    await expect(tab.replies).to_have_text(["A dog."])
    await expect(editor).to_be_hidden()


@pytest.mark.promise("page20.5")
async def test_an_edit_is_still_there_when_the_question_about_files_is_closed(
    tab: Tab, house: House
) -> None:
    write = Call("write_file", {"path": "pets.txt", "content": "cat"})
    house.stage.on("Write a pet", Reply(calls=(write,)), Reply(text="Wrote it."))
    house.stage.on("Write no pet", Reply(text="I did not."))
    await tab.begin("Write a pet")
    await expect(tab.replies.last).to_contain_text("Wrote it.")
    await tab.settles()
    editor = await edits(tab)
    await editor.fill("Write no pet")
    dialog = tab.page.get_by_role("dialog", name="What about the changed files?")
    for leave in ("Escape", "Cancel"):
        await editor.press("Enter")
        await expect(dialog).to_be_visible()
        if leave == "Escape":
            await tab.page.keyboard.press("Escape")
        else:
            await dialog.get_by_role("button", name="Cancel").click()
        await expect(dialog).to_be_hidden()
        await expect(editor).to_have_value("Write no pet")
        await expect(editor).to_be_editable()
    await editor.press("Enter")
    await dialog.get_by_role("button", name="Revert the files").click()
    await expect(tab.replies).to_have_text(["I did not."])
    await expect(editor).to_be_hidden()


@pytest.mark.promise("page20.22")
async def test_an_edit_that_is_too_long_says_so_before_it_is_sent(tab: Tab, house: House) -> None:
    house.stage.on("Be brief", Reply(text="Yes."))
    house.stage.on("Take long", Reply(text="On and on", fault="hang mid-stream", after=3))
    await tab.begin("Be brief")
    await tab.settles()
    sent: list[str] = []
    tab.page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))
    editor = await edits(tab)
    await fill_with_many(editor)
    await editor.press("Enter")
    alert = tab.page.get_by_role("form", name="Edit").get_by_role("alert")
    await expect(alert).to_contain_text("1,100,000 characters")
    await editor.press("Escape")
    await tab.say("Take long")
    await tab.say("And then")
    await tab.button("Edit: And then").click()
    queued = tab.page.get_by_role("textbox", name="Queued message")
    await fill_with_many(queued)
    await queued.press("Enter")
    await expect(tab.queue.get_by_role("alert")).to_contain_text("1,100,000 characters")
    assert [request for request in sent if request.startswith("PATCH")] == []
    assert len([request for request in sent if request.startswith("POST")]) == 2
    await queued.press("Escape")
    await tab.stop.click()
    await tab.button("Stop and clear the queue").click()
    await tab.settles()


@pytest.mark.promise("page.4")
async def test_an_edit_of_a_queued_message_that_was_sent_meanwhile_is_in_the_message_box(
    tab: Tab, house: House
) -> None:
    part = house.stage.on("Be slow", Reply(text="Slowly", fault="hang mid-stream", after=1))
    house.stage.on("The old words", Reply(text="To the old words."))
    await tab.begin("Be slow")
    slow = await part.held()
    await tab.say("The old words")
    await tab.box.fill("and a draft")
    await tab.button("Edit: The old words").click()
    editor = tab.page.get_by_role("textbox", name="Queued message")
    await expect(editor).to_be_focused()
    await editor.fill("The new words")
    slow.resume.set()
    await expect(tab.replies.last).to_have_text("To the old words.")
    await expect(tab.box).to_have_value("The new words\n\nand a draft")
    note = tab.page.get_by_role("form", name="Message").get_by_role("alert")
    await expect(note).to_contain_text("was sent or removed before you saved it")
    await tab.box.press("End")
    await tab.box.type("!")
    await expect(note).to_be_hidden()


@pytest.mark.promise("page.4")
async def test_what_was_queued_comes_back_as_it_was_edited_also_if_not_all_of_it_can(
    tab: Tab, house: House, somebody: Person
) -> None:
    somebody.watch.expects_outage()
    house.stage.on("Be endless", Reply(text="Endless", fault="hang mid-stream", after=1))
    await tab.begin("Be endless")
    for words in ("First of all", "Second of all"):
        await tab.say(words)
        await expect(tab.queue).to_contain_text(words)
    await tab.button("Edit: First of all").click()
    editor = tab.page.get_by_role("textbox", name="Queued message")
    await editor.fill("First, but better")
    removals = 0

    async def only_one(route: Route) -> None:
        nonlocal removals
        removals += 1
        await (route.continue_() if removals == 1 else route.abort())

    await tab.page.route(CHANGES, only_one)
    await tab.stop.click()
    await tab.button("Stop and clear the queue").click()
    await expect(tab.box).to_have_value("First, but better")
    await expect(tab.queue).to_contain_text("Second of all")
    await expect(editor).to_be_hidden()
    await tab.page.unroute(CHANGES, only_one)
    await tab.stop.click()
    await tab.button("Stop and clear the queue").click()
    await tab.settles()
    await expect(tab.box).to_have_value("Second of all\n\nFirst, but better")


@pytest.mark.promise("page.6")
async def test_an_answer_to_a_question_that_is_closed_meanwhile_is_in_the_message_box(
    tab: Tab, house: House, somebody: Person
) -> None:
    house.stage.on("Ask me twice", Reply(calls=(Call("clarify", {"question": "Which one?"}),)))
    await tab.begin("Ask me twice")
    field = tab.asks.get_by_role("textbox", name="Answer")
    await field.fill("The one that I describe at length")
    await tab.page.reload()
    await expect(field).to_have_value("The one that I describe at length")
    await tab.stop.click()
    await expect(tab.asks).to_be_hidden()
    await expect(tab.box).to_have_value("The one that I describe at length")
    note = tab.page.get_by_role("form", name="Message").get_by_role("alert")
    await expect(note).to_contain_text("The question is closed.")


@pytest.mark.promise("page20.21")
async def test_on_a_phone_enter_makes_a_new_line_in_a_queued_message(
    chromium: Browser, house: House
) -> None:
    house.stage.on("Hold the line", Reply(text="Holding", fault="hang mid-stream", after=1))
    async with person(chromium, house.served.url, state=house.state, **PHONE) as somebody:
        tab = await somebody.opens()
        await tab.say("Hold the line")
        await expect(tab.stop).to_be_visible()
        await tab.say("A queued line")
        await tab.button("Edit: A queued line").click()
        editor = tab.page.get_by_role("textbox", name="Queued message")
        await editor.press("End")
        await editor.press("Enter")
        await editor.type("and another")
        await expect(editor).to_have_value("A queued line\nand another")
        await tab.button("Save").click()
        await expect(editor).to_be_hidden()
        await expect(tab.queue).to_contain_text("and another")
        await tab.stop.click()
        await tab.button("Stop and clear the queue").click()
        await tab.settles()


@pytest.mark.promise("page.3")
async def test_a_new_title_that_cannot_be_saved_stays_in_its_field(
    tab: Tab, house: House, somebody: Person
) -> None:
    somebody.watch.expects_outage()
    house.stage.on("Name me well", Reply(text="Well."))
    await tab.begin("Name me well")
    await tab.settles()
    await tab.choose("Name me well", "Rename")
    await tab.page.route(re.compile(r"/api/sessions/[^/]+$"), refuse)
    field = tab.page.get_by_role("textbox", name="Title")
    await field.fill("A better name")
    await field.press("Enter")
    await expect(tab.page.get_by_role("alert")).to_contain_text("Cannot reach the server.")
    await expect(field).to_have_value("A better name")
