"""Long sessions stay light: few rows drawn, few requests made, nothing kept that is not needed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Route, expect

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.store.sqlite import SqliteStore
from keryx.testing.longsession import replied, write_long_session
from keryx.testing.modelserver import Call, ModelServer, Reply
from tests.browser.browser_user import Person, Tab, person, printed_by_the_browser
from tests.browser.conftest import House
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies
from tests.conftest import SOAK

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(3600 if SOAK else 180),
    pytest.mark.promise("page.10"),
]

MESSAGES = 10_000
TITLE = "Ten thousand messages"
LAST = MESSAGES // 2 - 1
FAR = 0 if SOAK else LAST - 1_200
"""The turn up to which is read: far enough that the page must have let go of the end."""
MOST_ROWS = 80
"""Of the shortest kind, they fill a tall screen and what is kept ready above and below it."""
TURNS = 900 if SOAK else 15
"""In the long form as many as it takes until the page forgets the first of them."""
MOST_EACH = 24_000
"""Bytes that a turn with a reply of 300 characters may leave behind, until it is forgotten."""
NESTED = 1_000
MOST_BARS = 20

REPLY = """Number {number}: the reader keeps a *bounded* queue.

```python
async def read(stream: Stream) -> AsyncIterator[Event]:
    async for line in stream:
        yield decode(line)
```

| step | time |
|:-----|-----:|
| parse the input | 1.2 ms |
"""
SCRIPT = f"""\
from keryx_tools import parallel, read_file

