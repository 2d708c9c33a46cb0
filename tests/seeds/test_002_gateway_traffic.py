"""hermes-agent pull request #2701: the gateway's tools, in many chats at once, for long.

There the tools that ask a model shared clients between event loops: under a gateway with several
chats they hung, or failed with "Event loop is closed". Here all of them work in many chats at the
same time: one minute in the suite, ten minutes with KERYX_SOAK=1.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from keryx.testing.modelserver import Call, ModelServer, ReceivedRequest, Reply
from tests.gateway.bot_api import TOKEN, BotApi
from tests.gateway.chat_home import ROOT, last_text

pytestmark = pytest.mark.promise("002.1", "002.2", "002.4")

_log = logging.getLogger(__name__)

SOAK = os.environ.get("KERYX_SOAK") == "1"
SECONDS = 600.0 if SOAK else 60.0
CHATS = 24
MESSAGES_PER_SESSION = 8
# The first thousand messages fill pools and caches, about 25 MB: on a busy machine the short form
# has sent fewer when it begins to compare.
MOST_GROWTH_KB = (12 if SOAK else 40) * 1024
PATIENCE = 120.0
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M8AAAIBAQDJ/pLvAAAAAElFTkSuQmCC"
)
PAGE = "<html><body><article><p>Tea grows in the hills. " * 20 + "</article></body></html>"
SCRIPT = """
from keryx_tools import web_extract
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    texts = list(pool.map(lambda n: str(web_extract(urls=[URL])), range(4)))
print(all("hills" in text for text in texts))
"""


class Holdings(msgspec.Struct):
    """What the process of the gateway holds at one moment."""

    clients: list[int]
    threads: int
    descriptors: dict[str, int]
    kilobytes: int


def calls(page: str) -> dict[str, Call]:
    """Each tool that is async at its core, with arguments that make it ask a model or a page."""
    question = "Where does tea grow?"
    return {
        "vision_analyze": Call("vision_analyze", {"image": "a.png"}),
        "web_extract": Call("web_extract", {"urls": [page, page], "question": question}),
        "session_search": Call("session_search", {"words": "tea", "question": question}),
        "mixture_of_agents": Call("mixture_of_agents", {"question": question}),
        "delegate": Call("delegate", {"tasks": [{"task": "Say so."}, {"task": "Say so."}]}),
        "execute_code": Call("execute_code", {"code": SCRIPT.replace("URL", repr(page))}),
    }


def answer(request: ReceivedRequest, by_tool: dict[str, Call]) -> Reply:
    """Call the tool that the person names; say how it ended. Every other request gets a line."""
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        failed = '"error"' in last["content"] or "Traceback" in last["content"]
        return Reply(text=f"{last_text(request)}: {last['content'] if failed else 'worked'}")
    words = last_text(request).split()
    if len(words) == 2 and words[0] in by_tool and words[1].isdecimal():
        return Reply(calls=(by_tool[words[0]],))
    return Reply(text="So says the model: in the hills.")


@asynccontextmanager
async def page_server() -> AsyncGenerator[str]:
    async def page(_request: web.Request) -> web.Response:
        return web.Response(text=PAGE, content_type="text/html")

    app = web.Application()
    app.router.add_get("/page", page)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}/page"
    finally:
        await runner.cleanup()


class Program:
    """The gateway's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def holdings(self) -> Holdings:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"?")
        return msgspec.json.decode(await self._process.stdout.readline(), type=Holdings)


@asynccontextmanager
async def gateway(
    folder: Path, api: BotApi, model: ModelServer, page: str
) -> AsyncGenerator[Program]:
    home, workspace = folder / "home", folder / "workspace"
    home.mkdir()
    workspace.mkdir()
    (workspace / "a.png").write_bytes(PICTURE)
    people = list(range(1, CHATS + 1))
    (home / "config.toml").write_text(
        'model = "openai:test-model"\n'
        f'[providers.openai]\nbase_url = "{model.url}"\nimages = ["*"]\n'
        '[models.auxiliary]\nsearch = "openai:test-model"\n'
        f'[tools.web]\nallow_private = ["{page.split("/")[2]}"]\n'
        '[approvals]\nmode = "never"\n'
        f'[gateway.telegram]\ntoken = "{TOKEN}"\napi_url = "{api.url}"\nallow = {people}\n'
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.seeds.traffic_program",
        str(home),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Program(process)
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def talk(api: BotApi, person: int, sent: list[str], until: float) -> None:
    """Send one message after the other, each when the one before is answered."""
    tools = sorted(calls(""))
    while time.monotonic() < until:
        number = len(sent)
        if number % MESSAGES_PER_SESSION == MESSAGES_PER_SESSION - 1:
            api.say(person, "/new")
        text = f"{tools[(person + number) % len(tools)]} {number}"
        sent.append(f"{text}: worked")
        api.say(person, text)
        await api.wait(lambda: len(answers(api, person)) == len(sent), PATIENCE)


def answers(api: BotApi, person: int) -> list[str]:
    """Return the answers that are whole; one that is still streamed ends with dots."""
    names = tuple(calls(""))
    return [
        text
        for text in api.texts(person)
        if text.startswith(names) and ": " in text and not text.endswith("…")
    ]


@pytest.mark.timeout(SECONDS + 240)
async def test_all_async_tools_in_many_chats_at_once(tmp_path: Path) -> None:
    """Nothing hangs, each message is answered in order, and what the process holds stays flat."""
    async with page_server() as page, BotApi() as api:
        by_tool = calls(page)
        async with (
            ModelServer(lambda request: answer(request, by_tool), keeps_asked=False) as model,
            gateway(tmp_path, api, model, page) as program,
        ):
            sent: dict[int, list[str]] = {person: [] for person in range(1, CHATS + 1)}
            measured: list[Holdings] = []
            for share in (1 / 3, 2 / 3):
                until = time.monotonic() + SECONDS * share
                await asyncio.gather(
                    *(talk(api, person, texts, until) for person, texts in sent.items())
                )
                measured.append(await program.holdings())
            for person, expected in sent.items():
                assert answers(api, person) == expected
    before, after = measured
    total = sum(map(len, sent.values()))
    figures: dict[str, Any] = {"messages": total, "before": before, "after": after}
    _log.info("%s", figures)  # shown with --log-cli-level=INFO
    assert total > CHATS
    assert after.clients == before.clients, figures
    # Pools keep what was in use at the same time, so a busier moment may add some; a message not.
    # In each of its clients a chat has at most one connection at a time.
    assert after.threads - before.threads <= CHATS, figures
    growth = Counter(after.descriptors)
    growth.subtract(before.descriptors)
    assert growth.pop("socket") <= CHATS * sum(after.clients), figures
    assert max(growth.values()) <= CHATS, figures
    assert after.kilobytes - before.kilobytes < MOST_GROWTH_KB, figures
