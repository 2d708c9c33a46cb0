"""What the current page shows, also after an action that leads to another page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from playwright.async_api import Error, Page, Request
from playwright.async_api import TimeoutError as PlaywrightTimeout

from .chromium import Chromium
from .references import excerpt

# Milliseconds.
SNAPSHOT = 5_000
LOADED = 5_000
# Seconds in which a click starts a navigation or a download, if it does.
REACTION = 0.15
DOWNLOADED = 3.0


class PageView:
    """Waits for the current page, and describes it."""

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium

    @contextlib.asynccontextmanager
    async def reaction(self) -> AsyncGenerator[None]:
        """Do an action, and then wait until the page that it leads to is there."""
        page = self._chromium.page
        requested, arrived = asyncio.Event(), asyncio.Event()
        self._chromium.downloads.started.clear()
        # Playwright reports a window once it has an address; Chromium, when the page asks for it.
        control = await self._chromium.control(page)

        def on_window(_: object) -> None:
            requested.set()

        def on_request(request: Request) -> None:
            if _is_navigation(request, page):
                requested.set()

        def on_failure(request: Request) -> None:
            if _is_navigation(request, page):
                arrived.set()

        def on_arrival(_: object) -> None:
            arrived.set()

        listeners: dict[Any, Callable[[Any], None]] = {
            "request": on_request,
            "requestfailed": on_failure,
            **dict.fromkeys(("domcontentloaded", "download", "close", "popup"), on_arrival),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        control.on("Page.windowOpen", on_window)
        try:
            yield
            await within(REACTION, requested.wait())
            if requested.is_set() and not await within(LOADED / 1000, arrived.wait()):
                self._chromium.notes.append("the next page is still loading")
        finally:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
            control.remove_listener("Page.windowOpen", on_window)
        await self.loaded(self._chromium.page)

    async def loaded(self, page: Page) -> None:
        """Wait for the rest of a page; many pages are useful before they are complete."""
        try:
            await self._chromium.step(page.wait_for_load_state("load", timeout=LOADED))
        except PlaywrightTimeout:
            self._chromium.notes.append("the page is still loading")
        except Error:
            if not page.is_closed():
                raise

    async def state(self, most: int, *, start: int = 1, status: int | None = None) -> Any:
        """Return what the current page shows."""
        chromium = self._chromium
        page = chromium.page
        snapshot = await chromium.step(page.aria_snapshot(mode="ai", timeout=SNAPSHOT))
        while chromium.page is not page:  # a window was opened or closed meanwhile
            page = chromium.page
            await self.loaded(page)
            snapshot = await chromium.step(page.aria_snapshot(mode="ai", timeout=SNAPSHOT))
        lines = chromium.references.text(snapshot)
        text, left_out = excerpt(lines, start, most)
        title = await chromium.step(page.title())
        downloads = await chromium.step(chromium.downloads.report(DOWNLOADED))
        notes = list(chromium.notes)
        chromium.notes.clear()
        return {
            "url": page.url[:2_000],
            "title": title[:500],
            "status": status,
            "snapshot": text,
            "start": start,
            "lines": len(lines),
            "left_out": left_out,
            "downloads": downloads,
            "notes": notes,
        }


async def within(seconds: float, condition: Awaitable[Any]) -> bool:
    """Wait for a condition; return whether it came in time."""
    try:
        async with asyncio.timeout(seconds):
            await condition
    except TimeoutError:
        return False
    return True


def _is_navigation(request: Request, page: Page) -> bool:
    try:
        return request.is_navigation_request() and request.frame == page.main_frame
    except Error:
        return False  # a page that is just being made has no frame yet
