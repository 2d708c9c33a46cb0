"""A second platform behind the same port: signed JSON over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from keryx import Keryx
from keryx.gateway.gateway import running_gateway
from keryx.gateway.webhook.signature import is_valid, sign
from keryx.testing.modelserver import ModelServer
from tests.gateway.chat_home import echo
from tests.gateway.gateway_program import FAST

SECRET = "a-long-secret-of-tests"


async def post(http: aiohttp.ClientSession, url: str, header: str | None, **fields: Any) -> int:
    body = json.dumps(fields).encode()
    value = sign(SECRET, body, time.time()) if header is None else header
    async with http.post(url, data=body, headers={"X-Keryx-Signature": value}) as response:
        return response.status


async def test_signed_messages_are_answered_once_and_others_refused(tmp_path: Path) -> None:
    attempts: list[bytes] = []
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        body = await request.read()
        assert is_valid(SECRET, body, request.headers["X-Keryx-Signature"], time.time())
        await received.put(json.loads(body))
        attempts.append(body)
        # The first attempt fails after it was taken.
        return web.Response(status=500 if len(attempts) == 1 else 200)

    app = web.Application()
    app.router.add_post("/answers", take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    await web.SockSite(runner, listener).start()
    home, workspace = tmp_path / "home", tmp_path / "workspace"
    home.mkdir()
    workspace.mkdir()
    async with ModelServer(echo) as server, aiohttp.ClientSession() as http:
        (home / "config.toml").write_text(
            'model = "openai:test-model"\n'
            f'[providers.openai]\nbase_url = "{server.url}"\napi_key = "k"\n'
            f'[gateway]\nport = 0\n[gateway.webhook]\nsecret = "{SECRET}"\n'
            f'url = "http://127.0.0.1:{port}/answers"\nallow = ["ann"]\n'
        )
        async with (
            Keryx(home=home, workspace=workspace) as keryx,
            running_gateway(keryx.host_client, workspace=str(workspace), tuning=FAST) as gateway,
        ):
            url = f"http://127.0.0.1:{gateway.listener.port}/webhook"
            message = {"id": "1", "chat": "c", "person": "ann", "text": "Hello"}
            old = sign(SECRET, json.dumps(message).encode(), time.time() - 3600)
            while await post(http, url, "", **message) == 404:  # noqa: ASYNC110 (it starts)
                await asyncio.sleep(0.01)
            assert await post(http, url, "", **message) == 401
            assert await post(http, url, old, **message) == 401
            assert await post(http, url, None, **message, surprise=1) == 422
            assert await post(http, url, None, **{**message, "id": "0", "person": "eve"}) == 202
            assert await post(http, url, None, **message) == 202
            assert await post(http, url, None, **message) == 202  # the same id is one message
            async with asyncio.timeout(20):
                answers = [await received.get() for _ in range(2)]
            assert [answer["text"] for answer in answers] == ["You said: Hello"] * 2
            assert len({answer["id"] for answer in answers}) == 1  # repeated under one id
    await runner.cleanup()
