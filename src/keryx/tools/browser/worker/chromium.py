"""Chromium and its pages: starts it, follows new windows, and stops what a page does.

One page is the current one: the newest that is open. Every step in a page goes through `step`, so
that a request that is cancelled ends in the page too, and the page stays usable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from playwright.async_api import (
    Browser,
    BrowserContext,
    CDPSession,
    Dialog,
    Error,
    Frame,
    Page,
    Playwright,
    async_playwright,
)

from .console_log import ConsoleLog
from .downloads import Downloads
from .references import References
from .request_queue import ActionError

T = TypeVar("T")

FLAGS = (
    # The walls around this process take the place of Chromium's own sandbox, which needs rights
    # that nothing has inside them.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
)
SIZE = {"width": 1280, "height": 800}
MOST_PAGES = 8
# Seconds. A page that answers does so in a few milliseconds; these are for a machine that is full.
ANSWER = 1.0
STOPPED = 1.0
REPLACED = 2.0


class Chromium:
    """The browser of one session."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.console = ConsoleLog()
        self.downloads = Downloads(settings["downloads"])
        self.references = References()
        self.notes: list[str] = []
        """Sentences for the next answer."""
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._context: BrowserContext | None = None
        self._pages: list[Page] = []
        self._controls: dict[Page, CDPSession] = {}
        self.ended = asyncio.Event()

    async def start(self) -> None:
        """Start Chromium with one empty page."""
        if self._context is not None:
            return
        self._playwright = await async_playwright().start()
        try:
            browser = self._browser = await self._playwright.chromium.launch(
                executable_path=self._settings["executable"],
                args=list(FLAGS),
                headless=True,
                env=self._settings["environment"],
            )
        except Error as error:
            raise ActionError(f"Chromium did not start: {_cause(error)}") from error
        browser.on("disconnected", lambda _: self.ended.set())
        self._context = await browser.new_context(accept_downloads=True, viewport=SIZE)  # pyright: ignore[reportArgumentType] (a plain dict)
        self._context.set_default_timeout(10_000)
        self._context.on("page", self._opened)
        await self._new_page()

    @property
    def is_running(self) -> bool:
        return self._browser is not None and self._browser.is_connected()

    @property
    def page(self) -> Page:
        """The current page."""
        while self._pages and self._pages[-1].is_closed():
            self._forget(self._pages[-1])
        if not self._pages:
            raise ActionError("no page is open; open one with browser_navigate")
        return self._pages[-1]

    @property
    def has_several_pages(self) -> bool:
        return len(self._pages) > 1

    async def close_page(self) -> None:
        """Close the current page; the one before it is the current one then."""
        page = self.page
        self._forget(page)
        await page.close()

    # -- pages

    async def _new_page(self) -> Page:
        assert self._context is not None
        page = await self._context.new_page()
        self._opened(page)
        await self.control(page)
        return page

    def _opened(self, page: Page) -> None:
        """Follow a new page: ours, or a window that a page opened."""
        if page in self._pages:
            return
        if len(self._pages) >= MOST_PAGES:
            self.notes.append(f"a window was closed again: {MOST_PAGES} are open already")
            _in_background(page.close())
            return
        if self._pages:
            self.notes.append("the page opened a new window, which is shown now")
        self._pages.append(page)
        self.references.forget()
        self.console.watch(page)
        page.on("download", self.downloads.take)
        page.on("dialog", lambda dialog: _in_background(self._answer(dialog)))
        page.on("framenavigated", self._navigated)
        page.on("crash", self._crashed)
        page.on("close", self._forget)

    def _forget(self, page: Page) -> None:
        if page in self._pages:
            self._pages.remove(page)
            self._controls.pop(page, None)
            self.references.forget()

    def _crashed(self, page: Page) -> None:
        self.notes.append("the page crashed and was closed")
        self._forget(page)
        _in_background(page.close())
        if not self._pages:
            _in_background(self._new_page())

    def _navigated(self, frame: Frame) -> None:
        self.references.forget(frames_only=frame.parent_frame is not None)

    async def _answer(self, dialog: Dialog) -> None:
        """Answer a question of the page: no one is there to answer it."""
        if dialog.type in ("alert", "beforeunload"):
            self.console.dialog(dialog, "accepted")
            await dialog.accept()
        else:
            self.console.dialog(dialog, "dismissed")
            self.notes.append(f"the page asked {dialog.message[:200]!r}; it was dismissed")
            await dialog.dismiss()

    async def control(self, page: Page) -> CDPSession:
        """Return the session that reaches the page even while its script runs."""
        control = self._controls.get(page)
        if control is None:
            assert self._context is not None
            control = self._controls[page] = await self._context.new_cdp_session(page)
            await control.send("Page.enable")  # pyright: ignore[reportUnknownMemberType] (of playwright)
        return control

    # -- steps

    async def step(self, work: Awaitable[T]) -> T:
        """Do one step in the page. If it is cancelled, the page stops doing it."""
        step = asyncio.ensure_future(work)  # noqa: TID251 (this process has no scopes)
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            await self._stop(step)
            raise

    async def _stop(self, step: asyncio.Future[Any]) -> None:
        step.add_done_callback(_retrieve)
        page = self.page
        await self._send(page, "Page.stopLoading")
        await self._stop_script(page)
        await asyncio.wait([step], timeout=STOPPED)
        if not step.done() or not await self._answers(page):
            await self._replace(page)

    async def free(self) -> None:
        """Stop the script of a page that is busy: it would keep the next page from loading."""
        page = self.page
        if await self._stop_script(page):
            self.notes.append("the page before was stopped, because its script did not end")
            if not await self._answers(page):
                await self._replace(page)

    async def _stop_script(self, page: Page) -> bool:
        """Return whether the page had to be stopped. One that answers is left alone."""
        if await self._answers(page):
            return False
        await self._send(page, "Runtime.terminateExecution")
        return True

    async def _send(self, page: Page, command: str) -> None:
        """Send a command that a busy page obeys too; `_answers` shows whether it did."""
        try:
            async with asyncio.timeout(STOPPED):
                control = await self.control(page)
                await control.send(command)  # pyright: ignore[reportUnknownMemberType] (of playwright)
        except (Error, TimeoutError):
            pass

    async def _answers(self, page: Page) -> bool:
        """Return whether the page runs a script that we give it."""
        asking = asyncio.ensure_future(page.evaluate("1"))  # noqa: TID251 (this process has no scopes)
        asking.add_done_callback(_retrieve)
        await asyncio.wait([asking], timeout=ANSWER)
        return asking.done() and asking.exception() is None

    async def _replace(self, page: Page) -> None:
        """Close a page that cannot be stopped, with its process, and open an empty one."""
        self._forget(page)
        self.notes.append("the page was closed, because its script did not stop")
        async with asyncio.timeout(REPLACED):
            if not self._pages:
                await self._new_page()
            await page.close()


def _retrieve(ended: asyncio.Future[Any]) -> None:
    """Read the error of a step that nobody waits for any more."""
    if not ended.cancelled():
        ended.exception()


_background: set[asyncio.Future[Any]] = set()


def _in_background(work: Awaitable[Any]) -> None:
    """Do something that an event of playwright asks for; its handlers cannot wait."""
    task = asyncio.ensure_future(work)  # noqa: TID251 (this process has no scopes)
    _background.add(task)
    task.add_done_callback(_background.discard)
    task.add_done_callback(_retrieve)


def _cause(error: Error) -> str:
    """Return why Chromium did not start: its own last words, or playwright's first ones."""
    lines = [line.strip() for line in error.message.splitlines() if line.strip()]
    errors = [line.partition("[err]")[2].strip() for line in lines if "[err]" in line]
    return " ".join([lines[0][:200], *errors[-3:]])[:800]
