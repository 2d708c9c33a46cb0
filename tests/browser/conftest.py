"""A real Chromium, the real server, and a scripted model. One browser and one server per module."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, StorageState, async_playwright, expect

from keryx.server.page import FOLDER, INDEX
from keryx.testing.left_overs import State
from keryx.testing.modelserver import ModelServer
from tests.browser.browser_user import Person, Tab, person
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True, slots=True)
class House:
    """A server that runs, the model that it asks, and what a browser needs to be let in."""

    served: PageServer
    stage: ScriptedReplies
    state: StorageState


@pytest.fixture(scope="module", autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Looked for when a module is over: its tests share a browser, a server and connections."""
    before = State.now()
    yield
    # A module takes long: others on this machine make theirs meanwhile. `Served` checks its own.
    before = replace(before, temporary=State.now().temporary)
    changes = before.changes()
    if changes:
        pytest.fail("\n".join(changes))


@pytest.fixture(scope="session")
def page_is_built() -> None:
    if not (FOLDER / INDEX).exists():
        pytest.fail(f"the page is not built, there is no {FOLDER / INDEX}: run `make setup`")
    if not CHROMIUM.exists():
        pytest.fail(f"there is no {CHROMIUM}: install it, on Debian with `apt install chromium`")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium(page_is_built: None) -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        await browser.close()


@asynccontextmanager
async def lived_in(
    chromium: Browser, served: PageServer, stage: ScriptedReplies
) -> AsyncGenerator[House]:
    """The server runs, and somebody has logged in."""
    await served.start()
    try:
        async with person(chromium, served.url) as first:
            tab = await first.opens(served.link)
            await expect(tab.box).to_be_visible()
            state = await first.context.storage_state()
        yield House(served, stage, state)
    finally:
        await served.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[House]:
    """One that all tests of a module share; each has sessions of its own in it."""
    stage = ScriptedReplies()
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        served = PageServer(tmp_path_factory.mktemp("house"), model.url)
        async with lived_in(chromium, served, stage) as house:
            yield house


@pytest_asyncio.fixture(loop_scope="module")
async def own_stage() -> AsyncGenerator[tuple[ScriptedReplies, str]]:
    """A model for a server of one's own, and its address."""
    stage = ScriptedReplies()
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        yield stage, model.url


@pytest_asyncio.fixture(loop_scope="module")
async def own_house(
    chromium: Browser, own_stage: tuple[ScriptedReplies, str], tmp_path: Path
) -> AsyncGenerator[House]:
    """One that a test may break; nobody has logged in yet."""
    stage, url = own_stage
    served = PageServer(tmp_path, url)
    await served.start()
    try:
        yield House(served, stage, {})
    finally:
        await served.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def somebody(chromium: Browser, house: House) -> AsyncGenerator[Person]:
    """Somebody who has logged in before."""
    async with person(chromium, house.served.url, state=house.state) as visitor:
        yield visitor


@pytest_asyncio.fixture(loop_scope="module")
async def tab(somebody: Person) -> Tab:
    return await somebody.opens()


@pytest.fixture
def stage(house: House) -> ScriptedReplies:
    return house.stage
