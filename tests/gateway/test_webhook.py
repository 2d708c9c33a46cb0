"""A second platform behind the same port: signed JSON over HTTP."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import socket
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from keryx import Keryx
from keryx import events as ev
from keryx.gateway.gateway import running_gateway
from keryx.gateway.webhook.platform import LARGEST_BODY
from keryx.gateway.webhook.signature import is_valid, sign
from keryx.testing.modelserver import ModelServer, ReceivedRequest, Reply
from tests.gateway.chat_home import echo, last_text
from tests.gateway.gateway_program import FAST
from tests.gateway.test_talking import PNG

pytestmark = pytest.mark.promise("chat.1", "chat.4")

SECRET = "a-long-secret-of-tests"
SLOW = Reply(text="word " * 400, pace=0.05)


class Program:
    """A program that posts to the gateway, and takes its answers at an address of its own."""

    def __init__(self, http: aiohttp.ClientSession, app: Keryx) -> None:
        self.http = http
        self.app = app
        self.url = ""
        self.fails = 0
        """How many answers are still taken and then refused."""
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        assert is_valid(SECRET, body, request.headers["X-Keryx-Signature"], time.time())
        await self.received.put(json.loads(body))
        self.fails -= 1
        return web.Response(status=500 if self.fails >= 0 else 200)

    async def post(self, header: str | None = None, **fields: Any) -> int:
        message = {"id": "1", "chat": "c", "person": "ann", **fields}
        body = json.dumps(message).encode()
        value = sign(SECRET, body, time.time()) if header is None else header
        headers = {"X-Keryx-Signature": value}
        async with self.http.post(self.url, data=io.BytesIO(body), headers=headers) as response:
            return response.status

    async def texts(self, count: int) -> list[str]:
        async with asyncio.timeout(20):
            return [(await self.received.get())["text"] for _ in range(count)]


@asynccontextmanager
async def posting(
    path: Path,
    answer: Callable[[ReceivedRequest], Reply] = echo,
    *,
    allow: Sequence[str] = ("ann",),
    owner: Sequence[str] = (),
    extra: str = "",
) -> AsyncGenerator[Program]:
    """A gateway for such a program. `allow`, `owner`: settings of it; `extra`: further tables."""
    program: Program | None = None

    async def take(request: web.Request) -> web.Response:
        assert program is not None
        return await program.take(request)

    answers = web.Application(client_max_size=1 << 26)
    answers.router.add_post("/answers", take)
    runner = web.AppRunner(answers, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener).start()
    home, workspace = path / "home", path / "workspace"
    home.mkdir()
    workspace.mkdir()
    async with (
        AsyncExitStack() as stack,
        ModelServer(answer) as server,
        aiohttp.ClientSession() as http,
    ):
        stack.push_async_callback(runner.cleanup)
        (home / "config.toml").write_text(
            'model = "openai:test-model"\n'
            f'[providers.openai]\nbase_url = "{server.url}"\napi_key = "k"\nimages = ["*"]\n'
            f'{extra}[gateway]\nport = 0\n[gateway.webhook]\nsecret = "{SECRET}"\n'
            f'url = "http://127.0.0.1:{listener.getsockname()[1]}/answers"\n'
            f"allow = {json.dumps(allow)}\nowner = {json.dumps(owner)}\n"
        )
        async with (
            Keryx(home=home, workspace=workspace) as app,
            running_gateway(app.host_client, workspace=str(workspace), tuning=FAST) as gateway,
        ):
            program = Program(http, app)
            program.url = f"http://127.0.0.1:{gateway.listener.port}/webhook"
            while await program.post("") == 404:  # noqa: ASYNC110 (it starts)
                await asyncio.sleep(0.01)
            yield program


async def test_signed_messages_are_answered_once_and_others_refused(tmp_path: Path) -> None:
    async with posting(tmp_path) as program:
        program.fails = 1  # the first answer is taken, and nobody knows
        body = json.dumps({"id": "1", "chat": "c", "person": "ann", "text": "Hello"}).encode()
        assert await program.post("", text="Hello") == 401
        assert await program.post(sign(SECRET, body, time.time() - 3600), text="Hello") == 401
        assert await program.post(sign("wrong", body, time.time()), text="Hello") == 401
        assert await program.post(text="Hello", surprise=1) == 422
        assert await program.post(text="Hello", id="0", person="eve") == 202
        assert await program.post(text="Hello") == 202
        assert await program.post(text="Hello") == 202  # the same id is one message
        async with asyncio.timeout(20):
            answers = [await program.received.get() for _ in range(2)]
        assert [answer["text"] for answer in answers] == ["You said: Hello"] * 2
        assert len({answer["id"] for answer in answers}) == 1  # repeated under one id
        assert len(await program.app.store.sessions()) == 1


async def test_files_come_in_and_bad_ones_are_refused(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        images = re.findall(r"data:image/", request.raw.decode())
        return Reply(text=f"{len(images)} image, {request.raw.count(b'what is this?')} question")

    async with posting(tmp_path, answer) as program:
        image = {
            "name": "a.png",
            "media_type": "image/png",
            "base64": base64.b64encode(PNG).decode(),
        }
        note = {"name": "n.txt", "media_type": "text/plain", "base64": "aGVyb24="}
        assert await program.post(files=[{**image, "base64": "%%%"}]) == 422
        assert await program.post(files=[{**image, "media_type": "image"}]) == 422
        assert await program.post(files=[{**image, "base64": "A" * LARGEST_BODY}]) == 413
        assert await program.post(text="what is this?", files=[image, note]) == 202
        assert await program.texts(1) == ["1 image, 1 question"]
        (row,) = await program.app.store.sessions()
        events = await program.app.store.events(row.session_id)
        (accepted,) = [event for event in events if isinstance(event, ev.MessageAccepted)]
        kinds = [(part.name, part.media_type) for part in accepted.attachments]
        assert kinds == [("a.png", "image/png"), ("n.txt", "text/plain")]


async def test_a_large_file_goes_out(tmp_path: Path) -> None:
    content = b"heron " * 400_000
    async with posting(tmp_path, lambda _: Reply(text="Here: [notes](notes.txt)")) as program:
        (tmp_path / "workspace" / "notes.txt").write_bytes(content)
        assert await program.post(text="Hello") == 202
        async with asyncio.timeout(20):
            answers = [await program.received.get() for _ in range(2)]
        file = answers[1]["file"]
        assert (file["name"], file["media_type"]) == ("notes.txt", "text/plain")
        assert base64.b64decode(file["base64"]) == content


async def test_stop_passes_by_what_waits(tmp_path: Path) -> None:
    def answer(request: ReceivedRequest) -> Reply:
        return SLOW if last_text(request) == "slowly" else echo(request)

    async with posting(tmp_path, answer) as program:
        assert await program.post(text="slowly") == 202
        while not await program.app.store.sessions():  # noqa: ASYNC110 (it starts)
            await asyncio.sleep(0.01)
        (row,) = await program.app.store.sessions()
        async for event in (await program.app.open(row.session_id)).events():
            if isinstance(event, ev.StepStarted):
                break
        assert await program.post(id="2", text="then this") == 202
        assert await program.post(id="3", text="/stop") == 202
        texts = await program.texts(3)
        assert any(text.endswith("Stopped.") for text in texts)
        assert "You said: then this" in texts
