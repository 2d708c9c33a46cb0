"""How much a browser must fetch for the whole page, with every part of it in use."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect

from keryx.server.page import FOLDER, INDEX
from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.11")]

MOST_BYTES = 250_000
CODE = "```python\nimport this\n```"


class Transferred:
    """Bytes that came over the line, with their headers, by the file that they are."""

    def __init__(self) -> None:
        self.files: dict[str, float] = {}
        self._paths: dict[str, str] = {}

    async def watch(self, page: Page) -> None:
        tools: Any = await page.context.new_cdp_session(page)
        tools.on("Network.requestWillBeSent", self._on_request)
        tools.on("Network.loadingFinished", self._on_finished)
        await tools.send("Network.enable")

    def _on_request(self, event: dict[str, Any]) -> None:
        self._paths[event["requestId"]] = urlsplit(str(event["request"]["url"])).path.lstrip("/")

    def _on_finished(self, event: dict[str, Any]) -> None:
        path = self._paths.get(event["requestId"], "")
        if not path.startswith("api/"):
            self.files[path or INDEX] = event["encodedDataLength"]


def built() -> set[str]:
    return {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}


async def test_all_of_the_page_is_at_most_250_kilobytes_on_the_line(
    somebody: Person, house: House
) -> None:
    house.stage.on(
        "Show me everything",
        Reply(text=CODE, calls=(Call("terminal", {"command": "echo here"}),)),
        Reply(text="That was it."),
    )
    page = await somebody.context.new_page()
    transferred = Transferred()
    await transferred.watch(page)
    await page.goto(somebody.url)
    tab = Tab(page)
    await tab.begin("Show me everything")
    await expect(tab.replies.last).to_have_text("That was it.")
    await expect(tab.replies.first.locator(".hljs-keyword").first).to_be_visible()
    await tab.button("Details of terminal").click()
    await expect(page.get_by_role("tab", name="Call")).to_be_visible()
    await tab.list.get_by_role("button", name="Settings").click()
    await expect(page.get_by_role("region", name="Providers")).to_be_visible()
    assert set(transferred.files) <= built()
    # What only some replies need is fetched with the first of them, and so is another language.
    heavy = ("maths", "katex", "KaTeX", "diagram", "german")
    assert [name for name in transferred.files if any(word in name for word in heavy)] == []
    assert sum(transferred.files.values()) <= MOST_BYTES, transferred.files
