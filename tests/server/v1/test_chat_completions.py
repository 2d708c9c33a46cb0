"""Chat completions, with OpenAI's own client for Python against a real server."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from keryx.messages import ToolChoice
from tests.server.served_host import ServedHost
from tests.server.v1.scripted_agent import CHAT_TOOL, ScriptedAgent, served_agent, texts

pytestmark = pytest.mark.promise("page20.30")

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360f8cf500f0003860180a65d4b3c0000000049454e44ae426082"
    )
).decode()


@pytest.fixture
def agent() -> ScriptedAgent:
    return ScriptedAgent()


@pytest.fixture
async def served(tmp_path: Path, agent: ScriptedAgent) -> AsyncGenerator[tuple[Any, ServedHost]]:
    async with served_agent(tmp_path, agent) as pair:
        yield pair


@pytest.fixture
def client(served: tuple[Any, ServedHost]) -> Any:
    return served[0]


async def ask(client: Any, *messages: Any, **options: Any) -> Any:
    said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    return await client.chat.completions.create(**{"model": "keryx", **options}, messages=said)


async def test_an_agent_answers_as_a_model(
    served: tuple[Any, ServedHost], agent: ScriptedAgent
) -> None:
    client, host = served
    answer = await ask(client, "hello")
    assert answer.object == "chat.completion"
    assert answer.model == "keryx"
    assert answer.choices[0].message.content == "You said: hello"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 7)
    assert answer.usage.total_tokens == 18
    assert answer.usage.prompt_tokens_details.cached_tokens == 3
    assert answer.usage.completion_tokens_details.reasoning_tokens == 2
    # Its session is in the archive, where it does not crowd the list.
    assert (await host.client.get("/api/sessions"))["sessions"] == []
    [row] = (await host.client.get("/api/sessions?archived=true"))["sessions"]
    assert (row["title"], row["archived"]) == ("API: hello", True)
    assert agent.requests[0].max_tokens is None


async def test_the_models_are_listed(client: Any) -> None:
    names = [model.id async for model in client.models.list()]
    assert names == ["keryx", "scripted:agent"]
    assert (await client.models.retrieve("scripted:agent")).id == "scripted:agent"
    with pytest.raises(openai.NotFoundError) as caught:
        await client.models.retrieve("gpt-5")
    assert caught.value.code == "model_not_found"
    assert (await ask(client, "hello", model="scripted:agent")).model == "scripted:agent"


async def test_an_answer_streams_in_chunks(client: Any) -> None:
    stream = await ask(client, "hello", stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == "You said: hello"
    assert len([piece for piece in pieces if piece]) > 1
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert reasons == [None] * (len(reasons) - 1) + ["stop"]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 18
    plain = [chunk async for chunk in await ask(client, "hello", stream=True)]
    assert all(chunk.usage is None for chunk in plain)


async def test_earlier_messages_are_the_history_and_system_messages_instruct(
    client: Any, agent: ScriptedAgent
) -> None:
    earlier = {"role": "assistant", "content": "Hi Alice."}
    answer = await ask(client, "I am Alice", earlier, "history")
    assert answer.choices[0].message.content == (
        "user: I am Alice | assistant: Hi Alice. | user: history"
    )
    system = {"role": "system", "content": "Talk like a pirate."}
    await ask(client, system, "instructions")
    assert agent.requests[-1].system.endswith("Talk like a pirate.")


async def test_keryx_uses_its_own_tools_behind_the_answer(client: Any) -> None:
    answer = await ask(client, "shout")
    assert answer.choices[0].message.content == "I shout.\n\nThe results are HELLO."
    assert answer.choices[0].message.tool_calls is None
    stream = await ask(client, "shout", stream=True)
    pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(pieces) == "I shout.\n\nThe results are HELLO."


async def test_a_call_that_needs_approval_is_refused(client: Any) -> None:
    answer = await ask(client, "danger")
    text = answer.choices[0].message.content
    assert "nobody is there to answer; the user can allow such calls with a rule" in text
    assert "it was done" not in text


async def test_the_tools_of_keryx_can_be_switched_off(client: Any) -> None:
    async def tools(**options: Any) -> Any:
        return (await ask(client, "tools", **options)).choices[0].message.content

    assert await tools() == "shout danger"
    assert await tools(tools=[CHAT_TOOL]) == "shout danger get_weather"
    assert await tools(extra_body={"keryx": {"tools": ["shout"]}}) == "shout"
    off: Any = {"keryx": {"tools": []}}
    assert await tools(tools=[CHAT_TOOL], extra_body=off) == "get_weather"
    assert await tools(tools=[CHAT_TOOL], tool_choice="none") == ""


@pytest.mark.promise("page20.36")
@pytest.mark.parametrize("name", ["", "get_weather"])
async def test_the_first_reply_must_call_a_function_of_the_client(
    client: Any, agent: ScriptedAgent, name: str
) -> None:
    function = {"type": "function", "function": {"name": name}}
    choice = function if name else "required"
    said: list[Any] = [{"role": "user", "content": "weather please"}]
    options: Any = {"model": "keryx", "tools": [CHAT_TOOL], "tool_choice": choice}
    first = await client.chat.completions.create(messages=said, **options)
    message = first.choices[0].message
    [call] = message.tool_calls
    said += [
        message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    second = await client.chat.completions.create(messages=said, **options)
    assert second.choices[0].message.content == "The results are sunny."
    # Only the first reply is bound; one that must call any function sees those of the client alone.
    assert [request.tool_choice for request in agent.requests] == [ToolChoice(name=name), None]
    tools = [[spec.name for spec in request.tools] for request in agent.requests]
    every_tool = ["shout", "danger", "get_weather"]
    assert tools == [every_tool if name else ["get_weather"], every_tool]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_call_of_the_clients_tool_waits_for_the_client(
    client: Any, agent: ScriptedAgent, streams: bool
) -> None:
    said: list[Any] = [{"role": "user", "content": "weather please"}]
    if streams:
        stream = await ask(client, *said, tools=[CHAT_TOOL], stream=True)
        chunks = [chunk.choices[0] async for chunk in stream]
        assert chunks[-1].finish_reason == "tool_calls"
        [call] = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
    else:
        answer = await ask(client, *said, tools=[CHAT_TOOL])
        assert answer.choices[0].finish_reason == "tool_calls"
        assert answer.choices[0].message.content == "I look."
        [call] = answer.choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Paris"}')
    assert len(call.id) <= 40  # a limit of OpenAI's own API
    said += [
        {"role": "assistant", "content": "I look.", "tool_calls": [_as_sent(call)]},
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
    ]
    final = await ask(client, *said, tools=[CHAT_TOOL])
    assert final.choices[0].message.content == "The results are sunny."
    assert final.choices[0].finish_reason == "stop"
    # The same turn went on: its second request has the same messages as its first.
    assert [len(request.history) for request in agent.requests] == [1, 3]
    # The client goes back and sends another result: what it knows is imported.
    said[-1]["content"] = "rainy"
    again = await ask(client, *said, tools=[CHAT_TOOL])
    assert "You said: Continue." in again.choices[0].message.content
    assert "tool: rainy" in " ".join(map(str, _read(agent)))


def _read(agent: ScriptedAgent) -> list[str]:
    return texts(agent.requests[-1])


def _as_sent(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


async def test_own_and_foreign_tools_work_in_one_step(client: Any, agent: ScriptedAgent) -> None:
    said: list[Any] = [{"role": "user", "content": "mixed"}]
    answer = await ask(client, *said, tools=[CHAT_TOOL])
    [call] = answer.choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    said += [
        {"role": "assistant", "tool_calls": [_as_sent(call)]},
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
        {"role": "user", "content": "and say it nicely"},
    ]
    await ask(client, *said, tools=[CHAT_TOOL])
    assert _read(agent) == [
        "user: mixed",
        "assistant: ",
        "tool: HELLO",
        "tool: sunny",
        "user: and say it nicely",
    ]


async def test_an_answer_matches_a_schema(client: Any, agent: ScriptedAgent) -> None:
    class Answer(BaseModel):
        answer: int

    parsed = await client.chat.completions.parse(
        model="keryx", messages=[{"role": "user", "content": "json"}], response_format=Answer
    )
    assert parsed.choices[0].message.parsed == Answer(answer=42)
    schema = agent.requests[0].schema
    assert schema is not None
    assert schema["properties"].keys() == {"answer"}
    with pytest.raises(openai.APIStatusError):
        await client.chat.completions.parse(
            model="keryx", messages=[{"role": "user", "content": "hello"}], response_format=Answer
        )


async def test_images_and_limits_reach_the_model(client: Any, agent: ScriptedAgent) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    file = {"filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="}
    parts = [{"type": "text", "text": "look"}, image, {"type": "file", "file": file}]
    await ask(client, {"role": "user", "content": parts}, max_completion_tokens=77)
    request = agent.requests[0]
    assert request.max_tokens == 77
    assert "image/png" in str(request.history)
    assert "a.txt" in str(request.history)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_ends_before_a_stop_sequence_and_its_turn_with_it(
    served: tuple[Any, ServedHost], stream: bool
) -> None:
    client, host = served
    # The model says "It ", "beg", "ins" and goes on: the sequence is split between two pieces.
    answer = await ask(client, "wait", stop=["never", "gin"], stream=stream)
    if stream:
        chunks = [chunk async for chunk in answer]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        reason = chunks[-1].choices[0].finish_reason
    else:
        text = answer.choices[0].message.content
        reason = answer.choices[0].finish_reason
    assert (text, reason) == ("It be", "stop")
    [row] = (await host.client.get("/api/sessions?archived=true"))["sessions"]
    ended = (await host.client.until(row["session_id"], "turn.finished"))[-1].data
    assert ended["outcome"] == "cancelled"


async def test_what_only_begins_like_a_stop_sequence_is_part_of_the_answer(client: Any) -> None:
    answer = await ask(client, "hello", stop="hello, you")
    assert answer.choices[0].message.content == "You said: hello"
    answer = await ask(client, "hello", stop="You")
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("", "stop")


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"stop": ["x"] * 5}, "stop"),
        ({"stop": [""]}, "stop"),
        ({"modalities": ["text", "audio"], "audio": {"voice": "a", "format": "wav"}}, "audio"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "always", "tools": [CHAT_TOOL]}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools"}, "tools": [CHAT_TOOL]}, "tool_choice"),
        (
            {
                "tool_choice": {"type": "function", "function": {"name": "shout"}},
                "tools": [CHAT_TOOL],
            },
            "tool_choice",
        ),
        (
            {"tool_choice": {"type": "function", "function": {"name": 7}}, "tools": [CHAT_TOOL]},
            "tool_choice",
        ),
        ({"temperature": 9}, "temperature"),
        ({"extra_body": {"nonsense": 1}}, "nonsense"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"extra_body": {"keryx": {"tools": ["no_such_tool"]}}}, "keryx.tools"),
        ({"response_format": {"type": "json_schema"}}, "response_format.schema"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "image_url", "image_url": {"url": "ftp://example.com/a"}}
                        ],
                    }
                ]
            },
            "messages[0].content[0].image_url",
        ),
    ],
)
@pytest.mark.promise("page20.34")
async def test_what_would_change_the_meaning_is_refused(
    client: Any, wrong: dict[str, Any], param: str
) -> None:
    body: dict[str, Any] = {
        "model": "keryx",
        "messages": [{"role": "user", "content": "hello"}],
        **wrong,
    }
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(**body)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


@pytest.mark.promise("page20.34")
async def test_errors_have_the_form_of_openai(
    served: tuple[Any, ServedHost], agent: ScriptedAgent
) -> None:
    client, host = served
    with pytest.raises(openai.NotFoundError) as missing:
        await ask(client, "hello", model="gpt-5")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.AuthenticationError) as locked_out:
        await client.with_options(api_key="wrong").models.list()
    assert locked_out.value.code == "invalid_api_key"
    # A browser's login does not count, so no other site can use it.
    browser = host.browser()
    await browser.post("/api/login", {"token": host.server.once, "browser": "b" * 32}, status=204)
    assert (await browser.ask("GET", "/v1/models")).status == 401
    assert (await host.client.ask("GET", "/v1/nothing")).body["error"]["code"] == "not_found"
    assert (await host.client.ask("GET", "/v1/chat/completions")).status == 405
    assert (await host.client.ask("POST", "/v1/responses", data=b"{")).status == 400
