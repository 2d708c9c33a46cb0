"""Summing up: a line while a model writes, the line of what came of it, and a meter that falls."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from keryx.events import Usage
from keryx.testing.modelserver import MODEL, Call, ModelServer, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House, lived_in
from tests.browser.keyboard_user import Hands
from tests.browser.network_line import line
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import Part, ScriptedReplies

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.promise("page.1", "004.12"),
]

WINDOW = 20_000
ENOUGH = 16_000
CONFIG = """\
model = "one:{model}"

[providers.one]
base_url = "{url}"
api_key = "sk-of-one"
windows = {{ "{model}" = {window} }}
"""
STORY = "\n\n".join(f"Paragraph {number} of a long story." for number in range(300))
SUMMARY = """\
## What is wanted

A **report** on the reader.

1. It is bounded
2. `reader.py` says so

```python
BOUND = 64
```

""" + "\n\n".join(f"Point {number} that must not be lost." for number in range(40))
RUNS = re.compile(r"^Compacting the context \((\S+) tokens\)…$")
SUMMED = re.compile(r"^Compacted: (\S+) → (\S+) tokens$")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[House]:
    """One whose model has a small window."""
    stage = ScriptedReplies()
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        served = PageServer(tmp_path_factory.mktemp("house"), None)
        served.configure(CONFIG.format(model=MODEL, url=model.url, window=WINDOW))
        async with lived_in(chromium, served, stage) as house:
            yield house


def much(used: int = 12_000) -> tuple[Reply, Reply]:
    """A turn that is worth summing up: most of so many tokens is what its calls printed."""
    calls = (Call("terminal", {"command": "seq 1 3000"}),) * 3
    return Reply(calls=calls), Reply(text="Done.", usage=Usage(input_tokens=used))


def held_back(text: str = SUMMARY, **more: Any) -> Reply:
    """A summary that comes when the test lets it."""
    return Reply(text=text, fault="hang before headers", **more)


def token_text(count: int) -> str:
    """So many tokens, as the page writes it."""
    if count < 1_000:
        return str(count)
    if count < 10_000:
        return f"{count / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{count / 1_000:.0f}k"


def running(tab: Tab) -> Locator:
    return tab.transcript.get_by_text(RUNS)


def summed(tab: Tab) -> Locator:
    """The line of the fact, which unfolds."""
    return tab.transcript.get_by_role("button", name=SUMMED)


def summary(tab: Tab) -> Locator:
    return tab.transcript.get_by_role("group", name="Summary", exact=True)


def meter(tab: Tab) -> Locator:
    return tab.page.get_by_role("main").get_by_role("meter", name="Context used")


def notice(tab: Tab) -> Locator:
    return tab.page.get_by_role("alert")


async def fact(somebody: Person, tab: Tab) -> dict[str, Any]:
    """The newest compaction, as the transcript has it."""
    page = await somebody.asks(f"/api/sessions/{tab.session_id}/messages?limit=200")
    compactions = [
        row["event"] for row in page["rows"] if row["event"]["type"] == "context.compacted"
    ]
    return dict(compactions[-1])


async def expect_the_same(somebody: Person, *tabs: Tab) -> None:
    """Whoever reads anew sees what these tabs show, line by line."""
    fresh = await somebody.opens(tabs[0].page.url)
    await expect(fresh.articles).to_have_count(await tabs[0].articles.count())
    told_anew = await fresh.transcript.aria_snapshot()
    await fresh.page.close()
    for tab in tabs:
        await tab.looks_here()
        assert await tab.transcript.aria_snapshot() == told_anew


async def begins(tab: Tab, stage: ScriptedReplies, words: str, *summaries: Reply) -> Part:
    """A session that is long enough; what is said when it is summed up."""
    stage.on(words, *much())
    part = stage.on_summing_up(words, *summaries)
    await tab.begin(words)
    await tab.settles()
    return part


async def test_a_line_says_that_it_is_summed_up_and_the_line_of_the_fact_takes_its_place(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    part = await begins(tab, stage, "Find out about the reader", held_back())
    await tab.say("/compact")
    held = await part.held()
    await expect(running(tab)).to_be_visible()
    # One goes on typing meanwhile.
    await expect(tab.box).to_have_value("")
    await expect(tab.box).to_be_enabled()
    await expect(tab.button("Send")).to_be_visible()
    late = await somebody.opens(tab.page.url)
    await expect(running(late)).to_be_visible()
    await tab.looks_here()
    await expect(summed(tab)).to_have_count(0)
    held.resume.set()
    for browser_tab in (late, tab):
        await browser_tab.looks_here()
        await expect(summed(browser_tab)).to_be_visible()
        await expect(running(browser_tab)).to_have_count(0)
    compaction = await fact(somebody, tab)
    before, after = token_text(compaction["tokens_before"]), token_text(compaction["tokens_after"])
    await expect(summed(tab)).to_have_text(re.compile(rf"Compacted: {before} → {after} tokens$"))
    assert compaction["tokens_after"] < compaction["tokens_before"] / 2
    await expect_the_same(somebody, tab, late)


async def test_it_is_told_once_to_who_only_hears_and_so_is_its_end(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = await begins(tab, stage, "Only heard", held_back())
    log = tab.page.get_by_role("log", name="Reply").get_by_role("paragraph")
    await tab.say("/compact")
    held = await part.held()
    await expect(log.filter(has_text=RUNS)).to_have_count(1)
    held.resume.set()
    await expect(log.filter(has_text=SUMMED)).to_have_count(1)
    await expect(log.filter(has_text=RUNS)).to_have_count(1)


async def test_the_summary_is_read_folded_and_copied_with_the_keyboard_and_stays(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    await somebody.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await tab.page.set_viewport_size({"width": 1280, "height": 700})
    await begins(tab, stage, "Read me later", Reply(text=SUMMARY, chunk=400))
    await tab.say("/compact")
    await expect(summed(tab)).to_be_visible()
    said = await summed(tab).text_content() or ""
    await tab.page.reload()
    await expect(summed(tab)).to_have_text(said)
    await expect(summary(tab)).to_have_count(0)
    hands = Hands(tab)
    await hands.do(summed(tab), "Shift+Tab")
    await expect(summary(tab).get_by_role("heading", name="What is wanted")).to_be_visible()
    await expect(tab.button("Jump to latest")).to_be_visible()
    # Folded again all is in view, so there is no way to be shown.
    await hands.press("Enter")
    await expect(tab.button("Jump to latest")).to_have_count(0)
    await hands.press("Enter")
    await expect(summary(tab).get_by_role("listitem")).to_have_count(2)
    await expect(summary(tab).locator("pre")).to_have_text("BOUND = 64\n")
    await hands.do(tab.transcript.locator(".row-summary").get_by_role("button", name="Copy"))
    await expect(tab.transcript.get_by_role("button", name="Copied")).to_be_visible()
    assert await tab.page.evaluate("navigator.clipboard.readText()") == SUMMARY
    # It is longer than its box, and the key leads to its own end.
    await hands.reach(summary(tab))
    last = summary(tab).get_by_text("Point 39")
    await expect(last).not_to_be_in_viewport()
    await hands.press("End")
    await expect(last).to_be_in_viewport()
    await hands.do(summed(tab), "Shift+Tab")
    await expect(summary(tab)).to_have_count(0)
    assert hands.lost == []


async def test_the_meter_falls_when_the_fact_comes_and_stays_there(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    await begins(tab, stage, "Fill the window", Reply(text=SUMMARY, chunk=400))
    await expect(meter(tab)).to_have_attribute("value", "12000")
    stage.on("Fill it more", Reply(text="Full.", usage=Usage(input_tokens=14_000)))
    await tab.say("Fill it more")
    await expect(meter(tab)).to_have_attribute("value", "14000")
    chip = tab.page.get_by_role("main").get_by_role("button", name="Usage")
    await expect(chip).to_contain_text("14k of 20k")
    await tab.settles()
    await tab.say("/compact")
    await expect(summed(tab)).to_be_visible()
    left = (await fact(somebody, tab))["tokens_after"]
    assert left < 14_000
    for _ in range(2):
        await expect(meter(tab)).to_have_attribute("value", str(left))
        await expect(chip).to_contain_text(f"{token_text(left)} of 20k")
        await tab.page.reload()
    await chip.click()
    dialog = tab.page.get_by_role("dialog", name="Usage")
    own = dialog.get_by_role("region", name="This session")
    await expect(own).to_contain_text(f"Auto-compacts at {token_text(ENOUGH)}")


async def test_the_inspector_sums_up_and_shows_what_stands_for_the_earlier_part(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = await begins(tab, stage, "Inspect it", held_back())
    inspector = tab.page.get_by_role("complementary", name="Inspector")
    await inspector.get_by_role("tab", name="Context").click()
    earlier = inspector.get_by_role("group", name=re.compile("^Summary of everything before"))
    await expect(inspector.get_by_role("group", name="Prompt")).to_be_visible()
    await expect(inspector).to_contain_text("Auto-compacts at 16k")
    await expect(earlier).to_have_count(0)
    await inspector.get_by_role("button", name="Compact now").click()
    held = await part.held()
    await expect(running(tab)).to_be_visible()
    busy = inspector.get_by_role("button", name="Compacting…")
    await expect(busy).to_have_attribute("aria-disabled", "true")
    held.resume.set()
    await expect(inspector.get_by_role("button", name="Compact now")).to_be_visible()
    for _ in range(2):
        await expect(earlier).to_contain_text(
            "The model reads this summary instead of the earlier messages."
        )
        await earlier.get_by_role("button", name="Summary").click()
        text = earlier.get_by_role("group", name="Summary", exact=True)
        await expect(text.get_by_role("heading", name="What is wanted")).to_be_visible()
        await tab.page.reload()
        await inspector.get_by_role("tab", name="Context").click()


async def test_what_went_wrong_is_said_with_what_to_do_and_all_is_as_before(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    somebody.watch.expects("Failed to load resource.*/compact")
    refusal = held_back(status=401, message="the key has expired", code="invalid_api_key")
    part = await begins(tab, stage, "Sum me up in vain", refusal, Reply(text=SUMMARY, chunk=400))
    await tab.say("/compact")
    held = await part.held()
    await expect(running(tab)).to_be_visible()
    held.resume.set()
    await expect(notice(tab)).to_contain_text("the key has expired. Check the key for")
    await expect(running(tab)).to_have_count(0)
    await expect(summed(tab)).to_have_count(0)
    await expect(meter(tab)).to_have_attribute("value", "12000")
    await expect_the_same(somebody, tab)
    await tab.looks_here()
    await notice(tab).get_by_role("button", name="Dismiss").click()
    await tab.say("/compact")
    await expect(summed(tab)).to_be_visible()
    await expect(notice(tab)).to_have_count(0)


async def test_nothing_more_to_sum_up_is_said_and_leaves_no_line(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    somebody.watch.expects("409.*/compact")
    await begins(tab, stage, "Sum me up twice", Reply(text=SUMMARY, chunk=400))
    await tab.say("/compact")
    await expect(summed(tab)).to_be_visible()
    await tab.say("/compact")
    await expect(notice(tab)).to_contain_text(
        "There is nothing to summarize yet. Send a message first."
    )
    await expect(tab.box).to_have_value("")
    await expect(running(tab)).to_have_count(0)
    await expect(summed(tab)).to_have_count(1)


async def test_it_happens_by_itself_in_a_turn_and_the_turn_goes_on(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    stage.on("Nearly full", *much(ENOUGH))
    part = stage.on_summing_up("Nearly full", held_back())
    stage.on("Go on after it", Reply(text="Going on."))
    await tab.begin("Nearly full")
    await tab.settles()
    await tab.say("Go on after it")
    held = await part.held()
    await expect(running(tab)).to_be_visible()
    await expect(tab.transcript.get_by_text("Working…")).to_have_count(0)
    await expect(tab.stop).to_be_visible()
    held.resume.set()
    await expect(tab.replies.last).to_have_text("Going on.")
    await tab.settles()
    await expect(summed(tab)).to_be_visible()
    await expect(running(tab)).to_have_count(0)
    await expect_the_same(somebody, tab)


async def test_who_reads_above_stays_there_all_the_while(chromium: Browser, house: House) -> None:
    low = {"viewport": {"width": 1000, "height": 500}}
    async with person(chromium, house.served.url, state=house.state, **low) as somebody:
        tab = await somebody.opens()
        house.stage.on("Read above", Reply(text=STORY, chunk=400))
        part = house.stage.on_summing_up("Read above", held_back("A story."))
        await tab.say("Read above")
        await expect(tab.replies.last).to_contain_text("Paragraph 299 of")
        await tab.settles()
        await tab.say("/compact")
        held = await part.held()
        # At the end it is in view at once.
        await expect(running(tab)).to_be_in_viewport()
        above = tab.transcript.get_by_text("Paragraph 20 of")
        await above.scroll_into_view_if_needed()
        await expect(tab.button("Jump to latest")).to_be_visible()
        before = await above.bounding_box()
        held.resume.set()
        log = tab.page.get_by_role("log", name="Reply")
        await expect(log.get_by_text(SUMMED)).to_be_attached()
        assert await above.bounding_box() == before
        await tab.button("Jump to latest").click()
        await expect(summed(tab)).to_be_in_viewport()


async def test_a_lost_connection_brings_it_back_and_leaves_none_that_is_over(
    chromium: Browser, own_stage: tuple[ScriptedReplies, str], tmp_path: Path
) -> None:
    stage, url = own_stage
    async with line() as wire:
        served = PageServer(tmp_path, url, allowed_host=wire.address)
        await served.start()
        wire.leads_to(served.url)
        try:
            async with person(chromium, f"http://{wire.address}/") as somebody:
                somebody.watch.expects_outage()
                tab = await somebody.opens(f"{somebody.url}#{served.link.partition('#')[2]}")
                await expect(tab.box).to_be_visible()
                refusal = held_back(status=401, message="no", code="invalid_api_key")
                part = await begins(tab, stage, "Cut me off", refusal)
                await tab.say("/compact")
                held = await part.held()
                await expect(running(tab)).to_be_visible()
                lost = tab.page.get_by_role("main").get_by_role("status")
                wire.cut()
                await expect(lost).to_be_visible()
                wire.mend()
                await expect(lost).to_have_count(0)
                await expect(running(tab)).to_be_visible()
                # It is the same one, and was told before.
                log = tab.page.get_by_role("log", name="Reply")
                await expect(log.get_by_text(RUNS)).to_have_count(1)
                wire.cut()
                await expect(lost).to_be_visible()
                held.resume.set()
                await held.answered.wait()
                wire.mend()
                await expect(lost).to_have_count(0)
                await expect(running(tab)).to_have_count(0)
        finally:
            await served.stop()
