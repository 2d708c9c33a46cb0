"""A house with something of everything in it, for those who look at the page."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from playwright.async_api import Browser, expect

from keryx.events import Usage
from keryx.testing.modelserver import Call, Reply
from tests.browser.audit_script import (
    CANCELLED,
    CLUSTERS,
    REGIONS,
    REGIONS_FILE,
    audit_calls,
    first_look,
)
from tests.browser.browser_user import STOPPED, Person, Tab, person
from tests.browser.command_gate import Gate, gate
from tests.browser.conftest import House

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
AUDIT = "List the clusters of every region and tell me which ones nobody used in 30 days."
STEER = "no need: regions.toml lists all 13, query them at once"
TURNS = 24
"""Of the long transcript."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Addresses of sessions, by what is to be seen there."""

    settled: str
    working: str
    asking: str
    failed: str
    long: str
    sharing: str


@asynccontextmanager
async def played(chromium: Browser, house: House) -> AsyncGenerator[Scene]:
    """Play the scenes up to where they are worth looking at; what waits goes on afterwards."""
    workspace = house.served.workspace
    (workspace / "regions.toml").write_text(REGIONS_FILE)
    (workspace / "clusters").write_text(CLUSTERS)
    names = ("building", "looking", "at-sa-east-1", "at-ap-south-1", "reviewing")
    async with AsyncExitStack() as stack:
        gates = {name: stack.enter_context(gate(workspace, name)) for name in names}
        async with person(chromium, house.served.url, state=house.state) as somebody:
            tab = await somebody.opens()
            settled = await _settled(tab, house)
            failed = await _failed(tab, house)
            long = await _long(somebody, tab, house)
            asking = await _asking(tab, house)
            working = await _working(tab, house, gates["building"])
            sharing = await _sharing(tab, house, gates["reviewing"])
        yield Scene(settled, working, asking, failed, long, sharing)
        gates["building"].open()
        gates["reviewing"].open()


async def _settled(tab: Tab, house: House) -> str:
    house.stage.on(
        "Why is the reader slow",
        Reply(
            reasoning="Two places come to mind. First the queue, then the socket.",
            text="I look at it.",
            calls=(
                Call("terminal", {"command": "ls -la"}),
                Call("read_file", {"path": "missing.py"}),
            ),
            usage=Usage(input_tokens=74_000, output_tokens=1_000),
        ),
        Reply(text=PROSE, chunk=200, usage=Usage(input_tokens=76_000, output_tokens=3_000)),
    )
    address = await _begin(tab, "Why is the reader slow")
    await tab.settles()
    return address


async def _failed(tab: Tab, house: House) -> str:
    refusal = Reply(status=401, message="no such key", code="invalid_api_key")
    house.stage.on("Ask in vain", refusal)
    address = await _begin(tab, "Ask in vain")
    await tab.settles()
    return address


async def _long(somebody: Person, tab: Tab, house: House) -> str:
    look = Call("terminal", {"command": "wc -l regions.toml"})
    for number in range(TURNS):
        answer = Reply(text=f"Part {number} is read.\n\n" + PROSE, chunk=2_000)
        house.stage.on(f"Read part {number},", Reply(calls=(look, look)), answer)
    address = await _begin(tab, "Read part 0, please")
    url = f"{somebody.url.rstrip('/')}/api/sessions/{tab.session_id}/messages"
    for number in range(1, TURNS):
        data = json.dumps({"text": f"Read part {number}, please", "key": f"part {number}"})
        kind = {"content-type": "application/json", "origin": somebody.url.rstrip("/")}
        answer = await somebody.context.request.post(url, data=data, headers=kind)
        assert answer.ok, await answer.text()
    await expect(tab.transcript.get_by_text(f"Part {TURNS - 1} is read.")).to_be_visible()
    await tab.settles()
    return address


async def _asking(tab: Tab, house: House) -> str:
    ask = {"question": "Which of the two shall I keep?", "choices": ["The old one", "The new one"]}
    touch = Call("terminal", {"command": "touch a-file"})
    house.stage.on("Tidy up", Reply(text="Two calls.", calls=(touch, Call("clarify", ask))))
    await tab.starts_anew()
    await tab.shows_more()
    approvals = tab.page.get_by_role("combobox", name="Approvals")
    await approvals.select_option(label="Ask before every change")
    address = await _begin(tab, "Tidy up", anew=False)
    await expect(tab.asks.get_by_role("group", name="Allow terminal?")).to_be_visible()
    await expect(tab.asks.get_by_role("textbox", name="Answer")).to_be_visible()
    await tab.page.reload()
    return address


async def _sharing(tab: Tab, house: House, reviewing: Gate) -> str:
    """A plan, and two child agents of which one still works."""
    steps = {"Read the report": "done", "Review both halves": "doing", "Write the summary": "open"}
    items = [{"text": text, "status": status} for text, status in steps.items()]
    tasks = ("Review the first half of the report", "Review the second half of the report")
    house.stage.on(
        "Review it together",
        Reply(calls=(Call("todo", {"items": items}),)),
        Reply(calls=(Call("delegate", {"tasks": [{"task": task} for task in tasks]}),)),
        Reply(text="Both are reviewed."),
    )
    house.stage.on(tasks[0], Reply(text="The first half is fine."))
    house.stage.on(tasks[1], Reply(calls=(reviewing.call("page 7"),)), Reply(text="Fine, too."))
    address = await _begin(tab, "Review it together")
    await expect(tab.call("delegate").get_by_role("listitem")).to_have_count(2)
    return address


async def _working(tab: Tab, house: House, building: Gate) -> str:
    reply = Reply(text="Building.", calls=(building.call("compiling 1/3"),))
    house.stage.on("Build the whole thing", reply)
    address = await _begin(tab, "Build the whole thing")
    await expect(tab.printed("terminal")).to_have_text("compiling 1/3")
    for words in ("Then run the tests", "And tell me what failed"):
        await tab.say(words)
        await expect(tab.queue).to_contain_text(words)
    return address


async def audit(tab: Tab, house: House) -> None:
    """As the mock has it, while it runs: steered, thirteen calls of a script, something queued."""
    reading = Call("terminal", {"command": "echo reading; read go < looking"})
    house.stage.on(AUDIT, first_look(reading))
    text = "Right. I'll query all 13 regions from one script, and look up the owners while it runs."
    house.stage.on(STEER, Reply(text=text, calls=audit_calls()))
    await tab.say(AUDIT)
    await expect(tab.printed("terminal").last).to_have_text("reading")
    await tab.say(STEER, "Control+Enter")
    await expect(tab.replies.last).to_contain_text(f"{len(REGIONS)} nested calls, 11 done")
    await tab.button(f"Cancel nested terminal sh clusters {CANCELLED}").click()
    await expect(tab.call("execute_code")).to_contain_text(
        re.compile(f"terminal: ({STOPPED.pattern})")
    )
    await tab.say("then write the result to STALE.md")
    await expect(tab.queue).to_contain_text("STALE.md")


async def _begin(tab: Tab, words: str, *, anew: bool = True) -> str:
    if anew:
        await tab.begin(words)
    else:
        await tab.say(words)
        await expect(tab.said.first).to_have_text(words)
    return tab.page.url
