"""Where one types: queueing, steering and stopping while a turn runs, and text that is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from playwright.async_api import Response, Route, expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.4")]


def saves_draft(response: Response) -> bool:
    return response.request.method == "PUT" and response.url.endswith("/draft")


def saves(text: str) -> Callable[[Response], bool]:
    """Of the drafts that are saved while a person types, this one."""
    return lambda response: saves_draft(response) and text in (response.request.post_data or "")


async def test_what_is_said_while_a_turn_runs_can_be_changed_until_its_turn_comes(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = stage.on("Work for long", Reply(text="Done.", fault="hang mid-stream", after=1))
    for words in ("then walk", "then rest"):
        stage.on(words, Reply(text=f"I {words}."))
    await tab.begin("Work for long")
    held = await part.held()
    for words in ("then run", "then sing", "then rest"):
        await tab.say(words)
        await expect(tab.queue).to_contain_text(words)
    waiting = tab.queue.get_by_role("listitem")
    await expect(waiting.first).to_contain_text("Next")
    await tab.button("Edit: then run").click()
    editor = tab.page.get_by_role("textbox", name="Queued message")
    await expect(editor).to_be_focused()
    await editor.fill("then walk")
    await editor.press("Enter")
    await expect(waiting.nth(0)).to_contain_text("then walk")
    await tab.button("Move up: then rest").click()
    await expect(waiting.nth(1)).to_contain_text("then rest")
    await tab.button("Move up: then rest").click()
    await expect(waiting.nth(0)).to_contain_text("then rest")
    await tab.button("Move down: then rest").click()
    await expect(waiting.nth(1)).to_contain_text("then rest")
    await tab.button("Remove: then sing").click()
    await expect(waiting).to_have_count(2)
    held.resume.set()
    await expect(tab.said).to_have_text(["Work for long", "then walk", "then rest"])
    await expect(tab.replies).to_have_text(["Done.", "I then walk.", "I then rest."])
    await expect(tab.queue).to_be_hidden()


async def test_a_steer_cuts_the_tool_that_runs_and_the_model_sees_it(
    tab: Tab, house: House
) -> None:
    with gate(house.served.workspace, "steered") as closed:
        house.stage.on("Go left", Reply(calls=(closed.call("going left"),)))
        steered = house.stage.on("Go right instead", Reply(text="I go right."))
        await tab.begin("Go left")
        await expect(tab.printed("terminal")).to_have_text("going left")
        await tab.say("Go right instead", "Control+Enter")
        await expect(tab.replies.last).to_have_text("I go right.")
    await expect(tab.call("terminal")).to_contain_text("Cancelled by your steer")
    await expect(tab.said.last).to_contain_text("Steered")
    messages = (await steered.request()).body["messages"]
    assert messages[-2]["role"] == "tool"
    assert "going left" in messages[-2]["content"]
    assert "Go right instead" in str(messages[-1]["content"])


@pytest.mark.promise("001.5")
async def test_escape_stops_the_turn_and_the_next_message_starts(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = stage.on(
        "Count to ten",
        Reply(text="one two three four", chunk=4, fault="hang mid-stream", after=3),
    )
    stage.on("Say hello", Reply(text="Hello."))
    await tab.begin("Count to ten")
    request = await part.held()
    await expect(tab.replies.first).to_contain_text("one two")
    await tab.box.press("Escape")
    await request.gone.wait()
    await expect(tab.transcript.get_by_text("Stopped by you")).to_be_visible()
    await expect(tab.replies.first).to_contain_text("one two")
    await expect(tab.replies.first).to_contain_text("The reply was cut off.")
    await tab.say("Say hello")
    await expect(tab.replies.last).to_have_text("Hello.")


async def test_a_draft_is_there_after_a_reload_and_in_another_tab(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Begin a draft", Reply(text="Begun."))
    await tab.begin("Begin a draft")
    await tab.settles()
    async with tab.page.expect_response(saves_draft):
        await tab.box.fill("half a thought")
    await tab.page.reload()
    await expect(tab.box).to_have_value("half a thought")
    other = await somebody.opens(tab.page.url)
    await expect(other.box).to_have_value("half a thought")
    stage.on("half a thought", Reply(text="And the other half."))
    async with other.page.expect_response(saves_draft):
        await other.box.press("Enter")
    await expect(other.replies.last).to_have_text("And the other half.")
    await tab.looks_here()
    await expect(tab.replies.last).to_have_text("And the other half.")
    await tab.page.reload()
    await expect(tab.replies.last).to_have_text("And the other half.")
    await expect(tab.box).to_have_value("")


async def test_what_could_not_be_sent_stays_and_is_sent_once(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Hear me", Reply(text="Yes?"))
    stage.on("Now say it", Reply(text="It is said."))
    await tab.begin("Hear me")
    await tab.settles()
    somebody.watch.expects_outage()
    await somebody.context.set_offline(True)
    await tab.say("Now say it")
    alert = tab.page.get_by_role("form", name="Message").get_by_role("alert")
    await expect(alert).to_contain_text("Your message was not sent. Your text is still here.")
    await expect(alert).to_contain_text("Cannot reach the server.")
    await expect(tab.box).to_have_value("Now say it")
    await somebody.context.set_offline(False)
    await tab.box.press("Enter")
    await expect(tab.replies).to_have_text(["Yes?", "It is said."])
    await expect(tab.said).to_have_text(["Hear me", "Now say it"])
    await expect(alert).to_be_hidden()
    await expect(tab.box).to_have_value("")


async def test_what_is_typed_while_a_session_opens_goes_on_in_that_session(
    tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Open slowly", Reply(text="Open."))
    held, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        held.set()
        await released.wait()
        await route.continue_()

    await tab.starts_anew()
    await tab.page.route("**/api/sessions/*/messages", hold)
    await tab.say("Open slowly")
    await held.wait()
    await tab.page.keyboard.type(" and then")
    released.set()
    await expect(tab.replies).to_have_text(["Open."])
    await expect(tab.box).to_have_value(" and then")
    await tab.starts_anew()
    await expect(tab.box).to_have_value("")


async def test_what_is_typed_for_a_session_that_is_not_there_yet_is_there_when_the_page_is_again(
    tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("The first words", Reply(text="Heard."))
    await tab.starts_anew()
    await tab.box.fill("The first words")
    await tab.page.reload()
    await expect(tab.box).to_have_value("The first words")
    await tab.box.press("Enter")
    await expect(tab.replies).to_have_text(["Heard."])
    await tab.starts_anew()
    await expect(tab.box).to_have_value("")
    await tab.page.reload()
    await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    await expect(tab.box).to_have_value("")


async def test_what_is_typed_while_a_session_loads_is_there_however_often_the_page_is_left(
    tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Load slowly", Reply(text="Loaded."))
    await tab.begin("Load slowly")
    await tab.settles()
    async with tab.page.expect_response(saves_draft):
        await tab.box.fill("known before, ")
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await tab.page.route(f"**/api/sessions/{tab.session_id}", hold)
    await tab.page.reload()
    await tab.box.press_sequentially("typed at once")
    await tab.page.reload()
    await expect(tab.box).to_have_value("typed at once")
    await tab.box.press("End")
    await tab.box.press_sequentially(" and again")
    # Elsewhere and back: still nobody knows what was saved.
    here = tab.page.url
    await tab.starts_anew()
    await expect(tab.box).to_have_value("")
    await tab.page.goto(here)
    await expect(tab.box).to_have_value("typed at once and again")
    await tab.page.reload()
    released.set()
    async with tab.page.expect_response(saves("typed at once and again")):
        await expect(tab.replies).to_have_text(["Loaded."])
    await expect(tab.box).to_have_value("known before, typed at once and again")
    # It is saved now, and nothing of it is added again.
    await tab.page.reload()
    await expect(tab.replies).to_have_text(["Loaded."])
    await expect(tab.box).to_have_value("known before, typed at once and again")


async def test_what_could_not_be_saved_is_there_when_the_page_is_again(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Lose the line", Reply(text="Lost?"))
    await tab.begin("Lose the line")
    await tab.settles()
    somebody.watch.expects_outage()
    refused = asyncio.Event()

    async def refuse(route: Route) -> None:
        refused.set()
        await route.abort()

    await tab.page.route("**/draft", refuse)
    await tab.box.fill("only here so far")
    await refused.wait()
    await tab.page.reload()
    await expect(tab.replies).to_have_text(["Lost?"])
    await expect(tab.box).to_have_value("only here so far")
    await tab.page.unroute("**/draft")
    async with tab.page.expect_response(saves("and now there")):
        await tab.box.press("End")
        await tab.box.press_sequentially(" and now there")
    other = await somebody.opens(tab.page.url)
    await expect(other.box).to_have_value("only here so far and now there")


async def test_a_message_of_several_lines_is_typed_with_shift(
    tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("second line", Reply(text="Two lines."))
    await tab.starts_anew()
    await tab.box.fill("first line")
    await tab.box.press("Shift+Enter")
    await tab.box.press_sequentially("second line")
    await tab.box.press("Enter")
    await expect(tab.replies).to_have_text(["Two lines."])
    assert await tab.said.inner_text() == "first line\nsecond line"


async def test_nothing_that_was_entered_is_lost_when_the_next_text_takes_its_place(
    tab: Tab, stage: ScriptedReplies
) -> None:
    entered = ["quick 1", "quick 10", "another one", "quick 100"]
    stage.on("Begin in haste again", Reply(text="Yes."))
    for words in entered:
        stage.on(words, Reply(text=f"Answer to {words}."))
    await tab.begin("Begin in haste again")
    await tab.settles()
    held, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        held.set()
        await released.wait()
        await route.continue_()

    await tab.page.route("**/api/sessions/*/messages", hold)
    await tab.say(entered[0])
    await held.wait()
    for words in entered[1:]:
        await tab.box.press("Control+A")
        await tab.page.keyboard.insert_text(words)
        await tab.page.keyboard.press("Enter")
    await tab.box.press("Control+A")
    await tab.page.keyboard.insert_text("not entered")
    released.set()
    await expect(tab.replies.last).to_have_text("Answer to quick 100.")
    await expect(tab.said).to_have_text(["Begin in haste again", *entered])
    await expect(tab.box).to_have_value("not entered")


async def test_what_is_entered_while_a_message_is_on_its_way_follows_it(
    tab: Tab, stage: ScriptedReplies
) -> None:
    for words in ("Begin in haste", "first of them", "second of them"):
        stage.on(words, Reply(text=f"Answer to {words}."))
    await tab.begin("Begin in haste")
    await tab.settles()
    held, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        held.set()
        await released.wait()
        await route.continue_()

    await tab.page.route("**/api/sessions/*/messages", hold)
    await tab.say("first of them")
    await held.wait()
    await tab.page.keyboard.type("second of them")
    await tab.page.keyboard.press("Enter")
    await tab.page.keyboard.type("and not yet this")
    released.set()
    await expect(tab.replies.last).to_have_text("Answer to second of them.")
    await expect(tab.said).to_have_text(["Begin in haste", "first of them", "second of them"])
    await expect(tab.box).to_have_value("and not yet this")
