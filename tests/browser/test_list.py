"""The list of sessions: what each is doing, finding one again, and keeping order."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.conftest import House
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.3")]


async def test_the_list_shows_live_what_every_session_is_doing(tab: Tab, house: House) -> None:
    stage = house.stage
    runs = stage.on("This one runs", Reply(text="Going on", fault="hang mid-stream", after=1))
    stage.on(
        "This one asks",
        Reply(calls=(Call("clarify", {"question": "Which?", "choices": ["A", "B"]}),)),
        Reply(text="Then A."),
    )
    stage.on("This one fails", Reply(status=401, message="no", code="invalid_api_key"))
    for words in ("This one runs", "This one asks", "This one fails"):
        await tab.begin(words)
    await expect(tab.session("This one runs")).to_contain_text("Running")
    await expect(tab.session("This one asks")).to_contain_text("Waiting for you")
    await expect(tab.session("This one fails")).to_contain_text("Failed")
    (await runs.held()).resume.set()
    await expect(tab.session("This one runs")).not_to_contain_text("Running")
    await tab.session("This one asks").get_by_role("button").first.click()
    await tab.asks.get_by_role("button", name="A", exact=True).click()
    await expect(tab.replies.last).to_have_text("Then A.")
    await expect(tab.session("This one asks")).not_to_contain_text("Waiting for you")


async def test_search_marks_what_it_found_and_opens_at_the_hit(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    filler = "\n\n".join(f"Paragraph {number} says nothing." for number in range(60))
    stage.on("Where is the treasure", Reply(text="The heliotrope stands by the well."))
    stage.on("Talk on", Reply(text=filler, chunk=400))
    await tab.begin("Where is the treasure")
    await tab.settles()
    await tab.say("Talk on")
    await expect(tab.transcript.get_by_text("Paragraph 59 says nothing.")).to_be_visible()
    await tab.settles()
    await tab.starts_anew()
    await tab.page.keyboard.press("Control+k")
    search = tab.page.get_by_role("dialog", name="Search")
    field = search.get_by_role("searchbox", name="Search all sessions")
    await expect(field).to_be_focused()
    hit = search.get_by_role("listitem").filter(has_text="heliotrope")
    await field.fill("heliotrope")
    await expect(hit.locator("mark")).to_have_text("heliotrope")
    await expect(hit).to_contain_text("Where is the treasure")
    await field.press("ArrowDown")
    await tab.page.keyboard.press("Enter")
    await expect(search).to_be_hidden()
    reply = tab.replies.filter(has_text="The heliotrope stands by the well.")
    await expect(reply).to_be_in_viewport()
    await expect(tab.button("Jump to latest")).to_be_visible()


async def test_a_row_that_moves_keeps_its_menu_and_the_title_that_is_typed(
    tab: Tab, stage: ScriptedReplies
) -> None:
    """When a turn begins or ends, its row goes to another group of the list."""
    runs = stage.on("Move about", Reply(text="Going on", fault="hang mid-stream", after=1))
    stage.on("And back", Reply(text="Here again."))
    await tab.begin("Move about")
    active = tab.list.get_by_role("region", name="Active").get_by_role("listitem")
    row = active.filter(has_text="Move about")
    await row.get_by_role("button", name="Actions for Move about").click()
    await row.get_by_role("button", name="Rename").click()
    title = tab.list.get_by_role("textbox", name="Title")
    await title.fill("Half a ti")
    (await runs.held()).resume.set()
    await tab.settles()
    await expect(active.filter(has=title)).to_have_count(0)
    await expect(title).to_have_value("Half a ti")
    await title.press_sequentially("tle")
    await title.press("Enter")
    await expect(tab.session("Half a title")).to_be_visible()
    await tab.session("Half a title").get_by_role("button", name="Actions for").click()
    pin = tab.session("Half a title").get_by_role("button", name="Pin", exact=True)
    await expect(pin).to_be_visible()
    await tab.say("And back")
    await expect(tab.replies.last).to_have_text("Here again.")
    await tab.settles()
    await expect(pin).to_be_visible()


async def test_a_session_that_is_deleted_elsewhere_takes_a_half_typed_title_along(
    tab: Tab, house: House, stage: ScriptedReplies
) -> None:
    """One that is imported later may have its id."""
    stage.on("Come back", Reply(text="Back."))
    await tab.begin("Come back")
    await tab.settles()
    row = tab.session("Come back")
    await row.get_by_role("button", name="Actions for Come back").click()
    await row.get_by_role("button", name="Rename").click()
    title = tab.list.get_by_role("textbox", name="Title")
    await title.fill("Half a ti")
    session = f"{house.served.url}api/sessions/{tab.session_id}"
    requests = tab.page.context.request
    origin = {"Origin": house.served.url.rstrip("/")}
    exported = await (await requests.get(f"{session}/export?format=json")).body()
    assert (await requests.delete(session, headers=origin)).ok
    await expect(title).to_have_count(0)
    address = f"{house.served.url}api/sessions/import?name=come.json"
    assert (await requests.post(address, data=exported, headers=origin)).ok
    await expect(row).to_be_visible()
    await expect(title).to_have_count(0)


async def test_a_session_is_renamed_pinned_archived_and_brought_back(
    tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Call me names", Reply(text="As you like."))
    await tab.begin("Call me names")
    await tab.settles()
    await tab.choose("Call me names", "Rename")
    title = tab.list.get_by_role("textbox", name="Title")
    await expect(title).to_have_value("Call me names")
    await title.fill("Something better")
    await title.press("Enter")
    await expect(tab.session("Something better")).to_be_visible()
    await expect(tab.page.get_by_role("heading", name="Something better")).to_be_visible()
    await tab.choose("Something better", "Pin")
    pinned = tab.list.get_by_role("region", name="Pinned")
    await expect(pinned).to_contain_text("Something better")
    await tab.choose("Something better", "Unpin")
    await expect(pinned).to_be_hidden()
    await tab.choose("Something better", "Archive")
    await expect(tab.session("Something better")).to_be_hidden()
    await tab.button("Archived").click()
    await expect(tab.session("Something better")).to_be_visible()
    await tab.choose("Something better", "Unarchive")
    await expect(tab.session("Something better")).to_be_hidden()
    await tab.button("Back to sessions").click()
    await expect(tab.session("Something better")).to_be_visible()


async def test_deleting_asks_first_and_the_session_is_gone_everywhere(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Forget me", Reply(text="Gladly."))
    await tab.begin("Forget me")
    await tab.settles()
    address = tab.page.url
    other = await somebody.opens(address)
    await expect(other.replies).to_have_text(["Gladly."])
    await tab.looks_here()
    await tab.choose("Forget me", "Delete")
    dialog = tab.page.get_by_role("dialog", name="Delete this session?")
    await expect(dialog).to_contain_text("“Forget me” and everything in it")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(tab.session("Forget me")).to_be_visible()
    await tab.choose("Forget me", "Delete")
    await dialog.get_by_role("button", name="Delete").click()
    for browser_tab in (tab, other):
        await expect(browser_tab.session("Forget me")).to_be_hidden()
        await expect(
            browser_tab.page.get_by_role("heading", name="What can I help with?")
        ).to_be_visible()
    somebody.watch.expects("404")
    late = await somebody.opens(address)
    await expect(late.page.get_by_text("This session no longer exists.")).to_be_visible()


async def test_a_new_session_begins_with_one_key(tab: Tab, stage: ScriptedReplies) -> None:
    stage.on("Before the key", Reply(text="Yes."))
    await tab.begin("Before the key")
    await tab.settles()
    await tab.transcript.focus()
    await tab.page.keyboard.press("n")
    await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    await expect(tab.box).to_be_focused()
    await expect(tab.box).to_have_value("")
