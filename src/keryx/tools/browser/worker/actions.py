"""What the host can ask for: one method for each tool. Every answer is plain data."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from playwright.async_api import Error, Locator, Page, Request, Response
from playwright.async_api import TimeoutError as PlaywrightTimeout

from .chromium import Chromium
from .references import excerpt
from .request_queue import ActionError

# Milliseconds and seconds. One attempt is short: a cancelled request waits for its end.
ATTEMPT = 300
PATIENCE = 5.0
ACTION = 5_000
SNAPSHOT = 5_000
LOADED = 5_000
# Seconds in which a click starts a navigation or a download, if it does.
REACTION = 0.15
DOWNLOADED = 3.0
ENDED = (
    "the browser has ended: Chromium crashed or was killed. "
    "Open the page again with browser_navigate, which starts a new browser"
)
COVERED = (
    "does not become clickable: it is hidden, disabled, or something covers it; take a new snapshot"
)


class Actions:
    """The requests of the host."""

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium
        self._methods: dict[str, Callable[..., Awaitable[Any]]] = {
            "start": self.start,
            "settle": self.settle,
            "navigate": self.navigate,
            "snapshot": self.snapshot,
            "click": self.click,
            "type": self.type,
            "press": self.press,
            "scroll": self.scroll,
            "back": self.back,
            "screenshot": self.screenshot,
            "console": self.console,
        }

    async def handle(self, method: str, params: dict[str, Any]) -> Any:
        """Do one request."""
        try:
            return await self._methods[method](**params)
        except PlaywrightTimeout as error:
            raise ActionError(
                "the page did not answer in time; its scripts may keep it busy"
            ) from error
        except Error as error:
            if not self._chromium.is_running:
                raise ActionError(ENDED) from error
            raise ActionError(explained(error)) from error

    async def start(self) -> None:
        await self._chromium.start()

    async def settle(self) -> None:
        """Do nothing: the request before this one has ended."""

    async def navigate(self, url: str, seconds: float, most: int) -> dict[str, Any]:
        chromium = self._chromium
        await chromium.free()
        page = chromium.page
        chromium.downloads.started.clear()
        response: Response | None = None
        try:
            response = await chromium.step(
                page.goto(url, timeout=seconds * 1000, wait_until="domcontentloaded")
            )
        except PlaywrightTimeout:
            with contextlib.suppress(Error):
                await chromium.step(page.evaluate("window.stop()"))
            raise ActionError(
                f"{url} did not answer within {seconds:g} seconds; try again, or give more time"
            ) from None
        except Error as error:
            if not _is_download(error):
                raise
            await _within(REACTION, chromium.downloads.started.wait())
        else:
            await self._loaded(page)
        status = None if response is None else response.status
        return await self._state(most, status=status)

    async def snapshot(self, start: int, most: int) -> dict[str, Any]:
        return await self._state(most, start=start)

    async def click(self, ref: str, most: int, *, double: bool = False) -> dict[str, Any]:
        element = await self._element(ref)
        await self._until_clickable(ref, element)
        async with self._reaction():
            if double:
                await self._chromium.step(element.dblclick(timeout=ACTION))
            else:
                await self._chromium.step(element.click(timeout=ACTION))
        return await self._state(most)

    async def type(self, ref: str, text: str, most: int, *, submit: bool) -> dict[str, Any]:
        element = await self._element(ref)
        tag: str = await self._chromium.step(element.evaluate("node => node.tagName"))
        async with self._reaction():
            if tag == "SELECT":
                await self._chromium.step(element.select_option(label=text, timeout=ACTION))
            else:
                await self._fill(ref, element, text)
            if submit:
                await self._chromium.step(element.press("Enter", timeout=ACTION))
        return await self._state(most)

    async def press(self, key: str, most: int, ref: str | None = None) -> dict[str, Any]:
        page = self._chromium.page
        if ref is not None:
            element = await self._element(ref)
            await self._chromium.step(element.focus(timeout=ACTION))
        async with self._reaction():
            await self._chromium.step(page.keyboard.press(key))
        return await self._state(most)

    async def scroll(
        self, right: float, down: float, most: int, ref: str | None = None
    ) -> dict[str, Any]:
        """Scroll by so many windows, or to an element."""
        page, step = self._chromium.page, self._chromium.step
        if ref is not None:
            element = await self._element(ref)
            await step(element.scroll_into_view_if_needed(timeout=ACTION))
        else:
            size = page.viewport_size or {"width": 1280, "height": 800}
            await step(page.mouse.move(size["width"] / 2, size["height"] / 2))
            await step(page.mouse.wheel(right * size["width"], down * size["height"]))
            await asyncio.sleep(REACTION)
        position = await step(page.evaluate(POSITION))
        return {**await self._state(most), "position": position}

    async def back(self, most: int) -> dict[str, Any]:
        chromium = self._chromium
        page = chromium.page
        before = page.url
        response = await chromium.step(page.go_back(timeout=ACTION, wait_until="domcontentloaded"))
        if response is None and page.url == before:
            if not chromium.has_several_pages:
                raise ActionError("there is no earlier page to go back to")
            await chromium.step(chromium.close_page())
            chromium.notes.append("the window was closed; the one before it is shown now")
        return await self._state(most)

    async def screenshot(self, *, whole: bool, ref: str | None = None) -> dict[str, Any]:
        page, step = self._chromium.page, self._chromium.step
        if ref is not None:
            element = await self._element(ref)
            data = await step(element.screenshot(timeout=ACTION))
        else:
            data = await step(page.screenshot(full_page=whole, timeout=2 * ACTION))
        return {"data": base64.b64encode(data).decode(), "url": page.url}

    async def console(self, *, clear: bool) -> dict[str, Any]:
        return self._chromium.console.entries(clear=clear)

    # -- elements

    async def _element(self, ref: str) -> Locator:
        name = self._chromium.references.find(ref)
        if name is not None:
            element = self._chromium.page.locator(f"aria-ref={name}")
            if await self._chromium.step(element.count()):
                return element
        raise ActionError(
            f"there is no element {ref} on the page any more, or there never was; "
            "take a new snapshot with browser_snapshot, and use a reference from it"
        )

    async def _until_clickable(self, ref: str, element: Locator) -> None:
        """Wait in short attempts that click nothing, so that a cancel leaves no click behind."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                await self._chromium.step(element.click(trial=True, timeout=ATTEMPT))
            except PlaywrightTimeout:
                if asyncio.get_running_loop().time() > deadline:
                    raise ActionError(f"{ref} {COVERED}") from None
            else:
                return

    async def _fill(self, ref: str, element: Locator, text: str) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            try:
                await self._chromium.step(element.fill(text, timeout=ATTEMPT))
            except PlaywrightTimeout:
                if asyncio.get_running_loop().time() > deadline:
                    raise ActionError(
                        f"{ref} cannot be typed into: it is hidden, disabled or read-only"
                    ) from None
            else:
                return

    # -- what there is after an action

    @contextlib.asynccontextmanager
    async def _reaction(self) -> AsyncGenerator[None]:
        """Do an action, and then wait until the page that it leads to is there."""
        page = self._chromium.page
        requested, arrived = asyncio.Event(), asyncio.Event()
        self._chromium.downloads.started.clear()

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
            **dict.fromkeys(("domcontentloaded", "download", "close"), on_arrival),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        try:
            yield
            await _within(REACTION, requested.wait())
            if requested.is_set() and not await _within(LOADED / 1000, arrived.wait()):
                self._chromium.notes.append("the next page is still loading")
        finally:
            for event, listener in listeners.items():
                page.remove_listener(event, listener)
        await self._loaded(self._chromium.page)

    async def _loaded(self, page: Page) -> None:
        """Wait for the rest of a page; many pages are useful before they are complete."""
        try:
            await self._chromium.step(page.wait_for_load_state("load", timeout=LOADED))
        except PlaywrightTimeout:
            self._chromium.notes.append("the page is still loading")
        except Error:
            if not page.is_closed():
                raise

    async def _state(self, most: int, *, start: int = 1, status: int | None = None) -> Any:
        """Return what the current page shows."""
        chromium = self._chromium
        page = chromium.page
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


POSITION = """() => ({
  top: Math.round(scrollY), left: Math.round(scrollX), window: innerHeight,
  height: Math.max(document.documentElement.scrollHeight, document.body?.scrollHeight ?? 0)
})"""


async def _within(seconds: float, condition: Awaitable[Any]) -> bool:
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


def _is_download(error: Error) -> bool:
    return "Download is starting" in error.message or "ERR_ABORTED" in error.message


def explained(error: Error) -> str:
    """Return playwright's error as one sentence, without its log of attempts."""
    first = error.message.split("\nCall log:")[0].splitlines()[0]
    _, separator, text = first.partition(": ")
    return text if separator else first
