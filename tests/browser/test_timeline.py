"""The calls of a step as bars: their forms, what is nested, cancelling one, the turn's times."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Locator, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import STOPPED, Person, Tab, person
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.fan_out import CROWD, fan

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.2")]

TIMES = re.compile(
    r"This turn: model [\d.]+ m?s, tools ([\d.]+) (m?s); "
    r"running calls in parallel saved ([\d.]+) (m?s) \(([\d.]+) (m?s) one after another\)\."
)


async def form_of(bar: Locator) -> tuple[str, str]:
    """How a bar looks: its pattern, and its colour where it has none."""
    style = (
        "(bar) => [getComputedStyle(bar).backgroundImage, getComputedStyle(bar).backgroundColor]"
    )
    pattern, colour = await bar.evaluate(style)
    return str(pattern), str(colour)


def seconds(number: str, unit: str) -> float:
    return float(number) / (1_000 if unit == "ms" else 1)


def undo(tab: Tab) -> Locator:
    return tab.page.get_by_role("dialog", name="Undo this turn?")


async def opens_menu(tab: Tab, number: int, action: str) -> None:
    """Choose this of the menu of that turn, counted from 0."""
    await tab.transcript.get_by_role("button", name="Actions for this turn").nth(number).click()
    await tab.transcript.get_by_role("button", name=action).click()


async def test_how_a_call_ended_is_told_by_the_form_of_its_bar_and_in_words(
    chromium: Browser, own_house: House
) -> None:
    served, stage = own_house.served, own_house.stage
    with gate(served.workspace, "cut") as cut, gate(served.workspace, "lost") as lost:
        stage.on(
            "End in four ways",
            Reply(
                calls=(
                    Call("terminal", {"command": "echo fine"}),
                    Call("read_file", {"path": "nowhere.txt"}),
                    cut.call("to be cut"),
                    lost.call("to be lost"),
                )
            ),
            Reply(text="Four ways."),
        )
        async with person(chromium, served.url) as somebody:
            tab = await somebody.opens(served.link)
            await tab.begin("End in four ways")
            calls = tab.transcript.get_by_role("group", name=re.compile(r"^(terminal|read_file)$"))
            await expect(calls.nth(3).locator("pre")).to_have_text("to be lost")
            await expect(calls.nth(2).locator("pre")).to_have_text("to be cut")
            moving = await form_of(calls.nth(3).locator(".lane-bar"))
            await calls.nth(2).get_by_role("button", name="Cancel terminal").click()
            await expect(calls.nth(2)).to_contain_text("Cancelled by you")
            somebody.watch.expects_outage()
            await served.kill()
            await served.start()
            await expect(tab.replies.last).to_have_text("Four ways.")
            await expect(calls.nth(0)).not_to_contain_text(
                re.compile("failed|cancelled|unknown", re.IGNORECASE)
            )
            await expect(calls.nth(1)).to_contain_text("Failed")
            await expect(calls.nth(3)).to_contain_text("Unknown")
            forms = [await form_of(calls.nth(number).locator(".lane-bar")) for number in range(4)]
    done, failed, cancelled, unknown = forms
    assert len({*forms, moving}) == 5
    assert done[0] == failed[0] == "none"
    assert "45deg" in cancelled[0]
    assert "45deg" in unknown[0]
    assert "90deg" in moving[0]


async def test_nested_calls_stand_under_their_script_and_one_of_them_is_cancelled(
    tab: Tab, house: House
) -> None:
    with fan(house.served.workspace, "spread") as spread:
        house.stage.on(
            "Spread out",
            Reply(calls=(spread.call, Call("terminal", {"command": "echo beside"}))),
            Reply(text="Gathered."),
        )
        await tab.begin("Spread out")
        step = tab.replies.first
        await expect(step).to_contain_text("13 nested calls, 11 done")
        await expect(step).to_contain_text("Step 1")
        script = tab.call("execute_code")
        nested = script.get_by_role("list", name="Nested calls")
        lines = nested.get_by_role("listitem")
        # Alike ones are one line, which unfolds to all of them.
        await expect(lines).to_have_count(3)
        alike = nested.get_by_role("button", name="terminal: 11 done")
        await expect(alike).to_have_attribute("aria-expanded", "false")
        await alike.click()
        ones = nested.get_by_role("region", name="terminal: 11")
        await expect(ones).to_contain_text("echo region-0")
        await alike.press("Enter")
        await expect(ones).to_be_hidden()
        # Who comes late sees the same of it.
        await tab.page.reload()
        await expect(lines).to_have_count(3)
        await expect(alike).to_be_visible()
        await expect(step).to_contain_text("13 nested calls, 11 done")
        # Just one of the two that run is cut.
        runs = "Cancel nested terminal echo spread-"
        await expect(tab.button(runs)).to_have_count(2)
        await tab.button(f"{runs}one").click()
        await expect(lines.filter(has_text=STOPPED)).to_have_count(1)
        await expect(tab.button(runs)).to_have_count(1)
        await expect(tab.call("terminal")).not_to_contain_text("Cancelled")
        spread.second.open()
        await expect(tab.replies.last).to_have_text("Gathered.")
    await expect(script).not_to_contain_text("Running")
    await expect(nested.get_by_role("button", name="terminal: 12 done")).to_be_visible()
    await expect(lines.filter(has_text=STOPPED)).to_have_count(1)
    await tab.page.reload()
    await expect(nested.get_by_role("button", name="terminal: 12 done")).to_be_visible()
    await expect(lines.filter(has_text=STOPPED)).to_have_count(1)


async def test_one_call_of_a_crowd_is_cancelled_by_itself_and_so_is_another_after_a_reload(
    tab: Tab, house: House
) -> None:
    with fan(house.served.workspace, "crowd", CROWD) as crowd:
        house.stage.on("Call a crowd", Reply(calls=(crowd.call,)), Reply(text="All are back."))
        await tab.begin("Call a crowd")
        step = tab.replies.first
        await expect(step).to_contain_text(f"{CROWD + 2} nested calls, {CROWD} done")
        script = tab.call("execute_code")
        nested = script.get_by_role("list", name="Nested calls")
        lines = nested.get_by_role("listitem")
        # The crowd is one line; each of the two that do not end has its own.
        await expect(lines).to_have_count(3)
        await expect(lines.nth(0)).to_contain_text(f"{CROWD}")
        runs = "Cancel nested terminal echo crowd-"
        # Which of them began first is for the script's threads.
        for name in ("one", "two"):
            line = lines.filter(has_text=f"crowd-{name}")
            await expect(line.get_by_role("button", name=f"{runs}{name}")).to_be_visible()
            await expect(line.locator(".lane-bar.is-running")).to_be_visible()
        await tab.button(f"{runs}one").click()
        await expect(tab.button(runs)).to_have_count(1)
        # It is told among those that have ended.
        stopped = f"terminal: ({STOPPED.pattern})"
        texts = (f"terminal: {CROWD} done", stopped, "crowd-two: running")
        await expect(lines).to_have_text([re.compile(text) for text in texts])
        await expect(script).to_contain_text("Running")
        # Who comes late sees the same of it, and can do so with the one that is left.
        await tab.page.reload()
        await expect(lines).to_have_text([re.compile(text) for text in texts])
        await expect(step).to_contain_text(f"{CROWD + 2} nested calls, {CROWD} done")
        await tab.button(f"{runs}two").click()
        await expect(tab.replies.last).to_have_text("All are back.")
    await expect(nested.get_by_role("button", name=f"terminal: {CROWD} done")).to_be_visible()
    await expect(lines.filter(has_text=STOPPED)).to_have_count(2)
    await expect(step).to_contain_text(f"{CROWD + 2} nested calls")


async def test_the_keyboard_cancels_one_bar_while_the_others_go_on(tab: Tab, house: House) -> None:
    workspace = house.served.workspace
    with gate(workspace, "stays") as stays, gate(workspace, "goes") as goes:
        house.stage.on(
            "Run side by side",
            Reply(calls=(goes.call("goes waits"), stays.call("stays waits", "stays ends"))),
            Reply(text="One is left."),
        )
        await tab.begin("Run side by side")
        calls = tab.call("terminal")
        await expect(tab.printed("terminal").nth(1)).to_have_text("stays waits")
        # From the bar, which shows the call whole, the next key press is at its button.
        bar = calls.nth(0).get_by_role("button", name="Details of terminal")
        await bar.focus()
        await tab.page.keyboard.press("Tab")
        await expect(calls.nth(0).get_by_role("button", name="Cancel terminal")).to_be_focused()
        await tab.page.keyboard.press("Enter")
        await expect(calls.nth(0)).to_contain_text("Cancelled by you")
        await expect(calls.nth(1)).to_contain_text("Running")
        # The button is gone with what it was for; the focus stays around.
        await expect(tab.page.locator("body")).not_to_be_focused()
        stays.open()
        await expect(tab.replies.last).to_have_text("One is left.")


async def test_a_turn_says_where_its_time_went_and_what_one_after_another_would_have_taken(
    tab: Tab, house: House
) -> None:
    work = Call("terminal", {"command": "sleep 0.6"})
    house.stage.on("Take your time", Reply(calls=(work,) * 3), Reply(text="Taken."))
    await tab.begin("Take your time")
    await tab.settles()
    line = tab.transcript.get_by_text("This turn:")
    await expect(line).to_have_text(TIMES)
    match = TIMES.fullmatch(await line.inner_text())
    assert match is not None
    tools, saved, serial = (seconds(match[at], match[at + 1]) for at in (1, 3, 5))
    assert serial >= 1.8
    assert serial - tools == pytest.approx(saved, abs=0.2)
    inspector = tab.page.get_by_role("complementary", name="Inspector")
    await expect(inspector).to_contain_text("One after another, these calls would take")


async def test_a_turn_is_undone_with_its_files_and_says_so_if_they_are_not_as_it_left_them(
    somebody: Person, tab: Tab, house: House
) -> None:
    workspace = house.served.workspace
    write = Call("write_file", {"path": "poem.txt", "content": "first\n"})
    again = Call("write_file", {"path": "poem.txt", "content": "second\n", "overwrite": True})
    house.stage.on("Write a poem", Reply(calls=(write,)), Reply(text="It is written."))
    house.stage.on("Write it anew", Reply(calls=(again,)), Reply(text="Written anew."))
    await tab.begin("Write a poem")
    await tab.settles()
    await tab.say("Write it anew")
    await expect(tab.replies.last).to_have_text("Written anew.")
    await tab.settles()
    await opens_menu(tab, 1, "Undo this turn")
    await undo(tab).get_by_role("button", name="Undo", exact=True).click()
    await expect(tab.said).to_have_text(["Write a poem"])
    assert (workspace / "poem.txt").read_text() == "first\n"

    # Somebody has changed the file since: it is not taken from them.
    (workspace / "poem.txt").write_text("by hand\n")
    somebody.watch.expects("409")
    await opens_menu(tab, 0, "Undo this turn")
    await undo(tab).get_by_role("button", name="Undo", exact=True).click()
    await expect(undo(tab).get_by_role("alert")).to_contain_text("poem.txt")
    assert (workspace / "poem.txt").read_text() == "by hand\n"
    await undo(tab).get_by_role("button", name="Undo, but keep the files").click()
    await expect(tab.said).to_have_count(0)
    assert (workspace / "poem.txt").read_text() == "by hand\n"


async def test_a_fork_begins_where_a_turn_ended_and_leaves_the_rest_behind(
    tab: Tab, house: House
) -> None:
    house.stage.on("Say one", Reply(text="One."))
    house.stage.on("Say two", Reply(text="Two."))
    house.stage.on("Say three instead", Reply(text="Three."))
    await tab.begin("Say one")
    await tab.settles()
    await tab.say("Say two")
    await expect(tab.replies.last).to_have_text("Two.")
    await tab.settles()
    origin = tab.page.url
    await opens_menu(tab, 0, "Fork from here")
    await expect(tab.said).to_have_text(["Say one"])
    assert tab.page.url != origin
    await tab.say("Say three instead")
    await expect(tab.replies).to_have_text(["One.", "Three."])
    await tab.page.goto(origin)
    await expect(tab.replies).to_have_text(["One.", "Two."])
