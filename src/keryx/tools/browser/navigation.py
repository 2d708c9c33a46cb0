"""`browser_navigate`: opens a page, in a browser that has the consent that the page needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import Effects, reads, uses, writes
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.browser.addresses import Address, address_risk, parse_address
from keryx.tools.browser.current_browser import DOWNLOADS, KEY, BrowserChoice, browser_for
from keryx.tools.browser.page_text import PageState, most_characters, shown
from keryx.tools.browser.session_browser import BrowserLostError
from keryx.tools.function import tool

Seconds = Annotated[float, msgspec.Meta(gt=0, le=600)]

MAY_DOWNLOAD: Final = uses(KEY) | writes(DOWNLOADS, peers=KEY)


def navigate_tool(executable: str, *, confined: bool) -> Tool:
    def risk(args: Any, workspace: Path) -> Risk:
        return address_risk(args.url, workspace, network=args.network or not confined)

    @tool(effects=_effects, risk=risk, preview=lambda args: args.url)
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
        params = {"url": target, "seconds": timeout, "most": most_characters(context)}
        choice, state = await _open(context, executable, params, network=has_network)
        return await shown(context, state, choice.note)

    return browser_navigate


def _effects(args: Any) -> Effects:
    try:
        address = parse_address(args.url)
    except ToolFailedError:
        return uses(KEY)  # the call itself refuses it
    return MAY_DOWNLOAD | reads(address.path) if address.kind == "file" else MAY_DOWNLOAD


async def _open(
    context: ToolContext, executable: str, params: dict[str, Any], *, network: bool
) -> tuple[BrowserChoice, PageState]:
    choice = await browser_for(context, executable, network=network)
    try:
        return choice, await choice.browser.request("navigate", PageState, **params)
    except BrowserLostError as error:
        if error.begun:
            raise
        # It ended while it rested, and nobody had noticed yet.
        choice = await browser_for(context, executable, network=network)
        return choice, await choice.browser.request("navigate", PageState, **params)


async def _target(context: ToolContext, address: Address) -> str:
    """Return the address for Chromium; a file must be one that the session may read."""
    if address.kind != "file":
        return address.url
    path = await context.to_thread(lambda: context.files.resolve(address.path, write=False))
    if not await context.to_thread(path.exists):
        raise ToolFailedError(f"there is no file {address.path}; name one of the workspace")
    return path.as_uri()
