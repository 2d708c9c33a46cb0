"""Commands, files and calls of one's own in the composer; what a steer stops; usage and news."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.4", "page.6")]

HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
LISTEN = """window.Notification = class extends window.Notification {
  constructor(text, options) {
    super(text, options);
    document.documentElement.dataset.told = text;
  }
};"""


async def test_steering_says_what_it_stops_and_after_this_step_stops_nothing(
    tab: Tab, house: House
) -> None:
    with gate(house.served.workspace, "patient") as closed:
        house.stage.on("Begin slowly", Reply(calls=(closed.call("one", "two"),)))
        part = house.stage.on("By the way", Reply(text="I heard it in time."))
        await tab.begin("Begin slowly")
        await expect(tab.printed("terminal")).to_have_text("one")
        await tab.box.fill("By the way")
        steer = tab.button("Steer")
        says = "Steer cancels 1 running call and sends your message now."
        await expect(steer).to_have_accessible_description(says)
        await tab.box.press("Alt+Enter")
        await expect(tab.queue).to_contain_text("After this step")
        await expect(tab.call("terminal")).to_contain_text("Running")
        closed.open()
        await expect(tab.replies.last).to_have_text("I heard it in time.")
    await expect(tab.call("terminal")).not_to_contain_text("Cancelled")
    assert "two" in str((await part.request()).body["messages"])


async def test_slash_commands_are_found_while_typing_and_done_by_keys(
    tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Before the commands", Reply(text="Ready."))
    await tab.begin("Before the commands")
    await tab.settles()
    options = tab.page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await tab.box.press_sequentially("/")
    await expect(options).to_have_count(10)
    await tab.box.press_sequentially("eff")
    await expect(options).to_have_text(["/effort LEVELChange how much the model thinks"])
    await tab.box.press("Tab")
    await expect(options).to_have_count(5)
    await tab.box.press("ArrowDown")
    await tab.box.press("ArrowDown")
    await expect(options.nth(2)).to_have_attribute("aria-selected", "true")
    await tab.box.press("Enter")
    await expect(tab.transcript.get_by_text("Effort is now low.")).to_be_visible()
    await expect(tab.box).to_have_value("")
    alert = tab.page.get_by_role("form", name="Message").get_by_role("alert")
    await tab.say("/nonsense")
    await expect(alert).to_contain_text("There is no command /nonsense.")
    await tab.say("/help")
    dialog = tab.page.get_by_role("dialog", name="Commands and keys")
    await expect(dialog).to_contain_text("/exec CODE")
    await tab.page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    before = tab.session_id
    await tab.say("/fork")
    await expect(tab.replies).to_have_text(["Ready."])
    await expect(tab.page).not_to_have_url(re.compile(before))
    await tab.say("/undo")
    await expect(tab.replies).to_have_count(0)


async def test_a_turn_is_stopped_by_a_command_and_escape_first_closes_the_menu(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = stage.on("Talk for long", Reply(text="So and so", fault="hang mid-stream", after=1))
    await tab.begin("Talk for long")
    await part.held()
    await tab.box.press_sequentially("/st")
    menu = tab.page.get_by_role("listbox", name="Suggestions")
    await expect(menu).to_be_visible()
    await tab.box.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(tab.stop).to_be_enabled()
    await tab.box.press_sequentially("op")
    await tab.box.press("Enter")
    await expect(tab.transcript.get_by_text("Stopped by you")).to_be_visible()


async def test_files_are_completed_folder_by_folder(
    somebody: Person, tab: Tab, house: House
) -> None:
    folder = house.served.workspace / "plans" / "deep"
    folder.mkdir(parents=True)
    (folder / "first plan.md").write_text("one")
    (folder / "second.md").write_text("two")
    (folder / ".hidden").write_text("three")
    house.stage.on("Compare", Reply(text="Compared."))
    house.stage.on("Open a session", Reply(text="Opened."))
    await tab.begin("Open a session")
    await tab.settles()
    options = tab.page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await tab.box.press_sequentially("Compare @pla")
    await expect(options.first).to_have_text("plans/Folder")
    await tab.box.press("Enter")
    await expect(options.first).to_have_text("deep/Folder")
    await tab.box.press("Enter")
    await expect(options).to_have_count(3)
    await tab.box.press_sequentially("sec")
    await expect(options).to_have_count(1)
    await tab.box.press("Tab")
    await expect(tab.box).to_have_value("Compare plans/deep/second.md ")
    await tab.box.press_sequentially("with @plans/deep/plan")
    await options.first.click()
    await expect(tab.box).to_be_focused()
    expected = 'Compare plans/deep/second.md with "plans/deep/first plan.md" '
    await expect(tab.box).to_have_value(expected)
    await tab.box.press("Enter")
    await expect(tab.replies.last).to_have_text("Compared.")
    somebody.watch.expects("404")
    await tab.box.press_sequentially("Compare @nowhere/")
    composer = tab.page.get_by_role("form", name="Message")
    await expect(composer).to_contain_text("That folder doesn't exist.")


async def test_a_list_that_is_out_of_date_cannot_be_taken(tab: Tab, house: House) -> None:
    folder = house.served.workspace / "plans"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "first.md").write_text("one")
    house.stage.on("Open a session", Reply(text="Opened."))
    await tab.begin("Open a session")
    await tab.settles()
    options = tab.page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await tab.box.press_sequentially("See @pla")
    await expect(options.first).to_have_text("plans/Folder")
    held: asyncio.Future[Route] = asyncio.get_running_loop().create_future()

    async def hold(route: Route) -> None:
        held.set_result(route)

    await tab.page.route("**/files**path=plans**", hold)
    await tab.box.press_sequentially("ns/first")
    route = await held
    await expect(options.first).to_be_disabled()
    await tab.box.press("Enter")
    await options.first.dispatch_event("click")
    await expect(tab.box).to_have_value("See @plans/first")
    await route.continue_()
    await expect(options).to_have_text(["first.mdplans/"])
    await tab.box.press("Enter")
    await expect(tab.box).to_have_value("See plans/first.md ")


async def test_files_are_completed_before_there_is_a_session_if_another_works_there(
    tab: Tab, house: House
) -> None:
    house.stage.on("Work in the folder", Reply(text="Here."))
    (house.served.workspace / "notes-for-later.md").write_text("later")
    await tab.begin("Work in the folder")
    await tab.settles()
    await tab.starts_anew()
    options = tab.page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    await tab.box.press_sequentially("Read @notes-for")
    await expect(options).to_have_text(["notes-for-later.md"])
    await tab.box.press("Tab")
    await expect(tab.box).to_have_value("Read notes-for-later.md ")
    # Nobody works in another folder yet, so nobody can look there.
    other = house.served.workspace / "elsewhere"
    other.mkdir()
    await tab.page.get_by_role("button", name="Folder:").click()
    await tab.page.get_by_role("combobox", name="Workspace").fill(str(other))
    await tab.box.fill("")
    await tab.box.press_sequentially("Read @notes")
    composer = tab.page.get_by_role("form", name="Message")
    await expect(composer).to_contain_text("when a session works in this folder")
    await expect(options).to_have_count(0)


async def test_a_person_runs_commands_and_code_with_no_model(tab: Tab, house: House) -> None:
    await tab.starts_anew()
    await tab.box.fill("!echo made by hand | tee by-hand.txt")
    await expect(tab.page.get_by_role("form", name="Message")).to_contain_text("without a model")
    await tab.button("Run").click()
    own = tab.transcript.get_by_role("group", name="Run by you")
    result = own.get_by_role("group", name="Result")
    await expect(result.locator("pre")).to_have_text("made by hand\n")
    assert (house.served.workspace / "by-hand.txt").read_text() == "made by hand\n"
    await tab.say("/exec print(6 * 7)")
    code = tab.call("execute_code")
    await expect(code.get_by_role("group", name="Result")).to_contain_text("42")
    await expect(tab.replies).to_have_count(0)
    await tab.page.reload()
    await expect(tab.transcript.get_by_role("group", name="Run by you")).to_have_count(2)


async def test_tools_are_chosen_by_their_sets(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Work without scripts", Reply(text="So I do."))
    await tab.begin("Work without scripts")
    await tab.settles()
    await tab.button("Session settings").click()
    settings = tab.page.get_by_role("region", name="Session settings")
    await settings.get_by_text("Tools", exact=True).click()
    await settings.get_by_role("checkbox", name="code").uncheck()
    await expect(settings.locator("summary")).to_contain_text(" of ")
    view = await somebody.asks(f"/api/sessions/{tab.session_id}")
    assert "execute_code" not in view["settings"]["tools"]
    assert "terminal" in view["settings"]["tools"]


async def change_effort(tab: Tab, refusal: dict[str, str] | None = None) -> asyncio.Event:
    """Chooses another effort; the request waits for the event, and is then refused with this."""
    held, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        if route.request.method != "PATCH":
            return await route.continue_()
        held.set()
        await released.wait()
        if refusal is None:
            return await route.continue_()
        return await route.fulfill(status=503, json=refusal)

    await tab.page.route(re.compile(rf"/api/sessions/{tab.session_id}$"), hold)
    await tab.button("Session settings").click()
    settings = tab.page.get_by_role("region", name="Session settings")
    await settings.get_by_role("combobox", name="Effort").select_option("high")
    await held.wait()
    return released


async def test_what_was_changed_first_holds_for_what_is_said_next(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Think as usual", Reply(text="As usual."))
    stage.on("Think hard now", Reply(text="Hard."))
    await tab.begin("Think as usual")
    await tab.settles()
    released = await change_effort(tab)
    await tab.say("Think hard now")
    await expect(tab.button("Send")).to_be_disabled()
    released.set()
    await expect(tab.replies).to_have_text(["As usual.", "Hard."])
    shown = str(await somebody.asks(f"/api/sessions/{tab.session_id}/messages"))
    assert shown.index("'effort': 'high'") < shown.index("Think hard now"), shown


async def test_a_message_is_not_sent_with_what_could_not_be_changed(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    somebody.watch.expects("503")
    stage.on("Cheaply, please", Reply(text="Cheap."))
    await tab.begin("Cheaply, please")
    await tab.settles()
    refusal = {"title": "Busy", "detail": "Not now.", "hint": "Try again in a minute."}
    released = await change_effort(tab, refusal)
    await tab.say("Only if it is cheap")
    await expect(tab.button("Send")).to_be_disabled()
    released.set()
    alert = tab.page.get_by_role("form", name="Message").get_by_role("alert")
    await expect(alert).to_contain_text("Not now. Try again in a minute.")
    await expect(tab.box).to_have_value("Only if it is cheap")
    await expect(tab.said).to_have_text(["Cheaply, please"])


async def test_usage_is_told_and_a_cost_that_is_unknown_is_not_nothing(
    tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Use something", Reply(text="Used."))
    await tab.begin("Use something")
    await tab.settles()
    await tab.page.get_by_role("main").get_by_role("button", name="Usage").click()
    dialog = tab.page.get_by_role("dialog", name="Usage")
    await expect(dialog.get_by_role("region", name="This session")).to_contain_text("CostUnknown")
    everything = dialog.get_by_role("region", name="All time")
    await expect(everything.get_by_role("row").last).to_contain_text("Unknown")
    await dialog.get_by_role("button", name="Close").click()
    await tab.list.get_by_role("button", name="Usage").click()
    await expect(dialog).to_be_visible()


async def test_who_looks_elsewhere_is_told_of_questions_and_ends(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    await somebody.context.grant_permissions(["notifications"])
    await tab.page.add_init_script(LISTEN)
    await tab.page.reload()
    part = stage.on(
        "Ask me later",
        Reply(text="Wait", fault="hang mid-stream", after=1),
        Reply(text="Thanks."),
    )
    later = stage.on(
        "Ask me at last",
        Reply(calls=(Call("clarify", {"question": "Now?"}),)),
        Reply(text="Good", fault="hang mid-stream", after=1),
    )
    switch = tab.button("Notifications")
    await expect(switch).to_have_attribute("aria-pressed", "false")
    await switch.click()
    await expect(switch).to_have_attribute("aria-pressed", "true")
    await tab.begin("Ask me later")
    held = await part.held()
    await tab.say("Ask me at last")
    await expect(tab.queue).to_be_visible()
    # A tab that nobody sees goes on listening, if no other one does.
    await tab.page.evaluate(HIDE, arg=True)
    held.resume.set()
    await later.request()
    root = tab.page.locator("html")
    await expect(root).to_have_attribute("data-told", "Ask me later is waiting for you")
    await expect(tab.page).to_have_title("(1) Ask me later · Keryx")
    await tab.page.evaluate(HIDE, arg=False)
    await tab.asks.get_by_role("textbox", name="Answer").fill("Yes")
    await tab.asks.get_by_role("button", name="Answer").click()
    await expect(tab.asks).to_be_hidden()
    await expect(tab.page).to_have_title("Ask me later · Keryx")
    answered = await later.held(2)
    await tab.page.evaluate(HIDE, arg=True)
    answered.resume.set()
    await expect(root).to_have_attribute("data-told", "Ask me later is done")
