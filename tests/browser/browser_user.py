"""A person at a browser: a window of their own, tabs in it, and an eye on what goes wrong there."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    StorageState,
    WebError,
    expect,
)

PATIENCE_MS = 20_000
"""Only reached by a test that fails."""
TALL = {"width": 1280, "height": 1400}
"""So that a whole session of a test is in view."""
STOPPED = re.compile("cancelled|unknown")
"""How a cancelled process ends: unknown, if a busy machine reports its end too late."""

expect.set_options(timeout=PATIENCE_MS)


class Watch:
    """Errors, dialogs and scripts that must not have run, in any tab of a window."""

    def __init__(self, context: BrowserContext) -> None:
        self._reports: list[str] = []
        self._expected: list[re.Pattern[str]] = []
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("dialog", self._on_dialog)

    def expects(self, pattern: str) -> None:
        """The browser itself reports every answer that is an error, and every lost connection."""
        self._expected.append(re.compile(pattern))

    def expects_outage(self) -> None:
        self.expects(r"Failed to load resource: net::ERR_\w+")
        self.expects(r"WebSocket|net::ERR_")

    @property
    def surprises(self) -> list[str]:
        return [
            report
            for report in self._reports
            if not any(pattern.search(report) for pattern in self._expected)
        ]

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self._reports.append(f"{message.type}: {message.text} ({message.location['url']})")

    def _on_error(self, error: WebError) -> None:
        self._reports.append(f"thrown: {error.error}")

    async def _on_dialog(self, dialog: Dialog) -> None:
        self._reports.append(f"dialog: {dialog.message}")
        await dialog.dismiss()


class Tab:
    """One tab, with what a person finds in it by role and name."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.box = page.get_by_role("textbox", name="Message", exact=True)
        self.transcript = page.get_by_role("region", name="Transcript")
        self.replies = self.transcript.get_by_role("article", name="Reply")
        self.said = self.transcript.get_by_role("article", name="You")
        self.articles = self.transcript.get_by_role("article")
        self.queue = page.get_by_role("list", name="Queued messages")
        self.asks = page.get_by_role("region", name="Waiting for you")
        self.list = page.get_by_role("navigation", name="Sessions")
        self.stop = self.button("Stop")

    def button(self, name: str, *, exact: bool = False) -> Locator:
        return self.page.get_by_role("button", name=name, exact=exact)

    def call(self, tool: str) -> Locator:
        return self.transcript.get_by_role("group", name=tool, exact=True)

    def printed(self, tool: str) -> Locator:
        """What a running call has printed so far; its arguments may hold the same words."""
        return self.call(tool).locator("pre")

    def session(self, title: str) -> Locator:
        """Its line in the list."""
        return self.list.get_by_role("listitem").filter(
            has=self.page.get_by_role("button", name=f"Actions for {title}", exact=True)
        )

    async def looks_here(self) -> None:
        """Browsers draw the tab that is in front; the others get a frame now and then."""
        await self.page.bring_to_front()

    async def say(self, text: str, key: str = "Enter") -> None:
        await self.box.fill(text)
        has_keyboard = await self.page.evaluate("matchMedia('(hover: hover)').matches")
        if key == "Enter" and not has_keyboard:
            await self.page.locator("form[aria-label=Message] [type=submit]").click()
        else:
            await self.box.press(key)

    async def opens_inspector(self) -> None:
        """It opens by itself only when there is something in it."""
        toggle = self.page.get_by_role("button", name="Inspector", exact=True)
        if await toggle.get_attribute("aria-expanded") != "true":
            await toggle.click()

    async def shows_more(self) -> None:
        """Show all settings of the next session."""
        more = self.page.get_by_role("button", name="More", exact=True)
        if await more.get_attribute("aria-expanded") != "true":
            await more.click()

    async def starts_anew(self) -> None:
        await self.list.get_by_role("button", name="New session", exact=True).first.click()
        await expect(self.page.get_by_role("heading", name="What can I help with?")).to_be_visible()

    async def begin(self, text: str) -> None:
        """Open a new session with these words."""
        await self.starts_anew()
        await self.say(text)
        await expect(self.said.first).to_have_text(text)

    async def choose(self, title: str, action: str) -> None:
        """Do this with the session of the list."""
        line = self.session(title)
        await line.get_by_role("button", name=f"Actions for {title}", exact=True).click()
        await line.get_by_role("button", name=action, exact=True).click()

    async def settles(self) -> None:
        """Until the turn is over."""
        await expect(self.button("Send")).to_be_visible()
        await expect(self.stop).to_be_hidden()

    @property
    def session_id(self) -> str:
        match = re.search(r"#/s/([^/]+)", self.page.url)
        assert match is not None, self.page.url
        return match[1]


class Person:
    """Somebody with a window of their own."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.watch = Watch(context)
        self.url = url

    async def opens(self, address: str | None = None) -> Tab:
        """A new tab at this address, or at the page as it is bookmarked."""
        page = await self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        await page.goto(address or self.url)
        return Tab(page)

    async def asks(self, path: str) -> Any:
        """What the API answers to whoever is logged in here."""
        answer = await self.context.request.get(self.url.rstrip("/") + path)
        assert answer.ok, await answer.text()
        return await answer.json()

    async def check(self) -> None:
        """Nothing ran that must not, and nothing went wrong that was not expected."""
        for page in self.context.pages:
            assert await page.evaluate("window.__pwned") is None
        assert self.watch.surprises == [], self.watch.surprises


@asynccontextmanager
async def person(
    browser: Browser, url: str, *, state: StorageState | None = None, **options: Any
) -> AsyncGenerator[Person]:
    """Somebody who is logged in if the state says so. The checks are done when they leave."""
    usual: dict[str, Any] = {"viewport": TALL, "reduced_motion": "reduce"}
    context = await browser.new_context(storage_state=state, **usual | options)
    try:
        somebody = Person(context, url)
        yield somebody
        await somebody.check()
    finally:
        await context.close()


async def printed_by_the_browser(tab: Tab) -> str:
    """What is on paper when the browser prints by itself, as its menu does."""
    await tab.page.evaluate("""() => matchMedia("print").addEventListener("change", () => {
      window.__printed = document.querySelector(".transcript").innerText;
    }, { once: true })""")
    await tab.page.pdf()
    return str(await tab.page.evaluate("window.__printed"))
