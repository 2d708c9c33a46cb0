"""The screen of usage with its charts, and the replay of a turn: by keyboard, in every look."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from keryx.events import Usage
from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Tab, person
from tests.browser.conftest import House
from tests.browser.test_looks import AXE, LOOKS, Eye

pytestmark = pytest.mark.asyncio(loop_scope="module")

USED = Usage(input_tokens=40_000, output_tokens=2_000, cached_tokens=30_000, reasoning_tokens=500)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(chromium: Browser, house: House) -> AsyncGenerator[str]:
    """The address of a session with a turn whose only call failed."""
    failing = Call("read_file", {"path": "nowhere.txt"})
    house.stage.on(
        "Read it",
        Reply(text="I look.", calls=(failing,), usage=USED),
        Reply(text="It does **not** exist.", usage=USED),
    )
    async with person(chromium, house.served.url, state=house.state) as somebody:
        tab = await somebody.opens()
        await tab.begin("Read it")
        await expect(tab.replies.last).to_contain_text("It does not exist.")
        await tab.settles()
        yield tab.page.url


def usage_screen(tab: Tab) -> Locator:
    return tab.page.get_by_role("main")


async def downloaded(tab: Tab, link: Locator) -> str:
    async with tab.page.expect_download() as download:
        await link.click()
    return read(await (await download.value).path())


def read(path: Path) -> str:
    return path.read_text()


async def replayed(tab: Tab) -> Locator:
    """Open the replay as a person does."""
    await tab.transcript.get_by_role("button", name="Actions for this turn").click()
    await tab.transcript.get_by_role("button", name="Replay this turn").click()
    dialog = tab.page.get_by_role("dialog", name="Replay")
    await expect(dialog.get_by_role("slider")).to_be_focused()
    return dialog


@pytest.mark.promise("page20.16")
async def test_usage_is_shown_by_day_model_tool_session_and_exported(
    tab: Tab, session: str
) -> None:
    await tab.page.goto(session)
    await tab.list.get_by_role("button", name="Usage").click()
    await tab.page.get_by_role("button", name="Charts and export").click()
    screen = usage_screen(tab)
    summary = screen.get_by_role("region", name="Summary")
    await expect(summary).to_contain_text("CostUnknown")
    await expect(summary).to_contain_text("Tool calls1")
    await expect(summary).to_contain_text("Failed calls1100% of all calls")
    await expect(summary).to_contain_text("Failed turns0of ")
    # All but the title's few tokens: 60,000 of 80,010 were read from the cache.
    await expect(summary).to_contain_text("Cache hits75%")
    days = screen.get_by_role("region", name="By day")
    await expect(days.get_by_role("img", name="Tokens in 30 bars")).to_be_visible()
    await days.get_by_text("Show as a table").click()
    await expect(days.get_by_role("row")).to_have_count(2)
    tools = screen.get_by_role("region", name="By tool")
    await expect(tools.get_by_role("row").last).to_contain_text("read_file11")
    text = await downloaded(tab, tools.get_by_role("link", name="CSV, By tool"))
    [row] = csv.DictReader(io.StringIO(text))
    assert (row["tool"], row["calls"], row["failed"]) == ("read_file", "1", "1")
    models = screen.get_by_role("region", name="By model")
    text = await downloaded(tab, models.get_by_role("link", name="JSON, By model"))
    assert json.loads(text)["total"]["cost"] is None
    await screen.get_by_role("region", name="By session").get_by_role("link").nth(2).click()
    await expect(tab.replies.last).to_contain_text("It does not exist.")


@pytest.mark.promise("page20.16")
async def test_the_period_is_part_of_the_address_and_chosen_by_keyboard(
    tab: Tab, session: str
) -> None:
    await tab.page.goto(session.split("#", maxsplit=1)[0] + "#/usage/7")
    screen = usage_screen(tab)
    days = screen.get_by_role("region", name="By day")
    await expect(days.get_by_role("img", name="Tokens in 7 bars")).to_be_visible()
    today = screen.get_by_role("link", name="Today")
    await today.press("Enter")
    await expect(days.get_by_role("img", name="Tokens in 1 bar.")).to_be_visible()
    await expect(today).to_have_attribute("aria-current", "page")
    await days.get_by_role("button", name="Cost").press("Enter")
    await expect(days).to_contain_text("Days with an unknown cost show only what is known.")
    await tab.page.go_back()
    await expect(days.get_by_role("img", name="in 7 bars")).to_be_visible()


@pytest.mark.promise("page20.17")
async def test_a_turn_is_replayed_fact_by_fact(tab: Tab, session: str) -> None:
    await tab.page.goto(session)
    dialog = await replayed(tab)
    rows = dialog.get_by_role("region", name="Transcript")
    slider = dialog.get_by_role("slider", name="Moment")
    keys = tab.page.keyboard
    await expect(dialog).to_contain_text("The turn starts")
    await expect(rows.get_by_role("article")).to_have_count(0)
    await keys.press("End")
    await expect(dialog).to_contain_text("The turn ends")
    await expect(rows).to_contain_text("It does not exist.")
    await expect(rows.get_by_role("group", name="read_file")).to_contain_text("Failed")
    # Back to where the call ran: what came after it is not there.
    for _ in range(await slider.evaluate("slider => Number(slider.max)")):
        await keys.press("ArrowLeft")
        if "A call starts" in (await slider.get_attribute("aria-valuetext") or ""):
            break
    await expect(dialog).to_contain_text("A call starts")
    await expect(rows.get_by_role("group", name="read_file")).to_contain_text("Running")
    await expect(rows).to_contain_text("I look.")
    await expect(rows).not_to_contain_text("It does not exist.")
    await keys.press("Home")
    await expect(dialog.get_by_role("button", name="Back")).to_be_disabled()
    await dialog.get_by_role("combobox", name="Speed").select_option("max")
    await dialog.get_by_role("button", name="Play").click()
    await expect(rows).to_contain_text("It does not exist.")
    await expect(dialog).to_contain_text("The turn ends")
    await expect(dialog.get_by_role("button", name="Play")).to_be_visible()
    await keys.press("Escape")
    await expect(dialog).to_be_hidden()


@pytest.mark.promise("page20.17")
async def test_a_replay_changes_nothing(tab: Tab, session: str) -> None:
    await tab.page.goto(session)
    await expect(tab.replies.last).to_contain_text("It does not exist.")
    sent: list[str] = []
    tab.page.on("request", lambda request: sent.append(request.method))
    dialog = await replayed(tab)
    for key in ("End", "ArrowLeft", "Home"):
        await tab.page.keyboard.press(key)
    await expect(dialog).to_contain_text("The turn starts")
    assert set(sent) <= {"GET"}
    await expect(dialog.get_by_role("button", name="Undo")).to_have_count(0)


@pytest.mark.promise("page20.16")
@pytest.mark.promise("page20.17")
@pytest.mark.parametrize("look", LOOKS)
async def test_both_can_be_seen_and_used(
    chromium: Browser, house: House, session: str, tmp_path: Path, look: str
) -> None:
    async with person(chromium, house.served.url, state=house.state, **LOOKS[look]) as somebody:
        tab = await somebody.opens(session.split("#", maxsplit=1)[0] + "#/usage/7")
        eye = Eye(tab, tmp_path, look, AXE.read_text())
        await eye.sees("usage", usage_screen(tab).get_by_role("region", name="By model"))
        await tab.page.goto(session)
        dialog = await replayed(tab)
        await tab.page.keyboard.press("End")
        await eye.sees("replay", dialog.get_by_text("It does not exist."))
        assert eye.violations == []
