"""Clients that repeat themselves, go back, delete, or send results that fit no call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import openai
import pytest

from keryx.errors import ModelError
from keryx.events import MessageAccepted
from keryx.models.retry import Retrying
from keryx.models.scripted import ScriptedCall, ScriptedReply
from keryx.ports.model import Model, ModelRequest
from tests.server.served_host import ServedHost
from tests.server.v1.scripted_agent import (
    CHAT_TOOL,
    RESPONSE_TOOL,
    ScriptedAgent,
    served_agent,
    texts,
)

pytestmark = pytest.mark.promise("page20.37")


class HoldingAgent(ScriptedAgent):
    """After the result `sunny`, its reply waits at the gate and calls one of Keryx's own tools."""

    def reply(self, request: ModelRequest) -> ScriptedReply:
        if texts(request)[-1] != "tool: sunny":
            return super().reply(request)
        self.requests.append(request)
        own = ScriptedCall("shout", {"text": "a"})
        return ScriptedReply(text="I think.", calls=[own], hold=self.gate.wait)


@pytest.fixture
def agent() -> HoldingAgent:
    return HoldingAgent()


@pytest.fixture
async def served(tmp_path: Path, agent: HoldingAgent) -> AsyncGenerator[tuple[Any, ServedHost]]:
    async with served_agent(tmp_path, agent) as pair:
        yield pair


@pytest.fixture
def client(served: tuple[Any, ServedHost]) -> Any:
    return served[0]


async def chat(client: Any, *messages: Any, **options: Any) -> Any:
    said = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    return await client.chat.completions.create(model="keryx", messages=said, **options)


async def ask(client: Any, input_: Any, **options: Any) -> Any:
    return await client.responses.create(model="keryx", input=input_, **options)


def result(call: Any, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.call_id, "output": text}


def session_of(response: Any) -> str:
    return response.id.removeprefix("resp_").rpartition("_")[0]


async def archived(host: ServedHost) -> list[str]:
    rows = (await host.client.get("/api/sessions?archived=true"))["sessions"]
    return [row["session_id"] for row in rows]


# -- results


async def test_a_message_after_old_results_does_not_reach_the_turn_that_has_them(
    client: Any, agent: HoldingAgent
) -> None:
    first = (await chat(client, "weather", tools=[CHAT_TOOL])).choices[0].message
    answer = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "sunny"}
    said: list[Any] = ["weather", first.to_dict(), answer]
    running = asyncio.ensure_future(chat(client, *said, tools=[CHAT_TOOL]))
    await agent.gate.reached.wait()
    # The client sends the same history again with more: it went back, and wants another branch.
    other = await chat(client, *said, "something else", tools=[CHAT_TOOL])
    assert other.choices[0].message.content == "You said: something else"
    agent.gate.opened.set()
    assert (await running).choices[0].message.content == "I think.\n\nThe results are A."
    turn = ["user: weather", "assistant: I look.", "tool: sunny", "assistant: I think.", "tool: A"]
    assert texts(agent.requests[-1]) == turn


async def test_a_message_with_too_few_results_leaves_nothing_in_the_turn_that_waits(
    client: Any, agent: HoldingAgent
) -> None:
    first = (await chat(client, "two", tools=[CHAT_TOOL])).choices[0].message
    calls = [call.to_dict() for call in first.tool_calls]
    one = {"role": "tool", "tool_call_id": calls[0]["id"], "content": "cold"}
    both = [one, {"role": "tool", "tool_call_id": calls[1]["id"], "content": "warm"}]
    # The client forgot one of the calls: that is another history, which gets a session of its own.
    await chat(client, "two", {"role": "assistant", "tool_calls": calls[:1]}, one, "else")
    reply = {"role": "assistant", "tool_calls": calls}
    await chat(client, "two", reply, *both, tools=[CHAT_TOOL])
    assert texts(agent.requests[-1]) == ["user: two", "assistant: ", "tool: cold", "tool: warm"]


