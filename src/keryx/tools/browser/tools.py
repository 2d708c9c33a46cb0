"""The browser tools. All calls of a session share one browser and run one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from keryx.ports.effects import uses
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.browser import page_text
from keryx.tools.browser.current_browser import KEY, open_browser
from keryx.tools.browser.navigation import MAY_DOWNLOAD, navigate_tool
from keryx.tools.browser.page_text import ConsoleState, PageState, most_characters, shown
from keryx.tools.browser.requirements import find_chromium
from keryx.tools.browser.screenshots import screenshot_tool
from keryx.tools.function import tool

Windows = Annotated[float, msgspec.Meta(gt=0, le=100)]
LineNumber = Annotated[int, msgspec.Meta(ge=1)]

USES: Final = uses(KEY)
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
        navigate_tool(executable, confined=confined),
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


@tool(effects=USES, risk=LOOKS)
async def browser_snapshot(context: ToolContext, start: LineNumber = 1) -> Any:
    """Show the open page as text, with references like [e12] for browser_click and browser_type.

    Args:
        start: The first line to show, to read on in a long page.
    """
    browser = await open_browser(context)
    most = page_text.WHOLE if context.nested else page_text.LONG
    return await shown(
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
    state = await browser.request(
        "click", PageState, ref=ref, double=double, most=most_characters(context)
    )
    return await shown(context, state)


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
        "type", PageState, ref=ref, text=text, submit=submit, most=most_characters(context)
    )
    return await shown(context, state)


@tool(effects=MAY_DOWNLOAD, risk=ACTS)
async def browser_press(key: str, context: ToolContext, ref: str | None = None) -> Any:
    """Press a key or a combination on the open page.

    Args:
        key: Such as Enter, Escape, ArrowDown, a, or Control+A.
        ref: The element that gets the key; without it, the one that has the focus.
    """
    browser = await open_browser(context)
    state = await browser.request(
        "press", PageState, key=key, ref=ref, most=most_characters(context)
    )
    return await shown(context, state)


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
        "scroll", PageState, right=right, down=down, ref=ref, most=most_characters(context)
    )
    return await shown(context, state)


@tool(effects=USES, risk=LOOKS)
async def browser_back(context: ToolContext) -> Any:
    """Go back to the page before; in a window that a page opened, close the window."""
    browser = await open_browser(context)
    return await shown(
        context, await browser.request("back", PageState, most=most_characters(context))
    )


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
