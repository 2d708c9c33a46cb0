"""A model with a public price and a window, as most real ones have both: nothing of it is made up.

The prices are those of the list that Keryx itself reads, so a test asks it too and knows none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, expect

from keryx.events import Usage
from keryx.models.prices import Prices
from keryx.testing.modelserver import ModelServer, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House, lived_in
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies

MODEL: Final = "gpt-4o"
WINDOW: Final = 200_000
PUBLIC: Final = "https://api.openai.com/v1"
CONFIG: Final = """\
model = "shop:{model}"
[providers.shop]
base_url = "{url}"
priced_as = "{public}"
windows = {{ "{model}" = {window} }}
"""
QUESTION: Final = "What do you cost?"
MOST_ASKED: Final = 1_000
"""Only reached by a test that fails."""


@asynccontextmanager
async def priced_house(chromium: Browser, folder: Path) -> AsyncGenerator[House]:
    """A server that knows by now what its model costs, and on which nothing was used."""
    stage = ScriptedReplies()
    async with ModelServer(stage.answer, models=[MODEL], keeps_asked=False) as model:
        served = PageServer(folder, None)
        values = {"model": MODEL, "url": model.url, "public": PUBLIC, "window": WINDOW}
        served.configure(CONFIG.format(**values))
        async with lived_in(chromium, served, stage) as house:
            async with person(chromium, served.url, state=house.state) as first:
                await _until_priced(first, stage)
            yield house


async def _until_priced(somebody: Person, stage: ScriptedReplies) -> None:
    """The list of prices is loaded while the server works, and what was used before has no cost."""
    stage.on(QUESTION, *[Reply(text="Let me see.")] * MOST_ASKED)
    tab = await somebody.opens()
    await tab.begin(QUESTION)
    session = f"/api/sessions/{tab.session_id}"
    for count in range(1, MOST_ASKED):
        await expect(tab.replies).to_have_text(["Let me see."] * count)
        await tab.settles()
        last = (await somebody.asks(f"{session}/messages?limit=1"))["rows"][-1]
        if last["event"]["cost"] is not None:
            break
        await tab.say(QUESTION)
    address = somebody.url.rstrip("/")
    answer = await somebody.context.request.delete(address + session, headers={"origin": address})
    assert answer.ok, await answer.text()
    assert (await somebody.asks("/api/usage"))["rows"] == []


async def cost_of(*used: Usage) -> float:
    """What all that costs, by the public list."""
    prices = Prices()
    await asyncio.to_thread(prices.load)
    costs = [prices.of(PUBLIC, MODEL).cost(usage) for usage in used]
    return sum(cost for cost in costs if cost is not None)


async def used_by(somebody: Person, tab: Tab) -> str:
    """What the session that is open cost, as a person reads what the server tells."""
    view = await somebody.asks(f"/api/sessions/{tab.session_id}")
    return money(view["usage"]["cost"])


def money(dollars: float) -> str:
    return f"${dollars:.2f}"
