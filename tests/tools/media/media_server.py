"""A strict server on loopback that makes and reads media as OpenAI's does."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import BodyPartReader, web

from tests.tools.hanging_tools import PICTURE, SOUND

KEY = "sk-of-the-media-server"
FIELDS = {
    "images/generations": {"model", "prompt", "n", "size"},
    "audio/speech": {"model", "input", "voice", "response_format"},
    "audio/transcriptions": {"model", "language", "prompt", "response_format", "file"},
}
TRANSCRIPT = "The herald speaks."

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Received:
    """One request that the server accepted."""

    function: str
    fields: dict[str, Any]
    file_name: str = ""
    file_type: str = ""


@dataclass
class MediaServer:
    """Refuses what the real one would refuse. `answers` replaces its answers, in order."""

    received: list[Received] = field(default_factory=list[Received])
    answers: list[Answer] = field(default_factory=list[Answer])
    files: dict[str, Answer] = field(default_factory=dict[str, Answer])
    """What it answers to GET, by path."""
    fetched: list[str] = field(default_factory=list[str])
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            self.fetched.append(request.path)
            assert "Authorization" not in request.headers
            file = self.files.get(request.path)
            return web.Response(status=404) if file is None else await file(request)
        function = request.path.removeprefix("/v1/")
        if request.method != "POST" or function not in FIELDS:
            return _refusal(404, f"no such function: {request.method} {request.path}")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return _refusal(401, "Incorrect API key provided")
        received = await _received(request, function)
        unknown = received.fields.keys() - FIELDS[function]
        if unknown or "model" not in received.fields:
            return _refusal(400, f"Unknown parameter: {sorted(unknown)}")
        self.received.append(received)
        if self.answers:
            return await self.answers.pop(0)(request)
        return _answer(received)


async def _received(request: web.BaseRequest, function: str) -> Received:
    if function != "audio/transcriptions":
        assert request.content_type == "application/json"
        return Received(function, await request.json())
    assert request.content_type == "multipart/form-data"
    received = Received(function, {})
    async for part in await request.multipart():
        assert isinstance(part, BodyPartReader)
        data = bytearray()
        while chunk := await part.read_chunk():  # `read` refuses more than 1 MB
            data += chunk
        if part.name == "file":
            received.file_name = part.filename or ""
            received.file_type = part.headers["Content-Type"]
            received.fields["file"] = bytes(data)
        else:
            received.fields[str(part.name)] = data.decode()
    return received


def _answer(received: Received) -> web.Response:
    match received.function:
        case "images/generations":
            image = {"b64_json": base64.b64encode(PICTURE).decode()}
            usage = {"input_tokens": 12, "output_tokens": 272, "total_tokens": 284}
            count = received.fields.get("n", 1)
            return web.json_response({"created": 1, "data": [image] * count, "usage": usage})
        case "audio/speech":
            formats = {"mp3": b"ID3\x04\x00\x00\x00\x00\x00\x00", "wav": SOUND}
            sound = formats.get(received.fields["response_format"], b"OggS\x00\x02")
            return web.Response(body=sound, content_type="audio/mpeg")
        case _:
            usage = {"type": "duration", "seconds": 1}
            return web.json_response({"text": TRANSCRIPT, "usage": usage})


def _refusal(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)


def replying(**options: Any) -> Answer:
    """Answer with this response."""

    async def answer(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(**options)

    return answer


def with_images(*items: dict[str, str]) -> Answer:
    """Answer with these images."""

    async def answer(_request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"created": 1, "data": items})

    return answer


async def endless(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with a body that never ends."""
    response = web.StreamResponse(headers={"Content-Length": str(1 << 30)})
    await response.prepare(request)
    while True:
        await response.write(b"A" * (1 << 16))


async def cut(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with the first half of a body."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"data": [')
    assert request.transport is not None
    request.transport.abort()
    return response


@asynccontextmanager
async def serving() -> AsyncGenerator[MediaServer]:
    media = MediaServer()
    server = web.Server(media.answer, handler_cancellation=True)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        media.port = runner.addresses[0][1]
        yield media
    finally:
        await runner.cleanup()
