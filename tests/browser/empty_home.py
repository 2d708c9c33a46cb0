"""Somebody for whom everything is new: a home with nothing in it, and no model configured."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Locator

from tests.browser.browser_user import TALL, Person, Tab, person
from tests.browser.page_server import PageServer
from tests.browser.test_looks import AXE, LOOKS, Eye


@asynccontextmanager
async def newcomer(
    chromium: Browser, folder: Path, variables: Mapping[str, str] | None = None
) -> AsyncGenerator[tuple[PageServer, Person, Tab]]:
    """Opens the link that `keryx serve` prints on a machine that knows no model."""
    served = PageServer(folder, None, variables=variables)
    await served.start()
    try:
        async with person(chromium, served.url) as somebody:
            yield served, somebody, await somebody.opens(served.link)
    finally:
        await served.stop()


async def look_at(tab: Tab, name: str, shown: Locator, folder: Path) -> None:
    """The same tab, light, dark and as small as a phone; nothing that axe finds is serious."""
    violations: list[str] = []
    for look, options in LOOKS.items():
        await tab.page.emulate_media(color_scheme=options["color_scheme"])
        await tab.page.set_viewport_size(options["viewport"])
        await shown.scroll_into_view_if_needed()
        eye = Eye(tab, folder, look, AXE.read_text())
        await eye.sees(name, shown)
        violations += eye.violations
    await tab.page.emulate_media(color_scheme="light")
    await tab.page.set_viewport_size({"width": TALL["width"], "height": TALL["height"]})
    assert violations == []
