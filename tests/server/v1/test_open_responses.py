"""The cases of the Open Responses compliance suite (openresponses.org), against a real server.

Each case of the suite has a test under its name. The model behind the server is a strict one over
HTTP: it refuses what its API does not take.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import struct
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from keryx.testing.modelserver import Call, ModelServer, Reply
from tests.app.hosts import KEY, configure
from tests.server.served_host import PATIENCE, ROOT, ServedHost, served_host
from tests.server.v1.open_responses import (
    Created,
    FunctionCall,
    Message,
    NamedFunction,
    OutputText,
    Response,
    TextDelta,
    check_order,
    read_stream,
)

pytestmark = pytest.mark.promise("page20.35")

WEATHER: Final[dict[str, Any]] = {
    "type": "function",
    "name": "get_weather",
    "description": "Say how the weather is at a place",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "A city, as `Rome, IT`"}},
        "required": ["location"],
    },
}
NOT_OFFERED: Final = (
    "compact-response",
    "compact-missing-model",
    "websocket-response",
    "websocket-sequential-responses",
    "websocket-continuation",
    "websocket-reconnect-store-false-recovery",
    "websocket-previous-response-not-found",
    "websocket-failed-continuation-evicts-cache",
    "websocket-compact-new-chain",
)


class Served:
    """A server, and the strict model behind it."""

    def __init__(self, host: ServedHost, models: ModelServer) -> None:
        self.host = host
        self.models = models

    async def ask(self, *items: dict[str, Any], **fields: Any) -> Response:
        """Ask for a response; check its form, and that it can be read again."""
        raw = await self.raw(*items, **fields)
        response = msgspec.json.decode(raw, type=Response)
        again = await self.host.client.ask("GET", f"/v1/responses/{response.id}")
        assert json.loads(again.raw) == json.loads(raw)
        return response

    async def raw(self, *items: dict[str, Any], **fields: Any) -> bytes:
        body: dict[str, Any] = {"model": "keryx", "input": items, "keryx": {"tools": []}, **fields}
        answer = await self.host.client.ask("POST", "/v1/responses", json=body)
        assert answer.status == 200, answer.raw
        assert self.models.refused == []
        return answer.raw

    @property
    def seen(self) -> list[tuple[str, str]]:
        """The role and the text of each message that the model has read last."""
        items = [item for item in self.models.asked[-1].body["input"] if "role" in item]
        return [(item["role"], _text(item["content"])) for item in items]


def _text(content: str | list[dict[str, Any]]) -> str:
    parts = [{"text": content}] if isinstance(content, str) else content
    text = " ".join(part["text"] for part in parts if "text" in part)
    return re.sub(r"\[workspace: [^\n]*\]\n", "", text)


@asynccontextmanager
async def served(path: Path, *replies: Reply) -> AsyncGenerator[Served]:
    async with ModelServer(replies, key=KEY) as models:
        configure(path / "home", models.url, "responses")
        with (path / "home/config.toml").open("a") as file:
            file.write('images = ["test-*"]\n')
        async with served_host(path, model="openai:test-model", tools=[]) as host:
            yield Served(host, models)


def message(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **fields}


def text_of(response: Response) -> str:
    """The text of a response that is complete and says just that."""
    assert (response.status, response.error) == ("completed", None)
    assert response.completed_at is not None
    assert response.usage is not None
    assert response.usage.total_tokens == 15
    [item] = response.output
    assert isinstance(item, Message)
    assert item.status == "completed"
    [part] = item.content
    assert isinstance(part, OutputText)
    return part.text


async def test_basic_response(tmp_path: Path) -> None:
    async with served(tmp_path, Reply(text="Hello, dear world!")) as server:
        response = await server.ask(message("user", "Greet me in three words."))
        assert text_of(response) == "Hello, dear world!"
        assert server.seen == [("user", "Greet me in three words.")]


async def test_assistant_phase(tmp_path: Path) -> None:
    async with served(tmp_path, Reply(text="Seven.")) as server:
        response = await server.ask(
            message("assistant", "I look up the number.", phase="commentary"),
            message("assistant", "The number is seven.", phase="final_answer"),
            message("user", "Say the number again."),
        )
        assert text_of(response) == "Seven."
        said = " ".join(text for _, text in server.seen)
        for text in ("I look up the number.", "The number is seven.", "Say the number again."):
            assert text in said


async def test_streaming_response(tmp_path: Path) -> None:
    async with served(tmp_path, Reply(text="one, two, three", chunk=4)) as server:
        events = read_stream(await server.raw(message("user", "Count."), stream=True))
    response = check_order(events)
    assert text_of(response) == "one, two, three"
    assert any(isinstance(event, TextDelta) for event in events)
    first = events[0]
    assert isinstance(first, Created)
    assert (first.response.status, first.response.output) == ("in_progress", [])
    assert first.response.usage is None


async def test_system_prompt(tmp_path: Path) -> None:
    async with served(tmp_path, *[Reply(text="Ahoy!")] * 2) as server:
        system = message("system", "Speak as a sailor does.")
        assert text_of(await server.ask(system, message("user", "Greet me."))) == "Ahoy!"
        assert "Speak as a sailor does." in str(server.models.asked[-1].body["instructions"])
        assert server.seen == [("user", "Greet me.")]
        said = "Be brief."
        response = await server.ask(message("user", "Greet me."), instructions=said)
        assert (text_of(response), response.instructions) == ("Ahoy!", said)
        assert said in str(server.models.asked[-1].body["instructions"])


async def test_tool_calling(tmp_path: Path) -> None:
    call = Call("get_weather", {"location": "Rome, IT"})
    replies = [Reply(text="I look.", calls=(call, call)), Reply(calls=(call,)), Reply(text="Sun.")]
    async with served(tmp_path, *replies) as server:
        ask = message("user", "How is the weather in Rome?")
        raw = await server.raw(ask, tools=[WEATHER], stream=True)
        response = check_order(read_stream(raw))
        assert [type(item) for item in response.output] == [Message, FunctionCall, FunctionCall]
        response = await server.ask(ask, tools=[WEATHER])
        [item] = response.output
        assert isinstance(item, FunctionCall)
        assert (item.name, item.status) == ("get_weather", "completed")
        assert json.loads(item.arguments) == {"location": "Rome, IT"}
        [tool] = response.tools
        assert (tool.name, tool.strict, response.tool_choice) == ("get_weather", None, "auto")
        output = {"type": "function_call_output", "call_id": item.call_id, "output": "sunny"}
        follow_up = await server.ask(output, previous_response_id=response.id)
        assert text_of(follow_up) == "Sun."


@pytest.mark.promise("page20.36")
@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "get_weather"}])
async def test_a_response_must_begin_with_a_call(tmp_path: Path, choice: Any) -> None:
    call = Call("get_weather", {"location": "Rome, IT"})
    async with served(tmp_path, Reply(calls=(call,)), Reply(text="Sun.")) as server:
        ask = message("user", "How is the weather in Rome?")
        response = await server.ask(ask, tools=[WEATHER], tool_choice=choice)
        [item] = response.output
        assert isinstance(item, FunctionCall)
        named = NamedFunction(name="get_weather")
        assert response.tool_choice == (choice if choice == "required" else named)
        output = {"type": "function_call_output", "call_id": item.call_id, "output": "sunny"}
        assert text_of(await server.ask(output, previous_response_id=response.id)) == "Sun."
        choices = [asked.body.get("tool_choice") for asked in server.models.asked]
        assert choices == [choice, None]


def picture() -> str:
    """A red square as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    rows = (b"\x00" + b"\xff\x00\x00" * 8) * 8
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


