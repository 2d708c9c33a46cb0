"""What went wrong with a click is said where it covers nothing, until the same was done."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Tab, person
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.9")]

COVERED = """() => {
  const notice = document.querySelector("[role=alert]");
  const box = notice.getBoundingClientRect();
  if (box.bottom > innerHeight || box.right > innerWidth || box.left < 0) return ["it is cut"];
  const { x, y, width, height } = notice.querySelector("button").getBoundingClientRect();
  const top = document.elementFromPoint(x + width / 2, y + height / 2);
  if (!notice.contains(top)) return [`it is below ${top.outerHTML.slice(0, 80)}`];
  // What a list has scrolled away is not shown, wherever its box is.
  const shown = (element) => {
    let { left, right, top, bottom } = element.getBoundingClientRect();
    for (let outer = element.parentElement; outer; outer = outer.parentElement) {
      if (getComputedStyle(outer).overflowY === "visible") continue;
      const edges = outer.getBoundingClientRect();
      left = Math.max(left, edges.left);
      right = Math.min(right, edges.right);
      top = Math.max(top, edges.top);
      bottom = Math.min(bottom, edges.bottom);
    }
    return { left, right, top, bottom };
  };
  return [...document.querySelectorAll("button, a, input, textarea, select, [tabindex]")]
    .filter((element) => !notice.contains(element) && !element.contains(notice))
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    .filter((element) => {
      const { left, right, top, bottom } = shown(element);
      if (left >= right || top >= bottom) return false;
      const isBeside = left >= box.right || right <= box.left;
      const isApart = isBeside || top >= box.bottom || bottom <= box.top;
      // What lies below the list or the inspector is covered by that, and not by the notice.
      return !isApart && !(notice.closest("nav, aside") && !element.closest("nav, aside"));
    })
    .map((element) => element.outerHTML.slice(0, 120));
}"""
CANCEL = re.compile(r"/api/sessions/[^/]+/turns/[^/]+/cancel$|/cancel$")
SESSION = re.compile(r"/api/sessions/[^/]+$")


async def refuse(route: Route) -> None:
    await (route.continue_() if route.request.method == "GET" else route.abort())


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (800, 700), (360, 740)])
async def test_a_notice_covers_nothing_and_goes_when_the_same_was_done(
    chromium: Browser, house: House, width: int, height: int
) -> None:
    size: dict[str, Any] = {"viewport": {"width": width, "height": height}}
    words = f"Go on at {width}"
    house.stage.on(words, Reply(text="On and on " * 200, fault="hang mid-stream", after=20))
    async with person(chromium, house.served.url, state=house.state, **size) as somebody:
        somebody.watch.expects_outage()
        tab = await somebody.opens()
        await tab.say(words)
        await expect(tab.replies.last).to_contain_text("On and on")
        await tab.box.fill("A draft\nof two lines")
        await tab.page.route(CANCEL, refuse)
        await tab.stop.click()
        notice = tab.page.get_by_role("alert")
        await expect(notice).to_contain_text("Cannot reach the server.")
        assert await tab.page.evaluate(COVERED) == []
        # Something else that is done is no answer to it; the same is.
        await tab.button("Queue", exact=True).click()
        await expect(tab.queue).to_contain_text("of two lines")
        await expect(notice).to_be_visible()
        assert await tab.page.evaluate(COVERED) == []
        await tab.button("Remove: A draft").click()
        await expect(tab.queue).to_be_hidden()
        # It is about this session, and not about another one.
        address = tab.page.url
        await tab.page.goto(somebody.url)
        await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
        await expect(notice).to_be_hidden()
        await tab.page.goto(address)
        await tab.stop.click()
        await expect(notice).to_be_visible()
        await tab.page.unroute(CANCEL, refuse)
        await tab.stop.click()
        await tab.settles()
        await expect(notice).to_be_hidden()


async def fails_to_pin(tab: Tab, title: str) -> None:
    await tab.page.route(SESSION, refuse)
    await tab.choose(title, "Pin")
    notice = tab.page.get_by_role("alert")
    await expect(notice).to_contain_text("Cannot reach the server.")
    assert await tab.page.evaluate(COVERED) == []
    await tab.page.unroute(SESSION, refuse)
    await tab.choose(title, "Pin")
    await expect(notice).to_be_hidden()


@pytest.mark.parametrize("width", [1280, 360])
async def test_a_notice_stands_in_the_list_where_that_lies_over_the_page(
    chromium: Browser, house: House, width: int
) -> None:
    words = f"To be pinned at {width}"
    house.stage.on(words, Reply(text="Yes."))
    size: dict[str, Any] = {"viewport": {"width": width, "height": 740}}
    async with person(chromium, house.served.url, state=house.state, **size) as somebody:
        somebody.watch.expects_outage()
        tab = await somebody.opens()
        await tab.say(words)
        await tab.settles()
        if width < 760:
            await tab.button("Sessions", exact=True).click()
        await fails_to_pin(tab, words)
        if width < 760:
            return
        # On the start too, which has no message box at the bottom.
        await tab.starts_anew()
        other = await somebody.opens(tab.page.url)
        await other.choose(words, "Unpin")
        await tab.looks_here()
        await fails_to_pin(tab, words)
