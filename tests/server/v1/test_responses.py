"""Responses, with OpenAI's own client for Python against a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.server.served_host import ServedHost
from tests.server.v1.scripted_agent import RESPONSE_TOOL, ScriptedAgent, served_agent, texts

pytestmark = pytest.mark.promise("page20.31")


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


async def ask(client: Any, input_: Any, **options: Any) -> Any:
    return await client.responses.create(model="keryx", input=input_, **options)


def result(call: Any, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.call_id, "output": text}


async def test_a_response_says_what_the_agent_said(client: Any) -> None:
    response = await ask(client, "hello", metadata={"a": "b"}, instructions="Be kind.")
    assert (response.status, response.output_text) == ("completed", "You said: hello")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 7)
    assert response.usage.input_tokens_details.cached_tokens == 3
    assert (response.metadata, response.instructions) == ({"a": "b"}, "Be kind.")
    assert await client.responses.retrieve(response.id) == response
    items = await client.responses.input_items.list(response.id)
    assert [item.content[0].text for item in items.data] == ["hello"]


async def test_the_events_of_a_stream_are_those_that_clients_expect(client: Any) -> None:
    events = [event async for event in await ask(client, "hello", stream=True)]
    kinds = [event.type.removeprefix("response.") for event in events]
    deltas = kinds.count("output_text.delta")
    assert deltas > 1
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * deltas,
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == events[-1].response.output_text == "You said: hello"
    # The client's own helper puts the same response together from the events.
    async with client.responses.stream(model="keryx", input="shout") as stream:
        async for _ in stream:
            pass
        final = await stream.get_final_response()
    texts_of = [item.content[0].text for item in final.output]
    assert texts_of == ["I shout.", "The results are HELLO."]


async def test_a_later_response_continues_an_earlier_one(client: Any, agent: ScriptedAgent) -> None:
    first = await ask(client, "one")
    second = await ask(client, "second", previous_response_id=first.id)
    assert second.previous_response_id == first.id
    third = await ask(client, "history", previous_response_id=second.id)
    assert third.output_text == (
        "user: one | assistant: You said: one | user: second | assistant: You said: second"
        " | user: history"
    )
    # Going back to the first one begins another branch.
    other = await ask(client, "history", previous_response_id=first.id)
    assert other.output_text == "user: one | assistant: You said: one | user: history"
    branches = await asyncio.gather(
        *(ask(client, f"history {n}", previous_response_id=other.id) for n in range(3))
    )
    for number, branch in enumerate(branches):
        assert branch.output_text.endswith(f" | user: history {number}")
        others = {0, 1, 2} - {number}
        assert not any(f"history {other}" in branch.output_text for other in others)
    items = await client.responses.input_items.list(third.id, order="asc", limit=2)
    assert [item.content[0].text for item in items.data] == ["one", "You said: one"]
    assert items.has_more


async def test_calls_of_the_client_are_output_items_and_their_results_go_on(
    client: Any, agent: ScriptedAgent
) -> None:
    first = await ask(client, "two cities", tools=[RESPONSE_TOOL])
    assert first.status == "completed"
    calls = [item for item in first.output if item.type == "function_call"]
    assert [call.arguments for call in calls] == ['{"city":"Paris"}', '{"city":"Rome"}']
    with pytest.raises(openai.BadRequestError) as incomplete:
        await ask(client, [result(calls[0], "sunny")], previous_response_id=first.id)
    assert "No tool output found" in incomplete.value.message
    results = [result(calls[0], "sunny"), result(calls[1], "rainy")]
    second = await ask(client, results, previous_response_id=first.id, tools=[RESPONSE_TOOL])
    assert second.output_text == "The results are sunny, rainy."
    assert second.id != first.id
    assert [len(request.history) for request in agent.requests] == [1, 4]
    with pytest.raises(openai.ConflictError) as late:
        await ask(client, results, previous_response_id=first.id)
    assert late.value.code == "already_answered"
    items = (await client.responses.input_items.list(second.id, order="asc")).data
    kinds = ["message", "function_call", "function_call"] + ["function_call_output"] * 2
    assert [item.type for item in items] == kinds
    third = await ask(client, "history", previous_response_id=second.id)
    assert third.output_text.endswith("assistant: The results are sunny, rainy. | user: history")


async def test_results_without_an_earlier_response_find_their_calls(
    client: Any, agent: ScriptedAgent
) -> None:
    said: list[Any] = [{"role": "user", "content": "weather"}]
    events = [e async for e in await ask(client, said, tools=[RESPONSE_TOOL], stream=True)]
    kinds = [event.type for event in events]
    for kind in ("delta", "done"):
        assert f"response.function_call_arguments.{kind}" in kinds
    message, call = events[-1].response.output
    said += [message.to_dict(), call.to_dict(), result(call, "sunny")]
    final = await ask(client, said, tools=[RESPONSE_TOOL])
    assert final.output_text == "The results are sunny."
    assert texts(agent.requests[-1]) == ["user: weather", "assistant: I look.", "tool: sunny"]
    await client.responses.delete(final.id)
    assert "Continue" in (await ask(client, said, tools=[RESPONSE_TOOL])).output_text


async def test_an_answer_matches_a_schema(client: Any) -> None:
    class Answer(BaseModel):
        answer: int

    response = await client.responses.parse(model="keryx", input="json", text_format=Answer)
    assert response.output_parsed == Answer(answer=42)
    failed = await ask(client, "hello", text={"format": {"type": "json_object"}})
    assert failed.status == "failed"
    assert failed.error.message


async def test_deleted_responses_are_gone(served: tuple[Any, ServedHost]) -> None:
    client, host = served
    first = await ask(client, "one")
    second = await ask(client, "second", previous_response_id=first.id)
    await client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(second.id)
    third = await ask(client, "history", previous_response_id=first.id)
    assert "second" not in third.output_text
    await client.responses.delete(third.id)
    await client.responses.delete(first.id)
    with pytest.raises(openai.BadRequestError) as refused:
        await ask(client, "more", previous_response_id=first.id)
    # What clients look for, to send the whole conversation instead.
    assert refused.value.code == "previous_response_not_found"
    assert refused.value.param == "previous_response_id"
    archived = (await host.client.get("/api/sessions?archived=true"))["sessions"]
    assert len(archived) <= 1  # the fork that `third` was in is gone too


async def test_another_user_has_other_responses(served: tuple[Any, ServedHost]) -> None:
    client, host = served
    own = await ask(client, "one")
    call = (await ask(client, "weather", tools=[RESPONSE_TOOL])).output[-1]
    anna = await host.user("anna")
    assert (await anna.get("/v1/models"))["data"][0]["id"] == "keryx"
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/cancel"),
        ("GET", "/input_items"),
        ("GET", "?stream=true"),
    ):
        answer = await anna.ask(method, f"/v1/responses/{own.id}{path}")
        assert answer.status == 404
    body: dict[str, Any] = {"model": "keryx", "input": "x", "previous_response_id": own.id}
    refused = await anna.ask("POST", "/v1/responses", json=body)
    assert refused.body["error"]["code"] == "previous_response_not_found"
    del body["previous_response_id"]
    body["input"] = [call.to_dict(), result(call, "stolen")]
    foreign = await anna.post("/v1/responses", body)
    assert foreign["output"][0]["content"][0]["text"].startswith("You said: Continue.")
    assert (await client.responses.retrieve(own.id)).output_text == "You said: one"


@pytest.mark.promise("page20.32")
async def test_a_background_response_is_followed_from_any_character(
    client: Any, agent: ScriptedAgent
) -> None:
    response = await ask(client, "wait", background=True)
    assert response.status in ("queued", "in_progress")
    await agent.gate.reached.wait()
    early: list[Any] = []
    async for event in await client.responses.retrieve(response.id, stream=True):
        early.append(event)
        if "".join(getattr(e, "delta", "") for e in early) == "It begins":
            break
    agent.gate.opened.set()
    whole = [e async for e in await client.responses.retrieve(response.id, stream=True)]
    assert whole[-1].type == "response.completed"
    last = early[-1].sequence_number
    rest = await client.responses.retrieve(response.id, stream=True, starting_after=last)
    kinds = [event.type async for event in rest]
    assert kinds == [e.type for e in whole if e.sequence_number > last]
    # Any number at all: the text goes on after exactly that character.
    text = next(e for e in whole if e.type == "response.content_part.added").sequence_number
    for count in range(len("It begins")):
        stream = await client.responses.retrieve(
            response.id, stream=True, starting_after=text + count
        )
        events = [event async for event in stream]
        later = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        assert later == "It begins"[count:]
    assert (await client.responses.retrieve(response.id)).output_text == "It begins"


@pytest.mark.promise("page20.32")
async def test_a_response_is_cancelled(client: Any, agent: ScriptedAgent) -> None:
    response = await ask(client, "wait", background=True)
    await agent.gate.reached.wait()
    with pytest.raises(openai.BadRequestError):
        await ask(client, "more", previous_response_id=response.id)
    cancelled = await client.responses.cancel(response.id)
    assert cancelled.status == "cancelled"
    assert cancelled.output_text == "It begins"
    assert (await client.responses.cancel(response.id)).status == "cancelled"
    kinds = [e.type async for e in await client.responses.retrieve(response.id, stream=True)]
    assert kinds[-1] == "response.cancelled"


@pytest.mark.promise("page20.32")
@pytest.mark.parametrize("kind", ["stream", "plain", "chat"])
async def test_a_client_that_leaves_cancels_its_turn(
    served: tuple[Any, ServedHost], agent: ScriptedAgent, kind: str
) -> None:
    client, host = served
    if kind == "stream":
        async with await ask(client, "wait", stream=True) as stream:
            async for _ in stream:
                if agent.gate.reached.is_set():
                    break
    else:
        asking = (
            ask(client, "wait")
            if kind == "plain"
            else client.chat.completions.create(
                model="keryx", messages=[{"role": "user", "content": "wait"}]
            )
        )
        task = asyncio.ensure_future(asking)
        await agent.gate.reached.wait()
        task.cancel()
    [row] = (await host.client.get("/api/sessions?archived=true"))["sessions"]
    events = await host.client.until(row["session_id"], "turn.finished")
    assert events[-1].data["outcome"] == "cancelled"


@pytest.mark.promise("page20.34")
@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"conversation": "conv_1"}, "conversation"),
        ({"max_tool_calls": 3}, "max_tool_calls"),
        ({"prompt": {"id": "x"}}, "prompt"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": []}, "input"),
        ({"tools": [{"type": "function", "name": "no spaces"}]}, None),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"metadata": {"a": 1}}, "metadata[...]"),
    ],
)
async def test_what_would_change_the_meaning_is_refused(
    client: Any, wrong: dict[str, Any], param: str | None
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(**{"model": "keryx", "input": "hello", **wrong})
    assert caught.value.param == param
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve("resp_nothing_1")