async def test_image_input(tmp_path: Path) -> None:
    async with served(tmp_path, Reply(text="A red square.")) as server:
        parts = [
            {"type": "input_text", "text": "What is in the picture?"},
            {"type": "input_image", "image_url": picture()},
        ]
        assert text_of(await server.ask(message("user", parts))) == "A red square."
        content = server.models.asked[-1].body["input"][-1]["content"]
        [image] = [part for part in content if part["type"] == "input_image"]
        assert image["image_url"] == picture()


async def test_multi_turn(tmp_path: Path) -> None:
    async with served(tmp_path, Reply(text="You are Alma.")) as server:
        response = await server.ask(
            message("user", "I am called Alma."),
            message("assistant", "Good day, Alma."),
            message("user", "What am I called?"),
        )
        assert text_of(response) == "You are Alma."
        assert server.seen == [
            ("user", "I am called Alma."),
            ("assistant", "Good day, Alma."),
            ("user", "What am I called?"),
        ]


async def test_what_is_not_offered_is_refused_and_the_guide_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as server, asyncio.timeout(PATIENCE):
        client = server.host.client
        compact = {"input": [message("user", "Shorten this.")], "model": "keryx"}
        answer = await client.ask("POST", "/v1/responses/compact", json=compact)
        assert (answer.status, answer.body["error"]["code"]) == (405, "method_not_allowed")
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
        }
        answer = await client.ask("GET", "/v1/responses", headers=headers)
        assert answer.status in (403, 405)
    guide = (ROOT / "docs/openai-api.md").read_text()
    assert all(f"`{name}`" in guide for name in NOT_OFFERED)
