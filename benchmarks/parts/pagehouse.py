"""A home with a long session in it, `keryx serve` over it, a scripted model, and a real browser.

It refuses to know what is measured.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.async_api import (
    Browser,
    BrowserContext,
    StorageState,
    ViewportSize,
    async_playwright,
)

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.store.sqlite import SqliteStore
from keryx.testing.longsession import write_long_session
from keryx.testing.modelserver import MODEL, Call, ModelServer, ReceivedRequest, Reply

MESSAGES: Final = 10_000
LONG_TITLE: Final = "Ten thousand messages"
SHORT_TITLE: Final = "One exchange"
LONG_ID: Final = "s-long"
WAVES: Final = 25
EACH_WAVE: Final = 40
NESTED: Final = WAVES * EACH_WAVE
PACE: Final = 0.01
QUICKLY: Final = re.compile(r"Quickly \d+")
CHROMIUM: Final = "/usr/bin/chromium"
SWITCHES: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEW: Final = ViewportSize(width=1280, height=900)

SCRIPT: Final = f"""\
import time
from keryx_tools import parallel, read_file

for wave in range({WAVES}):
    parallel(read_file, [f"file{{number}}.txt" for number in range({EACH_WAVE})], limit=10)
    time.sleep(0.3)
print("all of them")
"""
SLEEP: Final = "import time\ntime.sleep(600)\n"
_PARAGRAPH: Final = (
    "The reader keeps a *bounded* queue; past its bound it is told to `resync`. " * 5
)
STREAMED: Final = f"""## What I found

{_PARAGRAPH}

```python
async def read(stream: Stream) -> AsyncIterator[Event]:
    async for line in stream:
        yield decode(line)
```

| step | time | result |
|:-----|-----:|--------|
| parse the input | 1.2 ms | fine |
| send it | 120.4 ms | slow |

{_PARAGRAPH}

- one
- two

{_PARAGRAPH}
"""


def answer(asked: ReceivedRequest) -> Reply:
    """By what the person said last."""
    messages = asked.body["messages"]
    if not asked.body.get("tools"):
        return Reply(text="Untitled")
    if messages[-1]["role"] == "tool":
        return Reply(text="They have run.")
    said = str(messages[-1]["content"])
    for words, code in (("Run a thousand", SCRIPT), ("Run nothing", SLEEP)):
        if words in said:
            return Reply(calls=(Call("execute_code", {"code": code, "timeout": 200}),))
    if found := QUICKLY.search(said):
        return Reply(text=f"{STREAMED}\n{found[0]}: done.\n")
    return Reply(text=STREAMED, pace=PACE)


@dataclass(frozen=True, slots=True)
class House:
    """What is measured: the server, and a browser that somebody has logged in with."""

    url: str
    browser: Browser
    state: StorageState

    async def window(self) -> BrowserContext:
        return await self.browser.new_context(storage_state=self.state, viewport=VIEW)


@asynccontextmanager
async def house(folder: Path) -> AsyncGenerator[House]:
    workspace, home = folder / "workspace", folder / "home"
    workspace.mkdir()
    home.mkdir(mode=0o700)
    for number in range(EACH_WAVE):
        (workspace / f"file{number}.txt").write_text(f"line {number}\n" * 20)
    await _fill(home / "keryx.db")
    async with ModelServer(answer, keeps_asked=False) as model, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        async with _served(home, workspace, model.url) as (url, link):
            yield House(url, browser, await _log_in(browser, link))
        await browser.close()


async def _fill(path: Path) -> None:
    scope = Scope("fill")
    bridge = Bridge(scope)
    store = await SqliteStore.open(path, bridge)
    await write_long_session(store, "s-short", messages=2, title=SHORT_TITLE)
    await write_long_session(store, LONG_ID, messages=MESSAGES, title=LONG_TITLE)
    await store.close()
    await bridge.close()
    scope.close()


@asynccontextmanager
async def _served(home: Path, workspace: Path, model_url: str) -> AsyncGenerator[tuple[str, str]]:
    """Its address, and the link that logs in."""
    env = {
        **os.environ,
        "KERYX_HOME": str(home),
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "none",
        "KERYX_MODEL": f"openai:{MODEL}",
    }
    words = ["-m", "keryx", "serve", "--port", "0", "--workspace", str(workspace)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, env=env, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        url, link = [(await process.stdout.readline()).decode().split()[-1] for _ in range(2)]
        yield url, link
    finally:
        process.terminate()
        await process.wait()


async def _log_in(browser: Browser, link: str) -> StorageState:
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(link)
    await page.get_by_role("textbox", name="Message", exact=True).wait_for()
    state = await context.storage_state()
    await context.close()
    return state
