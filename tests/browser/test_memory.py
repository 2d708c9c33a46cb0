"""The memory on the page: read, searched, corrected, confirmed, forgotten; lag and failures."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Route, expect

from keryx.testing.modelserver import Call, ModelServer, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House, lived_in
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies
from tests.browser.test_looks import AXE, LOOKS, Eye
from tests.browser.test_right_to_left import expect_own_directions
from tests.memory.broken_memory import (
    BOOM,
    PROVIDERS,
    break_file,
    configure,
    install_second,
)
from tests.memory.memory_home import MemoryHome

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("003.5")]

MINUTES = 60.0
LOOK_UP = '''
from keryx import tool, uses

@tool(effects=uses("web"))
async def look_up() -> str:
    """Read a page."""
    return "Port 8080."
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def memory_home(tmp_path_factory: pytest.TempPathFactory) -> MemoryHome:
    home = MemoryHome(tmp_path_factory.mktemp("house"))
    home.set_up(path=str(home.stored), refuses="4711")
    (home.path / "tools").mkdir()
    (home.path / "tools" / "web.py").write_text(LOOK_UP)
    return home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(chromium: Browser, memory_home: MemoryHome) -> AsyncGenerator[House]:
    """A server whose memory has the provider of `shelf`; it refuses the code of the door."""
    stage = ScriptedReplies()
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        served = PageServer(
            memory_home.path.parent,
            model.url,
            variables={"PYTHONPATH": memory_home.python_path},
        )
        async with lived_in(chromium, served, stage) as entered:
            yield entered


def conclude(text: str) -> Reply:
    return Reply(calls=(Call("conclude", {"text": text}),))


async def opened(tab: Tab) -> Locator:
    """The dialog, opened as a person opens it."""
    toggle = tab.page.get_by_role("button", name="Sessions", exact=True)
    memory = tab.list.get_by_role("button", name="Memory")
    await expect(toggle.or_(memory).first).to_be_visible()  # the page is there
    if await toggle.is_visible():
        await toggle.click()
    await memory.click()
    dialog = tab.page.get_by_role("dialog", name="Memory")
    await expect(dialog.get_by_role("region", name="Providers")).to_be_visible()
    return dialog


def items(dialog: Locator) -> Locator:
    return dialog.get_by_role("list", name="What is remembered").get_by_role("listitem")


async def test_what_is_remembered_is_read_edited_and_forgotten(tab: Tab, house: House) -> None:
    house.stage.on("I drink tea", conclude("The user drinks green tea."), Reply(text="Noted."))
    await tab.begin("I drink tea")
    await expect(tab.replies.last).to_have_text("Noted.")
    place = tab.page.url
    dialog = await opened(tab)
    tea = items(dialog).filter(has_text="green tea")
    await expect(tea).to_contain_text("Trusted like your own words")
    await dialog.get_by_role("textbox", name="Remember something").fill("The user eats cake.")
    await dialog.get_by_role("button", name="Add").click()
    cake = items(dialog).filter(has_text="eats cake")
    await expect(cake).to_contain_text("Written by you")
    await dialog.get_by_role("searchbox").fill("gre")
    await expect(items(dialog)).to_have_count(1)
    await tea.get_by_role("button", name="Edit").click()
    field = dialog.get_by_role("textbox", name="Text")
    await expect(field).to_be_focused()
    await field.fill("The user drinks green tea without milk.")
    await dialog.get_by_role("button", name="Save").click()
    edited = items(dialog).filter(has_text="without milk")
    await expect(edited).to_contain_text("Written by you")
    await expect(items(dialog)).to_have_count(1)
    await dialog.get_by_role("searchbox").fill("")
    await cake.get_by_role("button", name="Forget").click()
    sure = tab.page.get_by_role("dialog", name="Forget this permanently?")
    await sure.get_by_role("button", name="Cancel").click()
    await expect(cake).to_be_visible()
    await cake.get_by_role("button", name="Forget").click()
    await sure.get_by_role("button", name="Forget").click()
    await expect(cake).to_be_hidden()
    await expect(dialog.get_by_role("heading", name="Memory")).to_be_focused()
    assert tab.page.url == place


@pytest.mark.promise("page20.3")
async def test_memories_in_arabic_are_shown_from_right_to_left(tab: Tab, house: House) -> None:
    house.stage.on("أحب القهوة", conclude("المستخدم يحب القهوة."), Reply(text="حسنا."))
    await tab.begin("أحب القهوة")
    await expect(tab.replies.last).to_have_text("حسنا.")
    dialog = await opened(tab)
    await dialog.get_by_role("textbox", name="Remember something").fill("القهوة ساخنة")
    await expect_own_directions(tab.page, "المستخدم يحب القهوة.")
    coffee = items(dialog).filter(has_text="القهوة")
    await coffee.get_by_role("button", name="Forget").click()
    await expect_own_directions(tab.page)
    await tab.page.keyboard.press("Escape")
    await coffee.get_by_role("button", name="Edit").click()
    await expect_own_directions(tab.page)


async def test_a_memory_that_cannot_be_saved_stays_in_its_field(
    tab: Tab, house: House, somebody: Person
) -> None:
    somebody.watch.expects_outage()
    house.stage.on("I drink water", conclude("The user drinks water."), Reply(text="Noted."))
    await tab.begin("I drink water")
    await expect(tab.replies.last).to_have_text("Noted.")
    dialog = await opened(tab)
    water = items(dialog).filter(has_text="drinks water")
    await water.get_by_role("button", name="Edit").click()

    async def refuse(route: Route) -> None:
        await (route.abort() if route.request.method == "PATCH" else route.continue_())

    await tab.page.route("**/api/memory/*", refuse)
    field = dialog.get_by_role("textbox", name="Text")
    await field.fill("The user drinks cold water.")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Cannot reach the server.")
    await expect(field).to_have_value("The user drinks cold water.")


async def test_what_a_command_said_is_not_trusted_until_a_person_confirms_it(
    somebody: Person, tab: Tab, house: House
) -> None:
    house.stage.on(
        "Look it up",
        Reply(calls=(Call("look_up", {}),)),
        conclude("The server listens on port 8080."),
        Reply(text="Looked up."),
    )
    await tab.begin("Look it up")
    await expect(tab.replies.last).to_have_text("Looked up.")
    other = await somebody.opens()
    dialog = await opened(other)
    port = items(dialog).filter(has_text="8080")
    await expect(port).to_contain_text("Not trusted: from a web page or a command")
    await port.get_by_role("button", name="Confirm").click()
    await expect(port).to_contain_text("Trusted like your own words")
    await expect(port.get_by_role("button", name="Confirm")).to_be_hidden()
    # Where it is from: the link leads to that place of that session.
    await port.get_by_role("link").click()
    await expect(dialog).to_be_hidden()
    await expect(other.replies.last).to_have_text("Looked up.")


async def test_the_inspector_shows_what_the_memory_gave_to_this_turn(
    tab: Tab, house: House
) -> None:
    house.stage.on("I play chess", conclude("The user plays chess."), Reply(text="Noted."))
    await tab.begin("I play chess")
    await expect(tab.replies.last).to_have_text("Noted.")
    house.stage.on("Who plays chess", Reply(text="You do."))
    await tab.begin("Who plays chess")
    await expect(tab.replies.last).to_have_text("You do.")
    await tab.opens_inspector()
    await tab.page.get_by_role("tab", name="Context").click()
    memories = tab.page.get_by_role("list", name="From the memory, for this turn")
    await expect(memories.get_by_role("listitem").filter(has_text="plays chess")).to_have_count(1)


@pytest.mark.parametrize("look", LOOKS)
async def test_the_view_can_be_seen_and_used_with_a_stuck_provider(
    chromium: Browser, house: House, memory_home: MemoryHome, tmp_path: Path, look: str
) -> None:
    async with person(chromium, house.served.url, state=house.state, **LOOKS[look]) as somebody:
        tab = await somebody.opens()
        eye = Eye(tab, tmp_path, look, AXE.read_text())
        dialog = await opened(tab)
        text = f"The code of the {look} door is 4711."
        await dialog.get_by_role("textbox", name="Remember something").fill(text)
        await dialog.get_by_role("button", name="Add").click()
        failed = dialog.get_by_role("list", name="Not stored").get_by_role("listitem")
        await expect(failed.filter(has_text=look)).to_contain_text("Refused · shelf")
        await failed.filter(has_text=look).get_by_role("button", name="Retry").click()
        await expect(failed.filter(has_text=look)).to_contain_text("it is about 4711")
        memory_home.break_file()
        await dialog.get_by_role("textbox", name="Remember something").fill(f"It is {look}.")
        await dialog.get_by_role("button", name="Add").click()
        providers = dialog.get_by_role("region", name="Providers")
        await expect(providers).to_contain_text("in a row")
        memory_home.make_older(12 * MINUTES)
        warning = providers.get_by_role("alert")
        await expect(warning).to_contain_text("shelf has been stuck for 12 min", timeout=15_000)
        await eye.sees("memory", warning)
        await items(dialog).first.get_by_role("button", name="Forget").scroll_into_view_if_needed()
        await eye.sees("memory-items", items(dialog).first)
        memory_home.mend_file()
        await providers.get_by_role("button", name="Try again now").click()
        await expect(warning).to_be_hidden(timeout=15_000)
        assert eye.violations == []


async def test_the_view_says_which_provider_is_left_out_or_that_there_is_no_memory(
    chromium: Browser, own_stage: tuple[ScriptedReplies, str], tmp_path: Path
) -> None:
    home = MemoryHome(tmp_path)
    configure(home, "shelf", "second")
    install_second(home, PROVIDERS["it_is_not_made"])
    stage, url = own_stage
    stage.on("Hello", Reply(text="Hi."))
    served = PageServer(tmp_path, url, variables={"PYTHONPATH": home.python_path})
    async with lived_in(chromium, served, stage) as house:
        async with person(chromium, served.url, state=house.state) as somebody:
            tab = await somebody.opens()
            await tab.begin("Hello")
            await expect(tab.replies.last).to_have_text("Hi.")
            await expect(tab.page.get_by_text(BOOM).first).to_be_visible()
            providers = (await opened(tab)).get_by_role("region", name="Providers")
            await expect(providers.get_by_role("alert")).to_contain_text(BOOM)
            await expect(providers).to_contain_text("Left out: it cannot be used")
        await served.stop()
        break_file(home.path)
        await served.start()
        async with person(chromium, served.url, state=house.state) as somebody:
            tab = await somebody.opens()
            await tab.list.get_by_role("button", name="Memory").click()
            dialog = tab.page.get_by_role("dialog", name="Memory")
            await expect(dialog).to_contain_text("move memory.db")
