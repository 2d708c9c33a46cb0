"""How each browser tool is made to hang: a server that never answers, or a script that never ends.

`browser_console` and `browser_close` ask nothing of the page, so they cannot hang.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from keryx.messages import ToolCall
from tests.tools.browser.browser_session import BrowserSession, reference
from tests.tools.browser.page_server import Page

STOPS = "the worker stops the script of the page"
HANGING: dict[str, str] = {
    "navigate": "the worker stops the loading of the page; the page before stays",
    "snapshot": STOPS,
    "click": STOPS,
    "type": STOPS,
    "press": STOPS,
    "scroll": STOPS,
    "back": STOPS,
    "screenshot": STOPS,
}
"""How each tool stops, by its short name."""

# The page is shown; then, once the server has answered `go`, its script never gives control back.
BUSY = """<title>Busy</title><label>Field <input></label><button>Button</button><script>
fetch("/{token}/go").then(() => {{
  const request = new XMLHttpRequest();
  request.open("GET", "/{token}/busy", false); request.send();
  while (true) {{}}
}});
</script>"""


@dataclass(frozen=True)
class HangingCall:
    """A call that does not end by itself."""

    call: ToolCall
    hangs: Callable[[], Awaitable[None]]
    """Returns once it hangs, or is sure to."""


async def hang(browser: BrowserSession, name: str) -> HangingCall:
    """Prepare a page in which this tool hangs."""
    token = uuid.uuid4().hex
    if name == "navigate":
        path = f"/never/{token}"
        call = browser.call(name, url=browser.server.url(path), timeout=600)
        return HangingCall(call, lambda: browser.server.wait_for_request(path))
    server = browser.server
    server.pages["/first"] = Page("<title>First</title>")
    server.pages[f"/{token}"] = Page(BUSY.format(token=token))
    server.hold(f"/{token}/go")
    await browser.text("navigate", url=server.url("/first"))
    text = await browser.text("navigate", url=server.url(f"/{token}"))
    arguments: dict[str, dict[str, Any]] = {
        "click": {"ref": reference(text, "Button")},
        "type": {"ref": reference(text, "Field"), "text": "x"},
        "press": {"key": "a"},
    }
    server.release(f"/{token}/go")
    await server.wait_for_request(f"/{token}/busy")
    call = browser.call(name, **arguments.get(name, {}))
    return HangingCall(call, browser.until_busy)