async def test_results_that_are_sent_at_the_same_time_are_taken_once(
    client: Any, agent: HoldingAgent
) -> None:
    first = await ask(client, "weather", tools=[RESPONSE_TOOL])
    call = first.output[-1]

    async def give(number: int) -> Any:
        more = {"role": "user", "content": f"nicely {number}"}
        return await ask(client, [result(call, "cold"), more], previous_response_id=first.id)

    answers = await asyncio.gather(*map(give, range(4)), return_exceptions=True)
    conflicts = [answer for answer in answers if isinstance(answer, openai.ConflictError)]
    assert [conflict.code for conflict in conflicts] == ["already_answered"] * 3
    said = [text for text in texts(agent.requests[-1]) if text.startswith("user: nicely")]
    assert len(said) == 1


async def test_results_must_fit_the_calls_of_the_response(client: Any, agent: HoldingAgent) -> None:
    first = await ask(client, "two", tools=[RESPONSE_TOOL])
    other = await ask(client, "weather", tools=[RESPONSE_TOOL])
    results = [result(call, "cold") for call in first.output]
    unknown = {"type": "function_call_output", "call_id": "nonsense", "output": "x"}
    for wrong in (unknown, result(other.output[-1], "x"), result(first.output[0], "again")):
        with pytest.raises(openai.BadRequestError) as caught:
            await ask(client, [*results, wrong], previous_response_id=first.id)
        assert caught.value.param == "input"
        assert wrong["call_id"] in caught.value.message
    assert len(agent.requests) == 2
    response = await ask(client, results, previous_response_id=first.id)
    assert response.output_text == "The results are cold, cold."


PLACES: list[tuple[list[Any], str]] = [
    ([{"role": "system", "content": "x"}, {"role": "robot"}], "input[1].role"),
    (
        [
            {"role": "user", "content": "x"},
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "b", "name": "f", "arguments": 7},
        ],
        "input[3].arguments",
    ),
    (
        [{"role": "user", "content": "x"}, {"type": "function_call_output", "output": "x"}],
        "input[1].call_id",
    ),
    (
        [
            {"role": "developer", "content": "x"},
            {"role": "user", "content": [{"type": "input_text", "text": 7}]},
        ],
        "input[1].content[0].text",
    ),
]


