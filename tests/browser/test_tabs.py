"""Many tabs of one browser: one of them reads the list for all, and none waits for a connection."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Request, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.3")]

TABS = 6
"""As many as a browser allows connections to one server."""
LIST = "/api/events"
UNFOCUSED = "document.hasFocus = () => false;"
"""Windows side by side: all are looked at, and one at most has the focus."""
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
SILENCE_MS = 46_000
"""Longer than tabs wait for a sign of the one that reads."""
WITHOUT_LOCKS = "delete Navigator.prototype.locks;"


class Readers:
    """Which tabs have asked for the list's stream, in order; the last one reads."""

    def __init__(self, somebody: Person) -> None:
        self.requests: list[Request] = []
        somebody.context.on("request", self._on_request)

    def _on_request(self, request: Request) -> None:
        if request.url.endswith(LIST):
            self.requests.append(request)

    def last(self, tabs: list[Tab]) -> Tab:
        frame = self.requests[-1].frame
        return next(tab for tab in tabs if tab.page.main_frame == frame)


async def opens_many(somebody: Person, stage: ScriptedReplies, name: str, count: int) -> list[Tab]:
    """Each at a session of its own."""
    tabs: list[Tab] = []
    for number in range(count):
        stage.on(f"{name} {number} begins", Reply(text=f"Session {number} is here."))
        tab = await somebody.opens()
        await tab.begin(f"{name} {number} begins")
        await expect(tab.replies.last).to_have_text(f"Session {number} is here.")
        tabs.append(tab)
    return tabs


async def lives(somebody: Person, tab: Tab, state: str) -> None:
    """As a browser does it that saves power: a frozen tab runs nothing and hears nothing."""
    cdp = await somebody.context.new_cdp_session(tab.page)
    await cdp.send("Page.setWebLifecycleState", {"state": state})  # pyright: ignore[reportUnknownMemberType] (playwright says no more)


async def test_six_tabs_are_live_at_once_and_all_lists_show_what_happens_in_one(
    chromium: Browser, house: House
) -> None:
    async with person(chromium, house.served.url, state=house.state) as somebody:
        await somebody.context.add_init_script(UNFOCUSED)
        readers = Readers(somebody)
        tabs = await opens_many(somebody, house.stage, "Window", TABS)
        assert len(readers.requests) == 1
        for number, tab in enumerate(tabs):
            title = f"Window {number} begins"
            cue = f"Go on in {number}"
            held = house.stage.on(cue, Reply(text="On it", fault="hang mid-stream", after=1))
            await tab.say(cue)
            for other in tabs:
                await expect(other.session(title)).to_contain_text("Running")
            (await held.held()).resume.set()
            await expect(tab.replies.last).to_have_text("On it")
            await tab.settles()
            for other in tabs:
                await expect(other.session(title)).not_to_contain_text("Running")
        assert len(readers.requests) == 1


async def test_when_the_tab_that_reads_is_closed_the_others_go_on(
    chromium: Browser, house: House
) -> None:
    async with person(chromium, house.served.url, state=house.state) as somebody:
        readers = Readers(somebody)
        tabs = await opens_many(somebody, house.stage, "Heir", 3)
        for _ in range(2):
            reading = readers.last(tabs)
            house.stage.on("Meanwhile this", Reply(text="Done meanwhile."))
            tabs.remove(reading)
            async with somebody.context.expect_event(
                "request", lambda request: request.url.endswith(LIST)
            ):
                await reading.page.close()
            await tabs[0].begin("Meanwhile this")
            await tabs[0].choose("Meanwhile this", "Rename")
            await tabs[0].list.get_by_role("textbox", name="Title").fill("Told to all")
            await tabs[0].list.get_by_role("textbox", name="Title").press("Enter")
            for tab in tabs:
                await expect(tab.session("Told to all")).to_be_visible()
            await tabs[0].choose("Told to all", "Delete")
            await tabs[0].page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            for tab in tabs:
                await expect(tab.session("Told to all")).to_have_count(0)


