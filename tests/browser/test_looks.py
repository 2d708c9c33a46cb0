"""How it looks, light, dark and on a phone: pictures for people, axe for the rest.

Pictures are kept in the test's folder, and in $KERYX_SCREENSHOTS if that is set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from keryx.testing.modelserver import Reply
from tests.browser.conftest import House
from tests.browser.gates import gate
from tests.browser.people import Person, Tab, person
from tests.browser.scenes import Scene, play

pytestmark = pytest.mark.asyncio(loop_scope="module")

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 860}},
    "narrow": {
        "color_scheme": "light",
        "viewport": {"width": 360, "height": 740},
        "has_touch": True,
        "is_mobile": True,
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(chromium: Browser, house: House) -> AsyncGenerator[Scene]:
    with gate(house.served.workspace, "building") as closed:
        yield await play(chromium, house, closed)
        closed.open()


@pytest.fixture
def axe() -> str:
    if not AXE.exists():
        pytest.fail(f"there is no {AXE}: run `make setup`")
    return AXE.read_text()


def keep(picture: Path) -> None:
    folder = os.environ.get("KERYX_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, folder)


class Eye:
    """Looks at a tab: takes a picture, and has axe look at it."""

    def __init__(self, tab: Tab, folder: Path, look: str, axe: str) -> None:
        self._page = tab.page
        self._folder = folder
        self._look = look
        self._axe = axe
        self.found: list[str] = []

    async def sees(self, name: str, shown: Locator) -> None:
        """Look once this is shown."""
        await expect(shown).to_be_visible()
        picture = self._folder / f"{self._look}-{name}.png"
        await self._page.screenshot(path=picture)
        keep(picture)
        await self._page.evaluate(self._axe)
        report = await self._page.evaluate("axe.run({ resultTypes: ['violations'] })")
        for each in report["violations"]:
            if each["impact"] in ("serious", "critical"):
                where = [node["html"][:160] for node in each["nodes"]]
                self.found.append(f"{name}: {each['id']}: {each['help']}: {where}")
        wide = await self._page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            self.found.append(f"{name}: {wide} pixels wider than the window")


async def look_around(somebody: Person, tab: Tab, scene: Scene, eye: Eye, *, narrow: bool) -> None:
    await eye.sees("empty", tab.page.get_by_role("heading", name="What shall be done?"))
    if narrow:
        await tab.button("Sessions").click()
    await tab.list.get_by_role("button", name="Actions for Ask in vain").click()
    await eye.sees("list", tab.list.get_by_role("button", name="Rename"))
    await tab.page.keyboard.press("Control+k")
    search = tab.page.get_by_role("dialog", name="Search everything")
    await search.get_by_role("searchbox").fill("reader")
    await eye.sees("search", search.locator("mark").first)
    await tab.page.goto(scene.settled)
    await tab.page.reload()
    await eye.sees("settled", tab.transcript.get_by_text("Quoted, with"))
    await tab.transcript.get_by_role("button", name="Reasoning").click()
    await tab.call("terminal").get_by_role("button", expanded=False).click()
    await eye.sees("unfolded", tab.call("terminal").get_by_role("group", name="Result"))
    await tab.button("Session settings").click()
    await eye.sees("settings", tab.page.get_by_role("region", name="Session settings"))
    await tab.page.goto(scene.working)
    await eye.sees("working", tab.printed("terminal"))
    await tab.page.goto(scene.asking)
    await eye.sees("asking", tab.asks.get_by_role("textbox", name="Answer"))
    await tab.page.goto(scene.failed)
    await eye.sees("failed", tab.transcript.get_by_role("group", name="The turn failed"))


@pytest.mark.parametrize("look", LOOKS)
async def test_everything_can_be_seen_and_used(
    chromium: Browser, house: House, scene: Scene, axe: str, look: str, tmp_path: Path
) -> None:
    url, narrow = house.served.url, look == "narrow"
    async with person(chromium, url, state=house.state, **LOOKS[look]) as somebody:
        tab = await somebody.opens()
        eye = Eye(tab, tmp_path, look, axe)
        await look_around(somebody, tab, scene, eye, narrow=narrow)
        assert eye.found == []
    async with person(chromium, url, **LOOKS[look]) as stranger:
        stranger.watch.expects("401")
        tab = await stranger.opens()
        eye = Eye(tab, tmp_path, look, axe)
        await eye.sees("login", tab.page.get_by_role("form", name="Log in to Keryx"))
        assert eye.found == []


async def test_a_person_chooses_light_or_dark_for_this_browser(somebody: Person, tab: Tab) -> None:
    theme = tab.page.get_by_role("combobox", name="Theme")

    async def paper() -> str:
        return str(await tab.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    await theme.select_option(label="Light")
    light = await paper()
    await theme.select_option(label="Dark")
    dark = await paper()
    assert light != dark
    await tab.page.reload()
    await expect(theme).to_have_value("dark")
    assert await paper() == dark


async def test_a_phone_is_enough_to_talk_and_to_change_sessions(
    chromium: Browser, house: House, scene: Scene
) -> None:
    house.stage.on("Said on the way", Reply(text="Heard."))
    options = LOOKS["narrow"]
    async with person(chromium, house.served.url, state=house.state, **options) as somebody:
        tab = await somebody.opens()
        await expect(tab.list).not_to_be_in_viewport()
        await tab.box.fill("Said on the way")
        await tab.button("Send").tap()
        await expect(tab.replies).to_have_text(["Heard."])
        await tab.button("Sessions").tap()
        await expect(tab.list).to_be_in_viewport()
        await tab.session("Ask in vain").get_by_role("button").first.tap()
        await expect(tab.list).not_to_be_in_viewport()
        await expect(tab.said).to_have_text(["Ask in vain"])
