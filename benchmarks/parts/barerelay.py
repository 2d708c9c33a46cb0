"""The floor of a server: each stream is a bare exchange with the model, passed on as it comes.

`uvicorn barerelay:app`, with the model server's address in `MODEL_URL`. It knows no session, writes
nothing down, and has one reader for each exchange.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import aiohttp
import msgspec

from parts.floor import decode_chunk, new_client

Message = MutableMapping[str, Any]
_clients: dict[str, aiohttp.ClientSession] = {}


async def app(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    if scope["type"] != "http":
        return
    client = _clients.setdefault("one", new_client())
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
    model = scope["path"].rpartition("/")[2]
    request = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    url = f"{os.environ['MODEL_URL']}/chat/completions"
    pending = b""
    async with client.post(url, data=msgspec.json.encode(request)) as answer:
        async for data in answer.content.iter_any():
            *lines, pending = (pending + data).split(b"\n")
            chunks = [decode_chunk(line[6:]) for line in lines if line.startswith(b"data: {")]
            texts = (choice.delta.content for chunk in chunks for choice in chunk.choices)
            if text := "".join(filter(None, texts)):
                body = b"event: text.delta\ndata: %b\n\n" % msgspec.json.encode({"text": text})
                await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
