"""Places in long sessions: found far up with few requests, read from there on, and left again."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Request, expect

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.store.sqlite import SqliteStore
from keryx.testing.longsession import replied, said, write_long_session
from keryx.testing.modelserver import MODEL, Call, ModelServer, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.1", "page.3")]

LONG = "s-long"
TURNS = 2_500
FAR_UP = 41
NEAR = TURNS - 120
"""Before the pages that are read at first, and few enough pages away from the end."""
BACK = "Earlier messages Jump to latest"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[House]:
    """A house with a long session in it, whose model can be asked."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "home").mkdir(mode=0o700)
    await _fill(folder / "home" / "keryx.db")
    stage = ScriptedReplies()
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        served = PageServer(folder, model.url)
        await served.start()
        try:
            async with person(chromium, served.url) as first:
                tab = await first.opens(served.link)
                await expect(tab.session("A long session")).to_be_visible()
                await _furnish(first, served)
                state = await first.context.storage_state()
            yield House(served, stage, state)
        finally:
            await served.stop()


async def _furnish(somebody: Person, served: PageServer) -> None:
    """The session that was written by hand gets what it needs to go on."""
    tools = [tool["name"] for tool in (await somebody.asks("/api/tools"))["tools"]]
    answer = await somebody.context.request.patch(
        f"{served.url}api/sessions/{LONG}",
        data={"model": f"openai:{MODEL}", "workspace": str(served.workspace), "tools": tools},
        headers={"Origin": served.url.rstrip("/")},
    )
    assert answer.ok, await answer.text()


async def _fill(path: Path) -> None:
    scope = Scope("fill")
    bridge = Bridge(scope)
    store = await SqliteStore.open(path, bridge)
    await write_long_session(store, LONG, messages=TURNS * 2)
    await store.close()
    await bridge.close()
    scope.close()


@pytest_asyncio.fixture(loop_scope="module")
async def reader(chromium: Browser, library: House) -> AsyncGenerator[Person]:
    async with person(
        chromium,
        library.served.url,
        state=library.state,
        viewport={"width": 1280, "height": 800},
    ) as visitor:
        yield visitor


@contextmanager
def pages_read(tab: Tab) -> Generator[list[str]]:
    """The pages of transcripts that are asked for meanwhile."""
    queries: list[str] = []

    def on_request(request: Request) -> None:
        if "/messages?" in request.url:
            queries.append(request.url.partition("?")[2])

    tab.page.on("request", on_request)
    yield queries
    tab.page.remove_listener("request", on_request)


def place(tab: Tab) -> Locator:
    return tab.transcript.get_by_role("group", name="Search result", exact=True)


async def find(tab: Tab, number: int) -> None:
    """As a person does: by the words, and with the keyboard."""
    await tab.list.get_by_role("button", name="Search").press("Enter")
    search = tab.page.get_by_role("dialog", name="Search")
    await search.get_by_role("searchbox").fill(f"Message {number}")
    hit = search.get_by_role("listitem").filter(has_text=f"Message {number}:")
    await hit.get_by_role("button").press("Enter")
    await expect(search).to_be_hidden()
    await expect(place(tab)).to_have_text(said(number))


async def test_a_place_far_up_is_opened_with_few_requests(reader: Person) -> None:
    tab = await reader.opens()
    with pages_read(tab) as queries:
        await find(tab, FAR_UP)
        await expect(place(tab)).to_be_in_viewport()
        await expect(place(tab)).to_be_focused()
        await expect(tab.articles.filter(has_text=replied(FAR_UP)).first).to_be_visible()
        # Where the focus is, the text is: the next one can be read from there.
        await expect(tab.button(BACK)).to_be_visible()
    assert len(queries) <= 4, queries
    await expect(tab.transcript).not_to_contain_text(said(TURNS - 1))


async def test_the_address_of_a_place_leads_there_again(reader: Person) -> None:
    tab = await reader.opens()
    await find(tab, FAR_UP)
    assert re.search(rf"#/s/{LONG}/\d+$", tab.page.url)
    await tab.page.reload()
    await expect(place(tab)).to_have_text(said(FAR_UP))
    await expect(place(tab)).to_be_in_viewport()
    other = await reader.opens(tab.page.url)
    await expect(place(other)).to_be_in_viewport()
    await expect(place(other)).to_be_focused()


async def test_the_mark_goes_and_the_place_and_its_focus_stay(reader: Person) -> None:
    tab = await reader.opens()
    await tab.page.clock.install()
    await find(tab, FAR_UP)
    marked = place(tab).locator("xpath=self::*[contains(@class, 'is-sought')]")
    await expect(marked).to_have_count(1)
    before = await place(tab).bounding_box()
    await tab.page.clock.fast_forward(5_000)
    await expect(marked).to_have_count(0)
    await expect(place(tab)).to_be_focused()
    assert await place(tab).bounding_box() == before


async def test_the_focus_is_not_taken_again_when_the_place_is_drawn_again(reader: Person) -> None:
    tab = await reader.opens()
    await find(tab, FAR_UP)
    await tab.box.focus()
    await tab.transcript.hover()
    await tab.page.mouse.wheel(0, 9_000)
    await expect(place(tab)).to_have_count(0)
    while await place(tab).count() == 0:
        await tab.page.mouse.wheel(0, -400)
    await tab.page.keyboard.type("Still typing")
    await expect(tab.box).to_have_value("Still typing")
    await tab.box.fill("")


