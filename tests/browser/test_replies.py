"""Answers and messages a second time: regenerate, edit, try again, and the way back to each."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Locator, Route, expect

from keryx.testing.modelserver import Call, RefusedError, Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

SPOKEN = """
window.spoken = [];
Object.defineProperty(window, "speechSynthesis", { value: {
  speak: (words) => { window.spoken.push(words.text); window.words = words; },
  cancel: () => undefined,
}});
window.SpeechRecognition = class {
  start() { window.hearing = this; }
  stop() { this.onend(); }
};
"""


def actions(tab: Tab) -> Locator:
    return tab.transcript.get_by_role("group", name="Actions for this answer").last


async def open_menu(tab: Tab) -> None:
    message = tab.said.last
    await message.hover()
    await tab.transcript.get_by_role("button", name="Actions for this turn").last.click()


@pytest.mark.promise("page20.5")
async def test_an_answer_is_regenerated_and_the_old_one_is_an_arrow_away(
    tab: Tab, house: House, somebody: Person
) -> None:
    replies = (Reply(text="The first answer."), Reply(text="The second answer."))
    house.stage.on("Name a colour", *replies, Reply(text="The third answer."))
    await tab.begin("Name a colour")
    await expect(tab.replies).to_have_text(["The first answer."])
    await tab.settles()
    await actions(tab).get_by_role("button", name="Regenerate", exact=True).click()
    await expect(tab.replies).to_have_text(["The second answer."])
    await tab.settles()
    await expect(actions(tab)).to_contain_text("2 of 2")
    await actions(tab).get_by_role("button", name="Previous answer").click()
    await expect(tab.replies).to_have_text(["The first answer."])
    await expect(actions(tab)).to_contain_text("1 of 2")
    await expect(actions(tab).get_by_role("button", name="Previous answer")).to_be_disabled()
    # It is a fact: whoever comes later sees the same, and the session goes on from it.
    other = await somebody.opens(tab.page.url)
    await expect(other.replies).to_have_text(["The first answer."])
    await expect(actions(other)).to_contain_text("1 of 2")
    follow_up = house.stage.on("Why that one?", Reply(text="Because."))
    await tab.say("Why that one?")
    await expect(tab.replies).to_have_text(["The first answer.", "Because."])
    words = str((await follow_up.request()).body["messages"])
    assert "The first answer." in words
    assert "The second answer." not in words
    await tab.settles()
    first = tab.transcript.get_by_role("group", name="Actions for this answer").first
    await tab.replies.first.hover()
    await first.get_by_role("button", name="Next answer").click()
    await expect(tab.replies).to_have_text(["The second answer."])
    await expect(other.replies).to_have_text(["The second answer."])


@pytest.mark.promise("page20.5")
async def test_an_answer_is_regenerated_with_another_model_or_in_a_fork(
    tab: Tab, house: House
) -> None:
    replies = (Reply(text="One."), Reply(text="Two."), Reply(text="Three."))
    house.stage.on("Count for me", *replies)
    await tab.begin("Count for me")
    await tab.settles()
    others = actions(tab).get_by_role("button", name="Regenerate with…")
    ways = actions(tab).get_by_role("combobox", name="Regenerate with…")
    await others.click()
    await expect(ways).to_be_focused()
    assert "openai:test-model" in await ways.locator("option").all_inner_texts()
    await ways.select_option("openai:test-model")
    await expect(tab.replies).to_have_text(["Two."])
    await tab.settles()
    before = tab.session_id
    await others.click()
    await ways.select_option("In a fork")
    await expect(tab.replies).to_have_text(["Three."])
    assert tab.session_id != before
    await expect(actions(tab)).to_contain_text("3 of 3")


@pytest.mark.promise("page20.5")
async def test_a_sent_message_is_edited_and_sent_again(tab: Tab, house: House) -> None:
    house.stage.on("Spell colour", Reply(text="C-o-l-o-u-r."))
    house.stage.on("Spell honour", Reply(text="H-o-n-o-u-r."))
    house.stage.on("And then?", Reply(text="Nothing."))
    await tab.begin("Spell colour")
    await tab.settles()
    await tab.say("And then?")
    await expect(tab.replies).to_have_count(2)
    await tab.settles()
    await tab.said.first.hover()
    await tab.transcript.get_by_role("button", name="Actions for this turn").first.click()
    await tab.button("Edit", exact=True).click()
    field = tab.page.get_by_role("textbox", name="Edited message")
    await expect(field).to_be_focused()
    await field.press("Escape")
    await expect(field).to_be_hidden()
    await tab.said.first.hover()
    await tab.transcript.get_by_role("button", name="Actions for this turn").first.click()
    await tab.button("Edit", exact=True).click()
    await field.fill("Spell honour")
    await field.press("Enter")
    await expect(tab.said).to_have_text(["Spell honour"])
    await expect(tab.replies).to_have_text(["H-o-n-o-u-r."])
    await tab.settles()
    await actions(tab).get_by_role("button", name="Previous answer").click()
    await expect(tab.said).to_have_text(["Spell colour", "And then?"])


@pytest.mark.promise("page20.5")
async def test_what_becomes_of_changed_files_is_asked(tab: Tab, house: House) -> None:
    file = house.served.workspace / "colours.txt"
    write = Call("write_file", {"path": "colours.txt", "content": "red"})
    house.stage.on(
        "Write a colour", Reply(calls=(write,)), Reply(text="Wrote it."), Reply(text="No.")
    )
    await tab.begin("Write a colour")
    await expect(tab.replies.last).to_contain_text("Wrote it.")
    await tab.settles()
    assert file.read_text() == "red"
    await actions(tab).get_by_role("button", name="Regenerate", exact=True).click()
    dialog = tab.page.get_by_role("dialog", name="What about the changed files?")
    await expect(dialog).to_contain_text("colours.txt")
    await dialog.get_by_role("button", name="Revert the files").click()
    await expect(tab.replies).to_have_text(["No."])
    assert not file.exists()


@pytest.mark.promise("page20.5")
async def test_a_turn_that_failed_is_tried_again(tab: Tab, house: House) -> None:
    def refuse() -> Reply:
        raise RefusedError("the key has expired", code="invalid_api_key")

    part = house.stage.on("Try me", Reply(text="It worked."))
    take, failures = part.take, [refuse]
    part.take = lambda request: failures.pop()() if failures else take(request)
    await tab.begin("Try me")
    again = tab.button("Try again")
    await expect(again).to_be_enabled()
    await again.click()
    await expect(tab.replies).to_have_text(["It worked."])
    await expect(again).to_be_hidden()


@pytest.mark.promise("page20.6")
async def test_an_answer_is_copied_and_read_aloud(tab: Tab, house: House, somebody: Person) -> None:
    await somebody.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await tab.page.add_init_script(SPOKEN)
    await tab.page.reload()
    house.stage.on("Say it nicely", Reply(text="Some **bold** words.\n\n- one"))
    await tab.begin("Say it nicely")
    await tab.settles()
    read = "navigator.clipboard.readText()"
    await actions(tab).get_by_role("button", name="Copy", exact=True).click()
    assert await tab.page.evaluate(read) == "Some **bold** words.\n\n- one"
    await actions(tab).get_by_role("button", name="Copy as text").click()
    assert await tab.page.evaluate(read) == "Some bold words.\n\n- one"
    await actions(tab).get_by_role("button", name="Read aloud").click()
    assert await tab.page.evaluate("window.spoken") == ["Some bold words.\n\n- one"]
    await tab.page.evaluate("window.words.onend()")
    await expect(actions(tab).get_by_role("button", name="Read aloud")).to_be_visible()
    await tab.box.fill("I think")
    await tab.button("Dictate").click()
    heard = "window.hearing.onresult({ results: [[{ transcript: 'it is so' }]] })"
    await tab.page.evaluate(heard)
    await expect(tab.box).to_have_value("I think it is so")
    await tab.button("Stop dictating").click()
    await expect(tab.button("Dictate")).to_be_visible()


@pytest.mark.promise("page20.6")
async def test_where_the_browser_has_no_voice_nothing_is_offered(tab: Tab, house: House) -> None:
    await tab.page.add_init_script(
        "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;"
        "delete window.speechSynthesis; delete Window.prototype.speechSynthesis;"
    )
    await tab.page.reload()
    house.stage.on("Say it silently", Reply(text="Hush."))
    await tab.begin("Say it silently")
    await tab.settles()
    await expect(actions(tab).get_by_role("button", name="Regenerate", exact=True)).to_be_visible()
    await expect(tab.button("Read aloud")).to_be_hidden()
    await expect(tab.button("Dictate")).to_be_hidden()


@pytest.mark.promise("page20.6")
async def test_undo_puts_the_words_back_into_the_message_box(tab: Tab, house: House) -> None:
    house.stage.on("Words to keep", Reply(text="Yes."))
    await tab.starts_anew()
    await tab.page.locator("input[type=file]").set_input_files(
        {"name": "note.txt", "mimeType": "text/plain", "buffer": b"a note"}
    )
    await expect(tab.page.get_by_role("list", name="Attached files")).to_contain_text("6 B")
    await tab.say("Words to keep")
    await expect(tab.replies).to_have_text(["Yes."])
    await tab.settles()
    await open_menu(tab)
    await tab.button("Undo this turn").click()
    await tab.page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
    await expect(tab.replies).to_have_count(0)
    await expect(tab.box).to_have_value("Words to keep")
    await expect(tab.page.get_by_role("list", name="Attached files")).to_contain_text("note.txt")


@pytest.mark.promise("page20.6")
async def test_stop_asks_what_becomes_of_the_queue(tab: Tab, house: House) -> None:
    house.stage.on(
        "Never ends", *(Reply(text="On and on and on", fault="hang mid-stream", after=3),) * 2
    )
    house.stage.on("Queued one", Reply(text="Done one."))
    await tab.begin("Never ends")
    await expect(tab.replies.last).to_contain_text("On and on")
    await tab.say("Queued one")
    await expect(tab.queue).to_contain_text("Queued one")
    await tab.box.press("Escape")
    question = tab.page.get_by_role(
        "group", name="Stop the turn. Send the queued message afterwards?"
    )
    await expect(question.get_by_role("button", name="Stop, then send it")).to_be_focused()
    # Escape leaves the question, and everything goes on.
    await tab.page.keyboard.press("Escape")
    await expect(question).to_be_hidden()
    await expect(tab.stop).to_be_visible()
    await tab.stop.click()
    await tab.page.keyboard.press("Tab")
    await tab.page.keyboard.press("Enter")
    await tab.settles()
    await expect(tab.box).to_have_value("Queued one")
    await expect(tab.queue).to_be_hidden()
    await tab.say("Never ends, again")
    await expect(tab.stop).to_be_visible()
    await tab.say("Queued one")
    await expect(tab.queue).to_contain_text("Queued one")
    await tab.stop.click()
    await tab.page.keyboard.press("Enter")
    await expect(tab.replies.last).to_contain_text("Done one.")


@pytest.mark.promise("page20.6")
async def test_stop_asks_nothing_more_once_the_queue_is_empty(tab: Tab, house: House) -> None:
    house.stage.on("Never ends", Reply(text="On and on and on", fault="hang mid-stream", after=3))
    await tab.begin("Never ends")
    await expect(tab.replies.last).to_contain_text("On and on")
    await tab.say("Queued one")
    await expect(tab.queue).to_contain_text("Queued one")
    removals: asyncio.Queue[Route] = asyncio.Queue()
    await tab.page.route("**/api/sessions/*/messages/*", removals.put)
    await tab.button("Remove: Queued one").click()
    # The removal is on its way when Stop is pressed.
    removal = await removals.get()
    await tab.stop.click()
    question = tab.page.get_by_role("group", name="Stop the turn. Send the")
    await expect(question).to_be_visible()
    await removal.continue_()
    await expect(tab.transcript.get_by_text("Stopped by you")).to_be_visible()
    await expect(question).to_be_hidden()
    await expect(tab.queue).to_be_hidden()