async def test_nothing_is_lost_while_nobody_reads(chromium: Browser, house: House) -> None:
    async with person(chromium, house.served.url, state=house.state) as somebody:
        readers = Readers(somebody)
        tabs = await opens_many(somebody, house.stage, "Orphan", 2)
        late = tabs[1]
        # Its own stream is refused for now: what happens meanwhile, nobody hears.
        somebody.watch.expects("net::ERR_FAILED")
        await late.page.route(f"**{LIST}", lambda route: route.abort())
        deleted, pinned = "Orphan 0 begins", "Orphan 1 begins"
        async with late.page.expect_request(f"**{LIST}"):
            await readers.last(tabs).page.close()
        async with person(chromium, house.served.url, state=house.state) as stranger:
            tab = await stranger.opens()
            await tab.choose(deleted, "Delete")
            await tab.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            await expect(tab.session(deleted)).to_have_count(0)
            await tab.choose(pinned, "Pin")
            await expect(tab.list.get_by_role("region", name="Pinned")).to_contain_text(pinned)
        await expect(late.session(deleted)).to_be_visible()
        await late.page.unroute(f"**{LIST}")
        await expect(late.session(deleted)).to_have_count(0)
        await expect(late.list.get_by_role("region", name="Pinned")).to_contain_text(pinned)


async def test_who_looks_at_a_session_that_another_deletes_is_told_by_its_own_stream(
    chromium: Browser, house: House
) -> None:
    async with person(chromium, house.served.url, state=house.state) as somebody:
        # What concerns all sessions does not reach this tab.
        somebody.watch.expects("net::ERR_FAILED")
        await somebody.context.route(f"**{LIST}", lambda route: route.abort())
        house.stage.on("Looked at", Reply(text="Here."))
        tab = await somebody.opens()
        requests: list[Request] = []
        tab.page.on("request", lambda request: requests.append(request))  # noqa: PLW0108 (playwright takes functions only)
        await tab.begin("Looked at")
        await tab.settles()
        async with person(chromium, house.served.url, state=house.state) as stranger:
            other = await stranger.opens()
            await other.choose("Looked at", "Delete")
            await other.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            await expect(other.session("Looked at")).to_have_count(0)
        await expect(tab.page.get_by_text("This session no longer exists.")).to_be_visible()
        # It did not have to ask again to know.
        streams = [
            request
            for request in requests
            if request.url.endswith("/events") and "/s-" in request.url
        ]
        assert len(streams) == 1


async def test_a_tab_in_the_background_lets_one_that_is_looked_at_read(
    chromium: Browser, house: House
) -> None:
    async with person(chromium, house.served.url, state=house.state) as somebody:
        readers = Readers(somebody)
        tabs = await opens_many(somebody, house.stage, "Turn away", 2)
        reading = readers.last(tabs)
        other = next(tab for tab in tabs if tab is not reading)
        async with other.page.expect_request(f"**{LIST}"):
            await reading.page.evaluate(HIDE, arg=True)
        house.stage.on("Seen by both", Reply(text="Seen."))
        await other.begin("Seen by both")
        await expect(reading.session("Seen by both")).to_be_visible()


async def test_a_frozen_tab_is_replaced_by_one_that_notices_its_silence(
    chromium: Browser, house: House
) -> None:
    async with person(chromium, house.served.url, state=house.state) as somebody:
        readers = Readers(somebody)
        tabs = await opens_many(somebody, house.stage, "Freeze", 2)
        reading = readers.last(tabs)
        other = next(tab for tab in tabs if tab is not reading)
        await other.page.clock.install()
        await other.page.reload()
        await expect(other.session("Freeze 0 begins")).to_be_visible()
        await lives(somebody, reading, "frozen")
        async with other.page.expect_request(f"**{LIST}"):
            await other.page.clock.fast_forward(SILENCE_MS)
        house.stage.on("Begun in the thaw", Reply(text="It goes on."))
        await other.begin("Begun in the thaw")
        await expect(other.session("Begun in the thaw")).to_be_visible()
        await lives(somebody, reading, "active")
        await expect(reading.session("Begun in the thaw")).to_be_visible()


async def test_where_there_are_no_locks_each_tab_reads_by_itself(
    chromium: Browser, house: House
) -> None:
    async with person(chromium, house.served.url, state=house.state) as somebody:
        await somebody.context.add_init_script(WITHOUT_LOCKS)
        readers = Readers(somebody)
        tabs = await opens_many(somebody, house.stage, "Alone", 2)
        assert len(readers.requests) == len(tabs)
        house.stage.on(
            "Ask the other too",
            Reply(calls=(Call("clarify", {"question": "Both?"}),)),
            Reply(text="Both."),
        )
        await tabs[0].begin("Ask the other too")
        await expect(tabs[1].session("Ask the other too")).to_contain_text("Waiting for you")
