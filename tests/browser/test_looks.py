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
from tests.browser.audit_script import REGIONS_FILE
from tests.browser.browser_user import STOPPED, Person, Tab, person
from tests.browser.conftest import House
from tests.browser.full_home import Scene, audit, played
from tests.browser.priced_model import priced_house, used_by

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.9")]

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1440, "height": 900}},
    "narrow": {
        "color_scheme": "light",
        "viewport": {"width": 360, "height": 740},
        "has_touch": True,
        "is_mobile": True,
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[House]:
    """Where a model has a price and a window, so that both are to be seen."""
    async with priced_house(chromium, tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(chromium: Browser, house: House) -> AsyncGenerator[Scene]:
    async with played(chromium, house) as scene:
        yield scene


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
        self.violations: list[str] = []

    async def sees(self, name: str, shown: Locator) -> None:
        """Look once this is shown."""
        await expect(shown).to_be_visible()
        picture = self._folder / f"{self._look}-{name}.png"
        await self._page.screenshot(path=picture)
        keep(picture)
        await self._page.evaluate(self._axe)
        report = await self._page.evaluate("axe.run({ resultTypes: ['violations'] })")
        for violation in report["violations"]:
            if violation["impact"] in ("serious", "critical"):
                where = [node["html"][:160] for node in violation["nodes"]]
                self.violations.append(f"{name}: {violation['id']}: {violation['help']}: {where}")
        wide = await self._page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            self.violations.append(f"{name}: {wide} pixels wider than the window")


async def look_at_the_start(tab: Tab, eye: Eye, *, narrow: bool) -> None:
    await eye.sees("empty", tab.page.get_by_role("heading", name="What can I help with?"))
    await tab.shows_more()
    tools = tab.page.get_by_role("main").get_by_text("Tools", exact=True)
    await tools.click()
    await eye.sees("toolsets", tab.page.get_by_role("checkbox", name="code"))
    await tools.click()
    await tab.box.fill("/")
    await tab.box.press("End")
    await eye.sees("commands", tab.page.get_by_role("listbox", name="Suggestions"))
    await tab.say("/help")
    await eye.sees("help", tab.page.get_by_role("dialog", name="Commands and keys"))
    await tab.page.keyboard.press("Escape")
    await tab.button("Models…").click()
    await eye.sees("models", tab.page.get_by_role("combobox", name="Default model"))
    await tab.button("Add a model server or key").click()
    await eye.sees("more-models", tab.page.get_by_role("form", name="Add an API key"))
    await tab.page.keyboard.press("Escape")
    if narrow:
        await tab.button("Sessions").click()
    await tab.list.get_by_role("button", name="Actions for Ask in vain").click()
    await eye.sees("list", tab.list.get_by_role("button", name="Rename"))
    await tab.list.get_by_role("button", name="Delete").click()
    await eye.sees("deletion", tab.page.get_by_role("dialog", name="Delete this session?"))
    await tab.page.keyboard.press("Escape")
    await tab.page.keyboard.press("Control+k")
    search = tab.page.get_by_role("dialog", name="Search")
    await search.get_by_role("searchbox").fill("reader")
    await eye.sees("search", search.locator("mark").first)


async def look_at_what_is_settled(somebody: Person, tab: Tab, scene: Scene, eye: Eye) -> None:
    await tab.page.goto(scene.settled)
    await tab.page.reload()
    used = tab.page.get_by_role("main").get_by_role("button", name="Usage")
    await expect(used).to_have_text(f"76k of 200k{await used_by(somebody, tab)}")
    await eye.sees("settled", tab.transcript.get_by_text("Quoted, with"))
    await tab.transcript.get_by_role("button", name="Reasoning").click()
    await tab.call("terminal").get_by_role("button", expanded=False).click()
    await eye.sees("unfolded", tab.call("terminal").get_by_role("group", name="Result"))
    await tab.transcript.get_by_role("button", name="Actions for this turn").click()
    await tab.transcript.get_by_role("button", name="Undo this turn").click()
    await eye.sees("undo", tab.page.get_by_role("dialog", name="Undo this turn?"))
    await tab.page.keyboard.press("Escape")
    await tab.button("Session settings").click()
    await eye.sees("settings", tab.page.get_by_role("region", name="Session settings"))
    await tab.page.keyboard.press("Escape")
    await used.click()
    dialog = tab.page.get_by_role("dialog", name="Usage")
    await eye.sees("usage", dialog.get_by_role("region", name="All time").get_by_role("table"))
    await tab.page.keyboard.press("Escape")


async def look_at_work(tab: Tab, house: House, eye: Eye, *, narrow: bool) -> None:
    """Nobody but who was there from the beginning sees each nested call: it is played anew."""
    (house.served.workspace / "regions.toml").write_text(REGIONS_FILE)
    await tab.page.goto(house.served.url)
    await tab.page.reload()
    await audit(tab, house)
    await eye.sees("audit", tab.call("execute_code").get_by_text(STOPPED).last)
    await tab.box.fill("and write down who owns them")
    await eye.sees("steering", tab.button("After this step"))
    await tab.box.fill("")
    await tab.button("Details of execute_code").click()
    inspector = tab.page.get_by_role("complementary", name="Inspector")
    await eye.sees("inspector-call", inspector.get_by_role("group", name="Nested calls"))
    await inspector.get_by_role("tab", name="Files").click()
    await inspector.get_by_role("button", name="regions.toml").click()
    await eye.sees("inspector-files", inspector.locator("pre"))
    await inspector.get_by_role("tab", name="Changes").click()
    await eye.sees("inspector-changes", inspector.get_by_label("Diff of regions.toml"))
    await inspector.get_by_role("button", name="Revert all").click()
    await eye.sees("revert", tab.page.get_by_role("dialog", name="Revert 1 file?"))
    await tab.page.keyboard.press("Escape")
    await inspector.get_by_role("tab", name="Context").click()
    await eye.sees("inspector-context", inspector.get_by_role("group", name="Prompt"))
    await inspector.get_by_role("tab", name="Call").click()
    if narrow:
        await tab.page.keyboard.press("Escape")
    await tab.button("Remove: then write the result").click()
    await expect(tab.queue).to_be_hidden()
    await tab.stop.click()
    await tab.settles()


async def look_at_child_agents(tab: Tab, scene: Scene, eye: Eye) -> None:
    await tab.page.goto(scene.sharing)
    await tab.page.reload()
    plan = tab.page.get_by_role("region", name="Plan")
    agents = tab.call("delegate").get_by_role("button", name="Open the child agent:")
    await eye.sees("agents", agents.nth(1))
    await plan.get_by_role("button", name="Plan").click()
    await eye.sees("plan", plan)
    await agents.filter(has_text="running").click()
    await expect(tab.printed("terminal")).to_have_text("page 7")
    await eye.sees("child", tab.page.get_by_text("Child agent of"))


async def look_at_the_rest(tab: Tab, scene: Scene, eye: Eye) -> None:
    await tab.page.goto(scene.working)
    await eye.sees("working", tab.printed("terminal"))
    await tab.page.goto(scene.asking)
    await eye.sees("asking", tab.asks.get_by_role("textbox", name="Answer"))
    await tab.page.goto(scene.failed)
    await eye.sees("failed", tab.transcript.get_by_role("group", name="The turn failed"))
    await tab.page.goto(scene.long)
    await eye.sees("long", tab.transcript.get_by_text("This turn:").last)
    await tab.transcript.press("PageUp")
    await eye.sees("long-above", tab.button("Jump to latest"))


@pytest.mark.parametrize("look", LOOKS)
async def test_everything_can_be_seen_and_used(
    chromium: Browser, house: House, scene: Scene, axe: str, look: str, tmp_path: Path
) -> None:
    url, narrow = house.served.url, look == "narrow"
    async with person(chromium, url, state=house.state, **LOOKS[look]) as somebody:
        tab = await somebody.opens()
        eye = Eye(tab, tmp_path, look, axe)
        await look_at_the_start(tab, eye, narrow=narrow)
        await look_at_what_is_settled(somebody, tab, scene, eye)
        await look_at_work(tab, house, eye, narrow=narrow)
        await look_at_child_agents(tab, scene, eye)
        await look_at_the_rest(tab, scene, eye)
        assert eye.violations == []
    async with person(chromium, url, **LOOKS[look]) as stranger:
        stranger.watch.expects("401")
        tab = await stranger.opens()
        eye = Eye(tab, tmp_path, look, axe)
        await eye.sees("login", tab.page.get_by_role("form", name="Sign in to Keryx"))
        assert eye.violations == []


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