for wave in range(10):
    parallel(read_file, ["a.txt"] * {NESTED // 10}, limit=10)
"""
# Counts what was in the document at once, at any moment: also what was gone before a test looks.
WATCH = """selector => {
  const count = () => document.querySelectorAll(selector).length;
  window.__most = count();
  const see = () => { window.__most = Math.max(window.__most, count()); };
  new MutationObserver(see).observe(document.body, { childList: true, subtree: true });
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[House]:
    """One whose person has a long past."""
    stage = ScriptedReplies()
    folder = tmp_path_factory.mktemp("house")
    await _remember(_new_home(folder))
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        served = PageServer(folder, model.url)
        await served.start()
        try:
            async with person(chromium, served.url) as first:
                tab = await first.opens(served.link)
                await expect(tab.box).to_be_visible()
                state = await first.context.storage_state()
            yield House(served, stage, state)
        finally:
            await served.stop()


def _new_home(folder: Path) -> Path:
    home = folder / "home"
    home.mkdir(mode=0o700)
    return home


async def _remember(home: Path) -> None:
    scope = Scope("fill")
    bridge = Bridge(scope)
    store = await SqliteStore.open(home / "keryx.db", bridge)
    await write_long_session(store, "s-long", messages=MESSAGES, title=TITLE)
    await store.close()
    await bridge.close()
    scope.close()


async def opens_the_long_one(tab: Tab) -> None:
    await tab.session(TITLE).get_by_role("button").first.click()
    await expect(tab.replies.last).to_contain_text(replied(LAST))


class PageRequests:
    """What the page asks the server about one session, and how often."""

    def __init__(self, page: Page) -> None:
        self.paths: list[str] = []
        page.on("request", lambda request: self._hear(request.url))

    def _hear(self, url: str) -> None:
        _, separator, path = url.partition("/api/sessions/s-long")
        if separator:
            self.paths.append(path)


async def most(page: Page) -> int:
    return int(await page.evaluate("window.__most"))


async def test_a_long_session_opens_with_one_view_one_page_and_one_stream(tab: Tab) -> None:
    requests = PageRequests(tab.page)
    async with tab.page.expect_request(re.compile(r"/s-long/events")):
        await opens_the_long_one(tab)
    await expect(tab.said.last).to_be_in_viewport()
    # The plan may stand far before the page that is shown.
    paths = [path.partition("?")[0] for path in requests.paths]
    assert paths == ["", "/messages", "/plan", "/events"]
    assert "limit=50" in requests.paths[1]


async def test_a_session_is_asked_for_before_the_code_of_the_page_has_come(
    somebody: Person,
) -> None:
    page = await somebody.context.new_page()
    requests = PageRequests(page)
    released = asyncio.Event()

    async def hold(route: Route) -> None:
        await released.wait()
        await route.continue_()

    await page.route("**/assets/*.js", hold)
    async with page.expect_response(re.compile("/messages")) as answered:
        await page.goto(f"{somebody.url}#/s/s-long", wait_until="commit")
    assert (await answered.value).ok
    assert [path.partition("?")[0] for path in requests.paths] == ["", "/messages"]
    # The stream of events and the plan are the last things that the page asks for.
    async with (
        page.expect_request(re.compile(r"/s-long/events")),
        page.expect_request(re.compile(r"/s-long/plan")),
    ):
        released.set()
    await expect(Tab(page).replies.last).to_contain_text(replied(LAST))
    await expect(Tab(page).session(TITLE)).to_be_visible()
    # What was asked for early is used, and not asked for again.
    requested_paths = [path.partition("?")[0] for path in requests.paths]
    assert sorted(requested_paths) == ["", "/events", "/messages", "/plan"]
    # Times come when the rest is there.
    await expect(Tab(page).said.last).to_have_attribute("title", re.compile(r"\d\d"))


@pytest.mark.promise("page20.4")
async def test_the_browsers_print_menu_says_how_to_print_what_is_not_loaded(tab: Tab) -> None:
    await opens_the_long_one(tab)
    text = await printed_by_the_browser(tab)
    shown = [int(number) for number in re.findall(r"Reply (\d+)", text)]
    assert max(shown) == LAST
    assert len(set(shown)) > await tab.replies.count(), "more than the view has"
    assert "Earlier messages are not printed. Press Ctrl+P" in text
    await expect(tab.page.get_by_text("Earlier messages are not printed.")).to_be_hidden()


async def test_reading_far_back_and_returning_keeps_few_rows_in_the_document(tab: Tab) -> None:
    await opens_the_long_one(tab)
    await tab.page.evaluate(WATCH, ".transcript-row")
    await tab.transcript.focus()
    rows = tab.transcript.locator(".transcript-row")
    while await first_turn(rows) > FAR:
        before = await rows.first.text_content() or ""
        await tab.page.keyboard.press("Home")
        await expect(rows.first).not_to_have_text(before)
    await stands_still(tab)
    requests = PageRequests(tab.page)
    await tab.page.keyboard.press("End")
    await expect(tab.replies.last).to_contain_text(replied(LAST))
    await expect(tab.replies.last).to_be_in_viewport()
    assert len(requests.paths) <= 2
    assert await most(tab.page) <= MOST_ROWS


async def stands_still(tab: Tab) -> None:
    """Keys scroll smoothly: until the last one has had its effect."""
    await tab.transcript.evaluate("""box => new Promise(resolve => {
      let last = null;
      const look = () => {
        if (last === box.scrollTop) return resolve();
        last = box.scrollTop;
        setTimeout(look, 100);
      };
      look();
    })""")


async def first_turn(rows: Locator) -> int:
    """Which turn the first of the rows is of."""
    said = re.search(r"(?:Message|Reply) (\d+)", await rows.first.text_content() or "")
    return LAST if said is None else int(said[1])


async def test_a_crowd_of_nested_calls_is_a_few_bars_and_unfolds_to_those_in_view(
    tab: Tab, house: House
) -> None:
    (house.served.workspace / "a.txt").write_text("a line\n")
    house.stage.on(
        "Read a thousand times",
        Reply(calls=(Call("execute_code", {"code": SCRIPT, "timeout": 120}),)),
        Reply(text="A thousand times."),
    )
    await tab.starts_anew()
    await tab.page.evaluate(WATCH, ".transcript-scroll .lane-bar")
    await tab.say("Read a thousand times")
    await expect(tab.replies.last).to_have_text("A thousand times.", timeout=120_000)
    assert await most(tab.page) <= MOST_BARS
    nested = tab.transcript.get_by_role("list", name="Nested calls")
    line = nested.get_by_role("button", expanded=False)
    await expect(line).to_contain_text("1000")
    await line.click()
    crowd = nested.get_by_role("region", name="read_file: 1000")
    await expect(crowd).to_be_visible()
    await crowd.focus()
    await tab.page.keyboard.press("End")
    await expect(crowd.get_by_text("1000", exact=True)).to_be_in_viewport()
    assert await most(tab.page) <= 2 * MOST_BARS


async def test_a_tab_that_streams_keeps_no_more_than_the_words(
    somebody: Person, house: House
) -> None:
    house.stage.on("Go on", *(Reply(text=REPLY.format(number=n)) for n in range(3 * TURNS)))
    tab = await somebody.opens()
    await tab.starts_anew()
    tools = await somebody.context.new_cdp_session(tab.page)
    samples: list[dict[str, int]] = []
    for number in range(3 * TURNS):
        await tab.say(f"Go on: {number}")
        await expect(tab.replies.last).to_contain_text(f"Number {number}:")
        await tab.settles()
        if number % TURNS == TURNS - 1:
            shown = await tab.page.evaluate(SHOWN_NODES)
            counted = await memory_use(tools)
            samples.append({**counted, "dropped": counted["nodes"] - shown})
    _, before, after = samples
    # The browser's undo history of the message box holds two nodes for each message. A row may have
    # left the screen just now: no frame has been drawn since that lets go of it.
    assert after["dropped"] <= before["dropped"] + 2 * TURNS + NODES_OF_A_ROW, samples
    assert after["listeners"] <= before["listeners"] + LISTENERS_OF_A_ROW, samples
    assert after["heap"] - before["heap"] <= (0 if SOAK else MOST_EACH * TURNS) + 200_000


SHOWN_NODES = """() => {
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
  let count = 1;
  while (walker.nextNode()) count += 1;
  return count;
}"""
NODES_OF_A_ROW = 125
LISTENERS_OF_A_ROW = 8


async def memory_use(tools: Any) -> dict[str, int]:
    """After a collection."""
    for _ in range(2):  # what the first one finalizes, the second one frees
        await tools.send("HeapProfiler.collectGarbage")
    heap = await tools.send("Runtime.getHeapUsage")
    counters = await tools.send("Memory.getDOMCounters")
    sizes = {"heap": int(heap["usedSize"]), "nodes": counters["nodes"]}
    return {**sizes, "listeners": counters["jsEventListeners"]}
