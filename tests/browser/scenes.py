"""A house with something of everything in it, for those who look at the page."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.async_api import Browser, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.conftest import House
from tests.browser.gates import Gate
from tests.browser.people import Tab, person

PROSE = """## What I found

The **reader** keeps a *bounded* queue; past its bound it is told to resync, see
[the notes](https://example.org/a/rather/long/address/that/does/not/fit/into/one/line/of/a/phone).

| step | time | result |
|:-----|-----:|--------|
| parse the input | 1.2 ms | fine |
| a-very-long-unbroken-name-that-needs-room | 120.4 ms | slow |

```python
async def read(stream: Stream) -> AsyncIterator[Event]:
    async for line in stream:  # a comment that is rather long, so that the block has to scroll
        yield decode(line)
```

> Quoted, with `code` in it.

- one
- two
  1. deeper
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """Addresses of sessions, by what is to be seen there."""

    settled: str
    working: str
    asking: str
    failed: str


async def play(chromium: Browser, house: House, gate: Gate) -> Scene:
    """Make the sessions as a person does. The one that works goes on until the gate is opened."""
    stage = house.stage
    stage.on(
        "Why is the reader slow",
        Reply(
            reasoning="First the queue, then the socket.",
            text="I look at it.",
            calls=(
                Call("terminal", {"command": "ls -la"}),
                Call("read_file", {"path": "missing.py"}),
            ),
        ),
        Reply(text=PROSE, chunk=200),
    )
    stage.on("Build the whole thing", Reply(text="Building.", calls=(gate.call("compiling 1/3"),)))
    ask = {"question": "Which of the two shall I keep?", "choices": ["The old one", "The new one"]}
    stage.on(
        "Tidy up",
        Reply(
            text="Two calls.",
            calls=(Call("terminal", {"command": "touch a-file"}), Call("clarify", ask)),
        ),
    )
    stage.on("Ask in vain", Reply(status=401, message="no such key", code="invalid_api_key"))
    async with person(chromium, house.served.url, state=house.state) as somebody:
        tab = await somebody.opens()
        settled = await _begin(tab, "Why is the reader slow")
        await tab.settles()
        failed = await _begin(tab, "Ask in vain")
        await tab.settles()
        await tab.starts_anew()
        approvals = tab.page.get_by_role("combobox", name="Approvals")
        await approvals.select_option(label="Ask about every change")
        asking = await _begin(tab, "Tidy up", anew=False)
        await expect(tab.asks.get_by_role("group", name="Allow terminal?")).to_be_visible()
        await expect(tab.asks.get_by_role("textbox", name="Answer")).to_be_visible()
        await tab.page.reload()
        working = await _begin(tab, "Build the whole thing")
        await expect(tab.printed("terminal")).to_have_text("compiling 1/3")
        for words in ("Then run the tests", "And tell me what failed"):
            await tab.say(words)
            await expect(tab.queue).to_contain_text(words)
    return Scene(settled, working, asking, failed)


async def _begin(tab: Tab, words: str, *, anew: bool = True) -> str:
    if anew:
        await tab.begin(words)
    else:
        await tab.say(words)
        await expect(tab.said.first).to_have_text(words)
    return tab.page.url
