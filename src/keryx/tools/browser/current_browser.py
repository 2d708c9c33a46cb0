"""Which browser a call uses: the one that is open, or a new one for a page to open.

A browser belongs to the consent that it was started with. A page that is opened without consent to
the network gets a browser that has none, and the other way round.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.place import NothingSharedError
from keryx.ports.resources import ResourceContext
from keryx.ports.tool_context import ToolContext
from keryx.tools.browser.session_browser import (
    BrowserLostError,
    BrowserSetup,
    SessionBrowser,
    WorkerProgram,
)

KEY: Final = "browser"
DOWNLOADS: Final = "downloads"

_NO_PAGE: Final = "no page is open; open one with browser_navigate"


class BrowserChoice(msgspec.Struct, frozen=True):
    """A browser, and a note if it had to be started again."""

    browser: SessionBrowser
    note: str = ""


async def open_browser(context: ToolContext) -> SessionBrowser:
    """Return the session's browser; `ToolFailedError` if none is open."""
    browser = await context.resources.get(KEY, _refuse)
    await browser.settled()
    if browser.is_lost:
        await context.resources.drop(KEY)
        raise BrowserLostError(begun=False)
    if browser.setup.workspace != context.workspace:
        raise ToolFailedError(f"the page belongs to another workspace; {_NO_PAGE}")
    return browser


async def browser_for(context: ToolContext, executable: str, *, network: bool) -> BrowserChoice:
    """Return a browser for a new page, with or without the network."""
    setup = BrowserSetup(
        executable=executable,
        workspace=context.workspace,
        network=network,
        environment=dict(context.environment),
        tmp=await _private_folder(context),
        downloads=DOWNLOADS,
    )
    program = await context.to_thread(_program)

    async def start(resource: ResourceContext) -> SessionBrowser:
        return await SessionBrowser.start(setup, program, resource)

    browser = await context.resources.get(KEY, start)
    await browser.settled()
    if not browser.is_lost and _fits(browser.setup, setup):
        return BrowserChoice(browser)
    note = _restart_note(browser, setup)
    await context.resources.drop(KEY)
    return BrowserChoice(await context.resources.get(KEY, start), note)


@functools.cache
def _program() -> WorkerProgram:
    return WorkerProgram.read()


async def _refuse(_: ResourceContext) -> SessionBrowser:
    raise ToolFailedError(_NO_PAGE)


async def _private_folder(context: ToolContext) -> str | None:
    try:
        return (await context.place.private()).inside
    except NothingSharedError:
        return None


def _fits(running: BrowserSetup, setup: BrowserSetup) -> bool:
    return (running.network, running.workspace) == (setup.network, setup.workspace)


def _restart_note(browser: SessionBrowser, setup: BrowserSetup) -> str:
    if browser.is_lost:
        cause = "the one before had ended"
    elif browser.setup.workspace != setup.workspace:
        cause = f"in another workspace ({Path(setup.workspace).name})"
    else:
        cause = "with the network" if setup.network else "without the network"
    return f"[a new browser was started, {cause}; cookies and logins of the one before are gone]"