async def test_the_same_place_is_found_again_after_reading_elsewhere(reader: Person) -> None:
    tab = await reader.opens()
    await find(tab, FAR_UP)
    await tab.transcript.hover()
    await tab.page.mouse.wheel(0, 9_000)
    await expect(tab.said.filter(has_text=said(FAR_UP))).to_have_count(0)
    await find(tab, FAR_UP)
    await expect(place(tab)).to_be_in_viewport()


async def test_reading_on_from_a_place_meets_the_end_and_misses_nothing(reader: Person) -> None:
    tab = await reader.opens()
    await find(tab, NEAR)
    await tab.transcript.hover()
    seen: list[str] = []
    last = tab.said.filter(has_text=said(TURNS - 1))
    while await last.count() == 0:
        await _note(tab, seen)
        await tab.page.mouse.wheel(0, 600)
    await _note(tab, seen)
    numbers = [int(match[1]) for text in seen if (match := re.match(r"Message (\d+):", text))]
    assert numbers[numbers.index(NEAR) :] == list(range(NEAR, TURNS))
    await tab.page.keyboard.press("End")
    await expect(tab.button("Jump to latest")).to_have_count(0)


async def _note(tab: Tab, seen: list[str]) -> None:
    """What is drawn now and was not before, in order."""
    texts = await tab.said.all_inner_texts()
    seen.extend(text for text in texts if text not in seen)


async def test_what_happens_at_the_end_is_told_at_the_place_and_end_leads_there(
    reader: Person, library: House
) -> None:
    library.stage.on(
        "Ask from afar",
        Reply(calls=(Call("clarify", {"question": "Are you there?"}),)),
        Reply(text="So you are."),
    )
    tab = await reader.opens()
    await find(tab, FAR_UP)
    other = await reader.opens(f"{reader.url}#/s/{LONG}")
    await other.say("Ask from afar")
    await expect(other.asks).to_be_visible()
    await tab.looks_here()
    await expect(tab.asks).to_contain_text("Are you there?")
    await expect(tab.stop).to_be_visible()
    await expect(tab.said.filter(has_text=said(FAR_UP))).to_be_in_viewport()
    await expect(tab.transcript).not_to_contain_text("Ask from afar")
    await tab.asks.get_by_role("textbox", name="Answer").fill("Yes")
    await tab.asks.get_by_role("textbox", name="Answer").press("Enter")
    await expect(tab.asks).to_be_hidden()
    await tab.settles()
    await expect(tab.said.filter(has_text=said(FAR_UP))).to_be_in_viewport()
    await tab.transcript.focus()
    await tab.page.keyboard.press("End")
    await expect(tab.replies.last).to_have_text("So you are.")
    await expect(tab.replies.last).to_be_in_viewport()
    assert tab.page.url.endswith(f"#/s/{LONG}")


async def test_the_button_leads_back_and_the_focus_stays_in_the_transcript(reader: Person) -> None:
    tab = await reader.opens()
    await find(tab, FAR_UP)
    await tab.button(BACK).press("Enter")
    await expect(tab.button(BACK)).to_have_count(0)
    await expect(tab.transcript).to_be_focused()
    await expect(tab.said.filter(has_text=said(FAR_UP))).to_have_count(0)


async def test_whoever_says_something_at_a_place_sees_what_becomes_of_it(
    reader: Person, library: House
) -> None:
    library.stage.on("Said far up", Reply(text="Answered at the end."))
    tab = await reader.opens()
    await find(tab, FAR_UP)
    await tab.say("Said far up")
    await expect(tab.replies.last).to_have_text("Answered at the end.")
    await expect(tab.replies.last).to_be_in_viewport()
    await tab.settles()


async def test_retries_and_settings_are_told_after_a_reload_as_they_were(
    reader: Person, library: House
) -> None:
    library.stage.on(
        "Stumble first", Reply(status=500, message="not now"), Reply(text="Now it goes.")
    )
    tab = await reader.opens()
    await tab.begin("Stumble first")
    await expect(tab.replies.last).to_have_text("Now it goes.")
    await tab.settles()
    await tab.say("/effort high")
    await expect(tab.transcript).to_contain_text("Effort is now high.")
    await expect(tab.transcript).to_contain_text("Retried after")
    snapshot = await tab.transcript.aria_snapshot()
    await tab.page.reload()
    await expect(tab.transcript).to_contain_text("Effort is now high.")
    assert await tab.transcript.aria_snapshot() == snapshot


async def test_a_long_command_of_ones_own_is_shown_whole(reader: Person) -> None:
    tab = await reader.opens()
    await tab.starts_anew()
    await tab.say(f"!echo {'long ' * 2_000}| wc -w # at last")
    await expect(tab.call("terminal")).to_be_visible()
    await tab.settles()
    for _ in ("as it happened", "as it is read again"):
        arguments = tab.call("terminal").get_by_role("group", name="Arguments")
        await expect(arguments).to_contain_text("| wc -w # at last")
        await tab.page.reload()
