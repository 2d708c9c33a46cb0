"""What the host can ask for: one method for each tool. Every answer is plain data."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import Error, Locator, Response
from playwright.async_api import TimeoutError as PlaywrightTimeout

from .chromium import Chromium
from .page_view import REACTION, PageView, within
from .request_queue import ActionError

# Milliseconds and seconds. One attempt is short: a cancelled request waits for its end.
ATTEMPT = 300
PATIENCE = 5.0
ACTION = 5_000
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
        self._view = PageView(chromium)
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
            await within(REACTION, chromium.downloads.started.wait())
        else:
            await self._view.loaded(page)
        status = None if response is None else response.status
        return await self._view.state(most, status=status)

    async def snapshot(self, start: int, most: int) -> dict[str, Any]:
        return await self._view.state(most, start=start)

    async def click(self, ref: str, most: int, *, double: bool = False) -> dict[str, Any]:
        element = await self._element(ref)
        await self._until_clickable(ref, element)
        async with self._view.reaction():
            if double:
                await self._chromium.step(element.dblclick(timeout=ACTION))
            else:
                await self._chromium.step(element.click(timeout=ACTION))
        return await self._view.state(most)

    async def type(self, ref: str, text: str, most: int, *, submit: bool) -> dict[str, Any]:
        element = await self._element(ref)
        tag: str = await self._chromium.step(element.evaluate("node => node.tagName"))
        async with self._view.reaction():
            if tag == "SELECT":
                await self._chromium.step(element.select_option(label=text, timeout=ACTION))
            else:
                await self._fill(ref, element, text)
            if submit:
                await self._chromium.step(element.press("Enter", timeout=ACTION))
        return await self._view.state(most)

    async def press(self, key: str, most: int, ref: str | None = None) -> dict[str, Any]:
        page = self._chromium.page
        if ref is not None:
            element = await self._element(ref)
            await self._chromium.step(element.focus(timeout=ACTION))
        async with self._view.reaction():
            await self._chromium.step(page.keyboard.press(key))
        return await self._view.state(most)

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
        return {**await self._view.state(most), "position": position}

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
        return await self._view.state(most)

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


POSITION = """() => ({
  top: Math.round(scrollY), left: Math.round(scrollX), window: innerHeight,
  height: Math.max(document.documentElement.scrollHeight, document.body?.scrollHeight ?? 0)
})"""


def _is_download(error: Error) -> bool:
    return "Download is starting" in error.message or "ERR_ABORTED" in error.message


def explained(error: Error) -> str:
    """Return playwright's error as one sentence, without its log of attempts."""
    first = error.message.split("\nCall log:")[0].splitlines()[0]
    _, separator, text = first.partition(": ")
    return text if separator else first
