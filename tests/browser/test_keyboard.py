"""A whole session with no mouse; the focus is seen, and comes back from wherever it was taken."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Route, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.command_gate import Gate, gate
from tests.browser.conftest import House
from tests.browser.keyboard_user import COUNT, Hands
from tests.browser.scripted_replies import Part, ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.9")]


@pytest_asyncio.fixture(loop_scope="module")
async def hands(somebody: Person) -> AsyncGenerator[tuple[Tab, Hands]]:
    await somebody.context.add_init_script(COUNT)
    tab = await somebody.opens()
    await expect(tab.box).to_be_focused()
    hands = Hands(tab)
    yield tab, hands
    assert hands.lost == []
    assert await hands.touched() == 0


def script(stage: ScriptedReplies, left: Gate, right: Gate) -> Part:
    """What the model says in a session that has everything in it; the steered reply hangs."""
    stage.on("Begin with keys", Reply(calls=(left.call("left waits"), right.call("right waits"))))
    steered = stage.on("Rather this", Reply(text="As you say", fault="hang mid-stream", after=1))
    remove = Call("terminal", {"command": 'rm -rf "$TMPDIR/by-keys"; rmdir old-folder'})
    stage.on("then remove", Reply(calls=(remove,)), Reply(text="Removed."))
    write = Call("write_file", {"path": "by-keys.txt", "content": "typed\n"})
    stage.on("then write", Reply(calls=(write,)), Reply(text="Written."))
    return steered


async def queues_and_cancels(tab: Tab, hands: Hands) -> None:
    await expect(tab.printed("terminal").nth(1)).to_have_text("right waits")
    for words in ("then write", "then remove"):
        await hands.type(words)
        await expect(tab.queue).to_contain_text(words)
    waiting = tab.queue.get_by_role("listitem")
    await hands.do(tab.button("Move up: then remove"), "Shift+Tab")
    await expect(waiting.first).to_contain_text("then remove")
    # Its button is gone, since there is nothing above it; its line has the focus now.
    await expect(waiting.first).to_be_focused()
    calls = tab.call("terminal")
    await hands.do(calls.nth(0).get_by_role("button", name="Cancel terminal"), "Shift+Tab")
    await expect(calls.nth(0)).to_contain_text("Cancelled by you")
    await expect(calls.nth(1)).to_contain_text("Running")
    await expect(tab.page.locator("body")).not_to_be_focused()
    await hands.reach(tab.box)


async def steers_and_stops(tab: Tab, hands: Hands, steered: Part) -> None:
    await hands.type("Rather this", "Control+Enter")
    await steered.held()
    await expect(tab.call("terminal").nth(1)).to_contain_text("Cancelled by your steer")
    await hands.press("Escape")
    choice = tab.page.get_by_role("button", name="Stop, then send")
    await hands.do(choice)
    await expect(tab.transcript.get_by_text("Stopped by you")).to_be_visible()


async def answers(tab: Tab, hands: Hands) -> None:
    await hands.do(tab.asks.get_by_role("button", name="Allow once"), "Shift+Tab")
    await expect(tab.replies.filter(has_text="Removed.")).to_be_visible()
    await expect(tab.box).to_be_focused()
    await expect(tab.replies.last).to_have_text("Written.")
    await tab.settles()


async def reverts(tab: Tab, hands: Hands) -> None:
    inspector = tab.page.get_by_role("complementary", name="Inspector")
    await hands.reach(inspector.get_by_role("tab", name="Call"))
    await hands.press("ArrowRight", "ArrowRight")
    await expect(inspector.get_by_role("tab", name="Changes")).to_be_focused()
    await hands.do(inspector.get_by_role("button", name="Revert all"))
    dialog = tab.page.get_by_role("dialog", name="Revert 1 file?")
    await hands.do(dialog.get_by_role("button", name="Revert"))
    await expect(dialog).to_be_hidden()
    await expect(inspector).to_contain_text("No changes are left")
    await expect(tab.page.locator("body")).not_to_be_focused()


async def test_a_whole_session_is_had_without_a_mouse(
    hands: tuple[Tab, Hands], house: House
) -> None:
    tab, by_hand = hands
    workspace = house.served.workspace
    (workspace / "old-folder").mkdir()
    with gate(workspace, "left-key") as left, gate(workspace, "right-key") as right:
        steered = script(house.stage, left, right)
        await by_hand.type("Begin with keys")
        await queues_and_cancels(tab, by_hand)
        await steers_and_stops(tab, by_hand, steered)
    await answers(tab, by_hand)
    assert not (workspace / "old-folder").exists()
    assert (workspace / "by-keys.txt").exists()
    await reverts(tab, by_hand)
    assert not (workspace / "by-keys.txt").exists()

    # A fork of it, from the menu of its first turn.
    first = tab.page.url
    dots = tab.transcript.get_by_role("button", name="Actions for this turn").first
    await by_hand.do(dots, "Shift+Tab")
    await by_hand.do(tab.transcript.get_by_role("button", name="Fork from here"))
    await expect(tab.page).not_to_have_url(first)
    await expect(tab.said).to_have_text(["Begin with keys", "SteeredRather this"])
    await expect(tab.box).to_be_focused()

    # Found again by its words.
    await by_hand.press("Control+k")
    async with tab.page.expect_response(re.compile(r"\bsearch=Written\b")):
        await tab.page.keyboard.type("Written")
    # There may be other hits before it: what a call wrote, and what was asked for.
    hits = tab.page.get_by_role("dialog", name="Search").locator(".search-dialog-hits button")
    hit = hits.filter(has_text="reply").filter(has_text="Written.")
    await expect(hit).to_have_count(1)
    await by_hand.reach(hit, "ArrowDown")
    await by_hand.press("Enter")
    await expect(tab.page).to_have_url(re.compile(re.escape(first)))
    await expect(tab.replies.last).to_have_text("Written.")


async def test_sessions_are_begun_and_opened_from_the_list_by_keys(
    hands: tuple[Tab, Hands], house: House
) -> None:
    tab, by_hand = hands
    house.stage.on("The one to find", Reply(text="Here I am."))
    await by_hand.type("The one to find")
    await expect(tab.replies).to_have_text(["Here I am."])
    await tab.settles()
    await by_hand.back(tab.transcript)
    await by_hand.press("n")
    await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    await expect(tab.box).to_be_focused()
    line = tab.session("The one to find")
    await by_hand.do(line.get_by_role("button").first, "Shift+Tab")
    await expect(tab.replies).to_have_text(["Here I am."])
    await expect(tab.box).to_be_focused()
    await by_hand.back(line.get_by_role("button", name="Actions for The one to find"))
    await by_hand.press("Enter")
    await by_hand.do(line.get_by_role("button", name="Pin"))
    await expect(tab.list.get_by_role("region", name="Pinned")).to_contain_text("The one to find")


async def test_a_dialog_gives_the_focus_back_to_what_opened_it(
    hands: tuple[Tab, Hands], house: House
) -> None:
    tab, by_hand = hands
    house.stage.on("Open and close", Reply(text="Opened."))
    await by_hand.type("Open and close")
    await expect(tab.replies).to_have_text(["Opened."])
    await tab.settles()

    async def leaves(dialog: str, opener: Locator) -> None:
        await expect(tab.page.get_by_role("dialog", name=dialog)).to_be_visible()
        await by_hand.press("Escape")
        await expect(tab.page.get_by_role("dialog")).to_have_count(0)
        await expect(opener).to_be_focused()

    await by_hand.press("Control+k")
    await leaves("Search", tab.box)
    await by_hand.type("/help")
    await leaves("Commands and keys", tab.box)
    dots = tab.transcript.get_by_role("button", name="Actions for this turn")
    await by_hand.do(dots, "Shift+Tab")
    undo = tab.transcript.get_by_role("button", name="Undo this turn")
    await by_hand.do(undo)
    await leaves("Undo this turn?", undo)
    await by_hand.press("Escape")
    await expect(dots).to_be_focused()
    settings = tab.button("Session settings")
    await by_hand.do(settings, "Shift+Tab")
    models = tab.button("Models…")
    await by_hand.do(models)
    await leaves("Choose a model", models)
    await by_hand.press("Escape")
    await expect(tab.page.get_by_role("region", name="Session settings")).to_be_hidden()
    await expect(settings).to_be_focused()
    usage = tab.page.get_by_role("main").get_by_role("button", name="Usage")
    await by_hand.do(usage, "Shift+Tab")
    await leaves("Usage", usage)


@pytest.mark.parametrize("wish", ["reduce", "no-preference"])
async def test_nothing_moves_for_those_who_do_not_want_it(
    chromium: Browser, house: House, wish: str
) -> None:
    state, url = house.state, house.served.url
    with gate(house.served.workspace, f"moving-{wish}") as moving:
        words = f"Move if {wish}"
        house.stage.on(words, Reply(calls=(moving.call("moves"),)), Reply(text="Moved."))
        async with person(chromium, url, state=state, reduced_motion=wish) as somebody:
            tab = await somebody.opens()
            await tab.begin(words)
            await expect(tab.printed("terminal")).to_have_text("moves")
            count = await tab.page.evaluate("document.getAnimations().length")
            assert (count == 0) == (wish == "reduce")
            moving.open()
            await expect(tab.replies.last).to_have_text("Moved.")


async def test_words_typed_right_after_a_key_land_where_that_key_leads(
    hands: tuple[Tab, Hands], house: House
) -> None:
    tab, by_hand = hands
    house.stage.on("Type in a hurry", Reply(text="No hurry."))
    await by_hand.type("Type in a hurry")
    await expect(tab.replies).to_have_text(["No hurry."])
    await tab.settles()
    for _ in range(5):
        await by_hand.press("Control+k")
        await tab.page.keyboard.type("no hurry")
        words = tab.page.get_by_role("searchbox", name="Search all sessions")
        await expect(words).to_have_value("no hurry")
        await expect(tab.box).to_have_value("")
        await by_hand.press("Escape")
        await tab.page.keyboard.type("afterwards")
        await expect(tab.box).to_have_value("afterwards")
        await tab.page.keyboard.press("Control+a")
        await by_hand.press("Delete")

    # The key that asks for a dialog does nothing in it.
    helps = tab.page.get_by_role("dialog", name="Commands and keys")
    for words in ("/help", "/help "):
        await by_hand.type(words)
        await expect(helps.get_by_role("button", name="Close")).to_be_focused()
        await by_hand.press("Enter")
        await expect(helps).to_be_hidden()
        await expect(tab.box).to_be_focused()

    # Nor does the key that chooses a hit do anything in the box.
    await by_hand.press("Control+k")
    await tab.page.keyboard.type("no hurry")
    await expect(tab.page.locator(".search-dialog-hits button").first).to_contain_text("No hurry")
    await by_hand.press("Enter")
    await expect(tab.transcript.get_by_role("group", name="Search result")).to_be_focused()
    await expect(tab.box).to_have_value("")


async def test_what_is_typed_while_a_session_loads_is_meant_for_it(
    hands: tuple[Tab, Hands], house: House
) -> None:
    tab, by_hand = hands
    house.stage.on("Load slowly", Reply(text="Loaded."))
    early = house.stage.on("nice ink: early", Reply(text="Early."))
    await by_hand.type("Load slowly")
    await expect(tab.replies).to_have_text(["Loaded."])
    await tab.settles()
    view = re.compile(rf"/api/sessions/{tab.session_id}$")
    async with tab.page.expect_response(re.compile("/draft$")):
        await tab.page.keyboard.type("and ")

    async def again(*keys: str) -> asyncio.Event:
        """The same session anew, which loads until it may go on; and these keys meanwhile."""
        held, released = asyncio.Event(), asyncio.Event()

        async def hold(route: Route) -> None:
            held.set()
            await released.wait()
            await route.continue_()

        await tab.page.route(view, hold)
        await tab.page.reload()
        await held.wait()
        await expect(tab.page.get_by_role("main").get_by_text("Loading…")).to_be_visible()
        await expect(
            tab.page.get_by_role("heading", name="Load slowly", exact=True)
        ).to_be_visible()
        await expect(tab.box).to_be_focused()
        for key in keys:
            await by_hand.type(key, "Shift")
        return released

    # What was saved before stands before it; the letters are no shortcuts.
    released = await again("nice ink")
    await expect(tab.box).to_have_value("nice ink")
    released.set()
    await expect(tab.replies).to_have_text(["Loaded."])
    await expect(tab.box).to_have_value("and nice ink")
    await expect(tab.box).to_be_focused()
    async with tab.page.expect_response(re.compile("/draft$")):
        await tab.page.keyboard.type(": ")
    await expect(tab.box).to_have_value("and nice ink: ")

    # What is sent is sent, and what was saved is still there.
    released = await again("nice ink: early")
    await by_hand.press("Enter")
    await early.request()
    await expect(tab.box).to_have_value("")
    released.set()
    await expect(tab.replies).to_have_text(["Loaded.", "Early."])
    await expect(tab.box).to_have_value("and nice ink: ")

    # A command waits until there is a session that it can be run in.
    await by_hand.press("Control+a", "Delete")
    address = tab.page.url
    released = await again("!echo by hand")
    await by_hand.press("Enter")
    released.set()
    await expect(tab.call("terminal")).to_contain_text("by hand")
    await expect(tab.page).to_have_url(address)