@pytest.mark.parametrize(("items", "param"), PLACES)
async def test_an_error_names_the_place_in_the_request(
    client: Any, items: list[Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await ask(client, items)
    assert caught.value.param == param


async def test_a_response_goes_on_in_the_folder_that_its_request_names(
    served: tuple[Any, ServedHost],
) -> None:
    client, host = served
    other = host.workspace / "other"
    other.mkdir()
    first = await ask(client, "one")
    folder: Any = {"keryx": {"workspace": str(other)}}
    second = await ask(client, "two", previous_response_id=first.id, extra_body=folder)
    await ask(client, "three", previous_response_id=second.id)
    events = await host.host_client.store.events(session_of(first))
    workspaces = [event.workspace for event in events if isinstance(event, MessageAccepted)]
    assert workspaces == [str(host.workspace), str(other), str(other)]


# -- stop sequences


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        ("\n\n", "I shout."),
        (".\n\nThe", "I shout"),
        ("\n\nThe results", "I shout."),
        (".\n\nthe", "I shout.\n\nThe results are HELLO."),
        ("O.", "I shout.\n\nThe results are HELL"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_ends_before_a_sequence_between_two_replies(
    client: Any, stop: str, text: str, stream: bool
) -> None:
    answer = await chat(client, "shout", stop=stop, stream=stream)
    if stream:
        pieces = [chunk.choices[0].delta.content or "" async for chunk in answer]
        assert "".join(pieces) == text
    else:
        assert answer.choices[0].message.content == text
        assert answer.choices[0].finish_reason == "stop"


# -- replies that are cut


class InterruptedAgent(ScriptedAgent):
    """The first two replies are cut; the model is asked again."""

    @property
    def model(self) -> Model:
        return Retrying(super().model, jitter=lambda: 0.0)

    def reply(self, request: ModelRequest) -> ScriptedReply:
        if len(self.requests) >= 2:
            return super().reply(request)
        self.requests.append(request)
        cut = ModelError("unreachable", "the connection was lost", "try again")
        return ScriptedReply(text=f"Attempt {len(self.requests)}", error=cut)


async def test_a_reply_that_is_asked_for_again_is_an_item_of_its_own(tmp_path: Path) -> None:
    async with served_agent(tmp_path, InterruptedAgent()) as (client, _):
        async with client.responses.stream(model="keryx", input="shout") as stream:
            events = [event async for event in stream]
            final = await stream.get_final_response()
        added = [e for e in events if e.type == "response.output_item.added"]
        assert len({event.item.id for event in added}) == len(added)
        indexes = [event.output_index for event in added]
        assert indexes == sorted(set(indexes))
        # What a client shows while it streams begins anew with each item.
        last = [e.snapshot for e in events if e.type == "response.output_text.delta"][-1]
        assert last == "The results are HELLO."
        assert [item.content[0].text for item in final.output] == ["I shout.", last]
        # Who reads it again sees the same items at the same places.
        stored = await client.responses.retrieve(final.id)
        assert [item.id for item in stored.output] == [item.id for item in final.output]
        places = {e.item.id: e.output_index for e in added}
        async for event in await client.responses.retrieve(final.id, stream=True):
            if event.type == "response.output_item.added":
                assert places[event.item.id] == event.output_index
        later = await client.responses.create(
            model="keryx", input="hello", previous_response_id=final.id
        )
        items = (await client.responses.input_items.list(later.id, order="asc")).data
        assert [item.id for item in items[1:3]] == [item.id for item in final.output]


# -- deletion


async def test_deleting_a_response_keeps_what_a_person_said_in_its_session(
    served: tuple[Any, ServedHost],
) -> None:
    client, host = served
    first = await ask(client, "one")
    session_id = session_of(first)
    sent = await host.client.say(session_id, "my own words")
    await host.client.finished(session_id, sent["turn_id"])
    await client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(first.id)
    exported = await host.client.ask("GET", f"/api/sessions/{session_id}/export?format=markdown")
    assert "my own words" in exported.raw.decode()


async def test_a_deleted_response_is_not_in_the_input_of_later_ones(client: Any) -> None:
    first = await ask(client, "one")
    second = await ask(client, "two", previous_response_id=first.id, tools=[RESPONSE_TOOL])
    results = [result(call, "cold") for call in second.output]
    third = await ask(client, results, previous_response_id=second.id)
    fourth = await ask(client, "four", previous_response_id=third.id)
    await client.responses.delete(second.id)
    items = (await client.responses.input_items.list(fourth.id, order="asc")).data
    assert [item.content[0].text for item in items] == ["one", "You said: one", "four"]


async def test_deleting_all_responses_leaves_no_session(served: tuple[Any, ServedHost]) -> None:
    client, host = served
    first = await ask(client, "one")
    second = await ask(client, "second", previous_response_id=first.id)
    branch = await ask(client, "branch", previous_response_id=first.id)
    later = await ask(client, "later", previous_response_id=branch.id)
    earlier = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    imported = await ask(client, [*earlier, {"role": "user", "content": "z"}])
    assert len(await archived(host)) == 3
    for response in (branch, imported, first, second, later):
        await client.responses.delete(response.id)
    assert await archived(host) == []


async def test_a_response_that_a_person_restored_is_there_again(
    served: tuple[Any, ServedHost],
) -> None:
    client, host = served
    first = await ask(client, "one")
    session_id = session_of(first)
    events = await host.client.until(session_id, "turn.finished")
    turn_id = events[-1].data["turn_id"]
    again = await host.client.say(session_id, "again", replaces=turn_id)
    await host.client.finished(session_id, again["turn_id"])
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(first.id)
    await host.client.post(f"/api/sessions/{session_id}/turns/{turn_id}/restore", {})
    assert (await client.responses.retrieve(first.id)).output_text == "You said: one"


# -- parameters


async def test_every_effort_and_wish_of_the_official_client_is_taken(
    client: Any, agent: HoldingAgent
) -> None:
    for effort in ("minimal", "low", "medium", "high", "xhigh", "max"):
        await chat(client, "hello", reasoning_effort=effort, prompt_cache_options={"ttl": "30m"})
        assert agent.requests[-1].effort == effort
    wishes = {"effort": "max", "summary": "auto", "context": "auto", "mode": "standard"}
    response = await ask(client, "hello", reasoning=wishes)
    assert response.reasoning.effort == "max"
