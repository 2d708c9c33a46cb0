"""A phone: fingers instead of keys, and a narrow screen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Tab, person
from tests.browser.conftest import House
from tests.browser.test_asking import ASK

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.21")]

PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
}


async def swipes(tab: Tab, start: int, end: int) -> None:
    await tab.page.evaluate(
        """([start, end]) => {
            const at = (x) =>
                new Touch({ identifier: 1, target: document.body, clientX: x, clientY: 300 });
            const fire = (type, touches, x) => document.dispatchEvent(
                new TouchEvent(type, { touches, changedTouches: [at(x)], bubbles: true }));
            fire("touchstart", [at(start)], start);
            fire("touchend", [], end);
        }""",
        [start, end],
    )


async def test_a_phone_has_rows_that_say_what_they_do_and_no_keys(
    chromium: Browser, house: House
) -> None:
    house.stage.on(
        "Work on the phone",
        Reply(calls=(Call("terminal", {"command": "echo from the phone"}),)),
        Reply(text="Worked."),
    )
    async with person(chromium, house.served.url, state=house.state, **PHONE) as somebody:
        tab = await somebody.opens()
        await tab.box.fill("Work on")
        await tab.box.press("Enter")
        await tab.box.press("End")
        await tab.box.type("the phone")
        await expect(tab.box).to_have_value("Work on\nthe phone")
        await tab.box.fill("Work on the phone")
        await tab.button("Send").click()
        await expect(tab.replies.last).to_have_text("Worked.")
        await expect(tab.transcript.get_by_text("echo from the phone").last).to_be_visible()
        await expect(tab.page.locator("kbd:visible")).to_have_count(0)
        await expect(tab.list).to_be_hidden()
        await swipes(tab, 4, 200)
        await expect(tab.list).to_be_visible()
        await expect(tab.list.get_by_text("workspace · ").first).to_be_visible()
        await swipes(tab, 250, 60)
        await expect(tab.list).to_be_hidden()


async def test_all_that_waits_for_a_person_can_be_reached_on_a_low_screen(
    chromium: Browser, house: House
) -> None:
    calls = tuple(Call("terminal", {"command": f"rm -rf nothing-{number}"}) for number in (1, 2))
    house.stage.on("Ask me a lot", Reply(calls=calls))
    async with person(chromium, house.served.url, state=house.state, **PHONE) as somebody:
        tab = await somebody.opens()
        await tab.shows_more()
        await tab.page.get_by_role("combobox", name="Approvals").select_option(label=ASK)
        await tab.say("Ask me a lot")
        await expect(tab.asks.get_by_role("group", name="Allow terminal?")).to_have_count(2)
        await tab.say("And then this")
        await tab.button("Edit: And then this").click()
        await tab.stop.click()
        last = tab.button("Stop and clear the queue")
        await expect(last).to_be_visible()
        footer = tab.page.locator(".footer")
        box = await footer.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= PHONE["viewport"]["height"]
        assert await footer.evaluate("element => element.scrollHeight > element.clientHeight")
        assert await footer.evaluate("element => getComputedStyle(element).overflowY") == "auto"
        await last.click()
        await tab.settles()


async def test_the_page_can_be_installed(chromium: Browser, house: House) -> None:
    async with person(chromium, house.served.url, state=house.state) as somebody:
        tab = await somebody.opens()
        tools: Any = await tab.page.context.new_cdp_session(tab.page)
        manifest = await tools.send("Page.getAppManifest")
        assert manifest["errors"] == []
        content = json.loads(manifest["data"])
        assert (content["name"], content["display"]) == ("Keryx", "standalone")
        for icon in content["icons"]:
            answer = await tab.page.request.get(f"{house.served.url}{icon['src']}")
            assert answer.headers["content-type"] == "image/svg+xml"
        problems = await tools.send("Page.getInstallabilityErrors")
        # The tests' own windows are private ones, which install nothing.
        assert [error["errorId"] for error in problems["installabilityErrors"]] == ["in-incognito"]
