"""Chat Completions over a real connection: what is sent, what is read, what a cancel does."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from keryx.events import Usage
from keryx.messages import (
    AssistantMessage,
    File,
    Image,
    Json,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from keryx.models.http import Clients
from keryx.models.openai import OpenAIModel
from keryx.ports.model import ModelRequest, ToolSpec
from keryx.testing.modelserver import MODEL, Call, ModelServer, ReceivedRequest, Reply
from tests.models.scripted_server import KEY, TOOLS, ask, openai_model, user

HISTORY: tuple[Message, ...] = (
    user("look at both\n\u2028 «ünïcödé» 🎉 \x07"),
    AssistantMessage(
        (Text("I will."),),
        (ToolCall("call00001", "look", '{"path": "a"}'), ToolCall("call00002", "look", "not json")),
        reasoning="two of them",
    ),
    ToolMessage("call00001", (Text("one"), Json(msgspec.Raw(b'{"a":[1]}')))),
    ToolMessage("call00002", ()),
    AssistantMessage((), (ToolCall("call00003", "look"),)),
    ToolMessage("call00003", (Image("hash", "image/png", "x.png"),)),
    AssistantMessage((Text("Done."),)),
    user("thanks"),
)


def offline(**options: Any) -> OpenAIModel:
    async def nobody() -> Any:
        raise AssertionError("nothing is sent")

    return OpenAIModel(
        name="openai:test",
        model="test",
        base_url="http://127.0.0.1/v1",
        api_key=KEY,
        clients=nobody,
        **options,
    )


async def test_text_reasoning_calls_and_usage_come_whole(clients: Clients) -> None:
    usage = Usage(input_tokens=100, output_tokens=20, cached_tokens=64, reasoning_tokens=7)
    reply = Reply(
        text="Hello there, «wörld» 🎉\n",
        reasoning="Let me think.",
        calls=(Call("look", {"path": "a"}, id="x1"), Call("look", {"path": "b"}, id="x2")),
        usage=usage,
        chunk=3,
    )
    async with ModelServer([reply], key=KEY) as server:
        answer = await ask(openai_model(server.url, clients), tools=TOOLS)
    assert answer.text == reply.text
    assert answer.reasoning == reply.reasoning
    assert answer.calls == {0: ["x1", "look", '{"path":"a"}'], 1: ["x2", "look", '{"path":"b"}']}
    assert answer.finished is not None
    assert answer.finished.stop_reason == "tool_calls"
    assert answer.finished.usage == usage
    assert answer.finished.model == "openai:test-model"


async def test_the_body_is_what_a_plain_encoding_would_be(clients: Clients) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    async with ModelServer([Reply(text="ok")]) as server:
        await ask(
            openai_model(server.url, clients),
            *HISTORY,
            tools=TOOLS,
            effort="low",
            max_tokens=99,
            schema=schema,
            extra={"temperature": 0.5, "model": "another", "messages": []},
        )
        (request,) = server.asked
    spec = TOOLS[0]

    def calls(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
        return [
            {"id": id_, "type": "function", "function": {"name": "look", "arguments": arguments}}
            for id_, arguments in pairs
        ]

    two = calls(("call00001", '{"path": "a"}'), ("call00002", "not json"))
    assert request.body == {
        "model": MODEL,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "You are a test."},
            {"role": "user", "content": "look at both\n\u2028 «ünïcödé» 🎉 \x07"},
            {"role": "assistant", "content": "I will.", "tool_calls": two},
            {"role": "tool", "tool_call_id": "call00001", "content": 'one\n{"a":[1]}'},
            {"role": "tool", "tool_call_id": "call00002", "content": ""},
            {"role": "assistant", "content": None, "tool_calls": calls(("call00003", "{}"))},
            {"role": "tool", "tool_call_id": "call00003", "content": "[image/png x.png]"},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "thanks"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": spec.name,
                    "description": spec.description,
                    "parameters": spec.parameters,
                },
            }
        ],
        "temperature": 0.5,
        "reasoning_effort": "low",
        "max_completion_tokens": 99,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": True},
        },
    }
    assert request.headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "additionalProperties": False,
        },
        {"type": "array", "items": [{"type": "object"}]},
    ],
)
async def test_a_schema_that_the_api_would_not_take_as_strict_is_not_called_strict(
    clients: Clients, schema: dict[str, Any]
) -> None:
    async with ModelServer([Reply(text="{}")]) as server:
        await ask(openai_model(server.url, clients), schema=schema)
        assert server.asked[0].body["response_format"]["json_schema"]["strict"] is False


async def test_a_request_without_system_tools_and_options_has_only_what_it_needs(
    clients: Clients,
) -> None:
    async with ModelServer([Reply(text="ok")]) as server:
        await ask(openai_model(server.url, clients, api_key=None), system="")
        (request,) = server.asked
    assert request.body.keys() == {"model", "stream", "stream_options", "messages"}
    assert request.body["messages"] == [{"role": "user", "content": "hello"}]
    assert "Authorization" not in request.headers


async def test_tools_are_encoded_once_while_they_are_the_same_objects(clients: Clients) -> None:
    parameters = {"type": "object"}
    spec = ToolSpec("look", "Look.", parameters)
    other = ToolSpec("look", "Look again.", {"type": "object"})
    async with ModelServer(lambda _: Reply(text="ok")) as server:
        model = openai_model(server.url, clients)
        await ask(model, tools=[spec])
        # Nobody may change it; if it is not sent, it was not read again.
        parameters["title"] = "changed"
        for tools in ((spec,), [other], [spec]):
            await ask(model, tools=tools)
        sent = [request.body["tools"][0]["function"] for request in server.asked]
    assert [tool["description"] for tool in sent] == ["Look.", "Look.", "Look again.", "Look."]
    assert all(tool["parameters"] == {"type": "object", "properties": {}} for tool in sent)


def test_images_are_sent_to_a_model_that_sees_them() -> None:
    model = offline(sees_images=True, blobs={"h1": b"\x89PNG"}.__getitem__)
    message = UserMessage(
        (
            Text("what is"),
            Text("this?"),
            Image("h1", "image/png"),
            Image("lost", "image/png", "gone.png"),
            File("h2", "text/plain", "notes.txt"),
        )
    )
    assert msgspec.json.decode(model.encode(message))["content"] == [
        {"type": "text", "text": "what is\nthis?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        {
            "type": "text",
            "text": "[image/png gone.png: the image does not exist any more]\n"
            "[text/plain notes.txt]",
        },
    ]


@pytest.mark.parametrize("options", [{}, {"blobs": {"h1": b"x"}.__getitem__}])
def test_a_model_that_sees_no_images_is_told_how_to_look(options: dict[str, Any]) -> None:
    message = UserMessage((Text("see"), Image("h1", "image/png", "cat.png")))
    content = msgspec.json.decode(offline(**options).encode(message))["content"]
    assert content == "see\n[image/png cat.png: use vision_analyze to see it]"


def test_a_name_that_a_model_made_up_is_said_back_in_a_form_that_the_api_takes() -> None:
    names = ["functions.read file", "x" * 100, ""]
    calls = tuple(ToolCall(f"c{n}", name, "") for n, name in enumerate(names))
    sent = msgspec.json.decode(offline().encode(AssistantMessage((), calls)))["tool_calls"]
    assert [call["function"]["name"] for call in sent] == [
        "functions_read_file",
        "x" * 64,
        "unknown",
    ]
    assert {call["function"]["arguments"] for call in sent} == {"{}"}


async def test_pieces_that_came_in_one_read_are_one_piece(clients: Clients) -> None:
    reply = Reply(
        text="some words that come in many chunks",
        reasoning="and some thoughts",
        calls=(Call("look", {"path": "a"}), Call("look", {"path": "b"})),
        chunk=1,
        fault="one write",
    )
    async with ModelServer([reply]) as server:
        answer = await ask(openai_model(server.url, clients), tools=TOOLS)
    assert [type(piece).__name__ for piece in answer.pieces] == [
        "ReasoningPiece",
        "TextPiece",
        "CallPiece",
        "CallPiece",
        "Finished",
    ]
    assert answer.text == reply.text


async def test_a_very_large_question_and_a_very_large_answer_pass(clients: Clients) -> None:
    large = "0123456789abcdef" * (1 << 17)  # 2 MiB of question, 32 MiB of answer

    def by_size(request: ReceivedRequest) -> Reply:
        assert len(request.raw) > len(large)
        return Reply(text=large * 16, chunk=1 << 21)

    async with ModelServer(by_size) as server:
        answer = await ask(openai_model(server.url, clients), user(large))
    assert answer.text == large * 16


async def test_the_connection_is_used_again(clients: Clients) -> None:
    async with ModelServer(lambda _: Reply(text="ok")) as server:
        model = openai_model(server.url, clients)
        for _ in range(5):
            await ask(model)
        client = await clients()
        connector = client.connector
        assert connector is not None
        # aiohttp shows what it keeps by no public name; one idle connection means one was made.
        connections: dict[Any, Any] = vars(connector)["_conns"]
        assert [len(idle) for idle in connections.values()] == [1]


async def test_a_hundred_replies_stream_at_once(clients: Clients) -> None:
    def echo(request: ReceivedRequest) -> Reply:
        said = request.body["messages"][-1]["content"]
        return Reply(text=f"{said} " * 20, chunk=7)

    async with ModelServer(echo) as server:
        model = openai_model(server.url, clients)
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(ask(model, user(f"number {n}"))) for n in range(100)]
    for number, answer in enumerate(answers):
        assert answer.result().text == f"number {number} " * 20


def test_a_model_shows_neither_its_key_nor_its_headers() -> None:
    shown = repr(offline(headers={"X-Secret": "another-secret"}))
    assert shown == "OpenAIModel('openai:test')"


def test_a_model_says_what_it_is() -> None:
    model = offline(window=1000, sees_images=True)
    assert (model.name, model.window, model.sees_images) == ("openai:test", 1000, True)
    assert ModelRequest(system="", history=[]).extra == {}
