"""The ten browser tools. All calls of a session share one browser and run one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import Effects, reads, uses, writes
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.browser import page_text
from keryx.tools.browser.addresses import Address, address_risk, parse_address
from keryx.tools.browser.current_browser import DOWNLOADS, KEY, browser_for, open_browser
from keryx.tools.browser.page_text import ConsoleState, PageState
from keryx.tools.browser.requirements import find_chromium
from keryx.tools.browser.screenshots import screenshot_tool
from keryx.tools.browser.session_browser import BrowserLostError
from keryx.tools.function import tool

Seconds = Annotated[float, msgspec.Meta(gt=0, le=600)]
Windows = Annotated[float, msgspec.Meta(gt=0, le=100)]
LineNumber = Annotated[int, msgspec.Meta(ge=1)]

USES: Final = uses(KEY)
MAY_DOWNLOAD: Final = USES | writes(DOWNLOADS, peers=KEY)
LOOKS: Final = Risk("none", changes=False)
ACTS: Final = Risk("low", "acts on the open page, which may send data to its server", changes=True)
_DIRECTIONS: Final = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}


def browser_tools(home: Path | None = None, *, confined: bool = True) -> list[Tool]:
    """Return all tools; none if there is no Chromium. Reads the disk.

    `home` is the user's folder; `confined`: processes of sessions run confined.
    """
    executable = find_chromium(home, confined=confined)
    if executable is None:
        return []
    return [
        _navigate(executable, confined=confined),
        browser_snapshot,
        browser_click,
        browser_type,
        browser_press,
        browser_scroll,
        browser_back,
        screenshot_tool(),
        browser_console,
        browser_close,
    ]


def _navigate(executable: str, *, confined: bool) -> Tool:
    def effects(args: Any) -> Effects:
        try:
            address = parse_address(args.url)
        except ToolFailedError:
            return USES  # the call itself refuses it
        return MAY_DOWNLOAD | reads(address.path) if address.kind == "file" else MAY_DOWNLOAD

    def risk(args: Any, workspace: Path) -> Risk:
        return address_risk(args.url, workspace, network=args.network or not confined)

    @tool(effects=effects, risk=risk, preview=lambda args: args.url)
    async def browser_navigate(
        url: str,
        context: ToolContext,
        timeout: Seconds = 30.0,  # noqa: ASYNC109 (passed on to the browser)
        *,
        network: bool = False,
    ) -> Any:
        """Open a page in the session's browser, and show it as text with references like [e12].

        The references are for browser_click and browser_type. The network needs a person's
        consent; files of the workspace, and servers that the session itself runs on localhost,
        do not. Files that the page downloads are saved in the folder `downloads`.

        Args:
            url: An address: https://example.com, http://localhost:8000, or file:page.html.
            timeout: Seconds to wait for the page.
            network: For localhost: open a server that a person runs on this machine, with consent.
        """
        address = parse_address(url)
        has_network = context.granted.network or not confined
        if not has_network and (address.kind == "web" or (address.kind == "local" and network)):
            raise ToolFailedError(
                f"this call has no network, so {address.host} cannot be opened; a person must "
                "allow it (in the mode `never` nobody is asked; consent for always counts)"
            )
        target = await _target(context, address)
        params = {"url": target, "seconds": timeout, "most": _most(context)}
        choice = await browser_for(context, executable, network=has_network)
        try:
            state = await choice.browser.request("navigate", PageState, **params)
        except BrowserLostError as error:
            if error.begun:
                raise
            # It ended while it rested, and nobody had noticed yet.
            choice = await browser_for(context, executable, network=has_network)
            state = await choice.browser.request("navigate", PageState, **params)
        return await _shown(context, state, choice.note)

    return browser_navigate


@tool(effects=USES, risk=LOOKS)
async def browser_snapshot(context: ToolContext, start: LineNumber = 1) -> Any:
    """Show the open page as text, with references like [e12] for browser_click and browser_type.

    Args:
        start: The first line to show, to read on in a long page.
    """
    browser = await open_browser(context)
    most = page_text.WHOLE if context.nested else page_text.LONG
    return await _shown(
        context, await browser.request("snapshot", PageState, start=start, most=most)
    )


@tool(effects=MAY_DOWNLOAD, risk=ACTS)
async def browser_click(ref: str, context: ToolContext, *, double: bool = False) -> Any:
    """Click an element of the open page, and show what is there then.

    Args:
        ref: The element's reference from the last snapshot, such as e12.
        double: Click twice.
    """
    browser = await open_browser(context)
    state = await browser.request("click", PageState, ref=ref, double=double, most=_most(context))
    return await _shown(context, state)


@tool(effects=MAY_DOWNLOAD, risk=ACTS, preview=lambda args: f"{args.ref}: {args.text}")
async def browser_type(ref: str, text: str, context: ToolContext, *, submit: bool = False) -> Any:
    """Type text into a field of the open page, in place of what it holds; or choose an option.

    Args:
        ref: The field's reference from the last snapshot, such as e12.
        text: The text, or the label of the option.
        submit: Press Enter afterwards.
    """
    browser = await open_browser(context)
    state = await browser.request(
        "type", PageState, ref=ref, text=text, submit=submit, most=_most(context)
    )
    return await _shown(context, state)


@tool(effects=MAY_DOWNLOAD, risk=ACTS)
async def browser_press(key: str, context: ToolContext, ref: str | None = None) -> Any:
    """Press a key or a combination on the open page.

    Args:
        key: Such as Enter, Escape, ArrowDown, a, or Control+A.
        ref: The element that gets the key; without it, the one that has the focus.
    """
    browser = await open_browser(context)
    state = await browser.request("press", PageState, key=key, ref=ref, most=_most(context))
    return await _shown(context, state)


@tool(effects=USES, risk=LOOKS)
async def browser_scroll(
    context: ToolContext,
    direction: Literal["down", "up", "right", "left"] = "down",
    windows: Windows = 1.0,
    ref: str | None = None,
) -> Any:
    """Scroll the open page. A snapshot holds the whole page; scrolling loads what comes later.

    Args:
        direction: Where to.
        windows: How far, in heights of the window.
        ref: Scroll until this element can be seen, instead.
    """
    browser = await open_browser(context)
    right, down = (part * windows for part in _DIRECTIONS[direction])
    state = await browser.request(
        "scroll", PageState, right=right, down=down, ref=ref, most=_most(context)
    )
    return await _shown(context, state)


@tool(effects=USES, risk=LOOKS)
async def browser_back(context: ToolContext) -> Any:
    """Go back to the page before; in a window that a page opened, close the window."""
    browser = await open_browser(context)
    return await _shown(context, await browser.request("back", PageState, most=_most(context)))


@tool(effects=USES, risk=LOOKS)
async def browser_console(context: ToolContext, *, clear: bool = False) -> Any:
    """Show what the page printed to its console: messages, errors, failed requests, dialogs.

    Args:
        clear: Forget them afterwards.
    """
    browser = await open_browser(context)
    state = await browser.request("console", ConsoleState, clear=clear)
    return msgspec.to_builtins(state) if context.nested else page_text.console_text(state)


@tool(effects=USES, risk=LOOKS)
async def browser_close(context: ToolContext) -> Any:
    """Close the browser with its page, cookies and logins. The next browser_navigate starts one."""
    closed = await context.resources.drop(KEY)
    if context.nested:
        return {"closed": closed}
    return "the browser is closed" if closed else "no browser was open"


def _most(context: ToolContext) -> int:
    return page_text.WHOLE if context.nested else page_text.SHORT


async def _target(context: ToolContext, address: Address) -> str:
    """Return the address for Chromium; a file must be one that the session may read."""
    if address.kind != "file":
        return address.url
    path = await context.to_thread(lambda: context.files.resolve(address.path, write=False))
    if not await context.to_thread(path.exists):
        raise ToolFailedError(f"there is no file {address.path}; name one of the workspace")
    return path.as_uri()


async def _shown(context: ToolContext, state: PageState, note: str = "") -> Any:
    """Return the state of the page, as the caller needs it."""
    if any(download.path for download in state.downloads):
        state = await context.to_thread(page_text.named_downloads, state, context.files)
    if context.nested:
        return page_text.page_fields(state, note)
    return page_text.page_text(state, note)
