"""The scripted model server: strict about what it is asked, and true to its script."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from keryx.aio.loops import run_loop
from keryx.models.http import Clients, model_clients
from keryx.testing.modelserver import MODEL, Call, ModelServer, Reply
from tests.models.scripted_server import ask, openai_model

Body = dict[str, Any]

SYSTEM = {"role": "system", "content": "s"}
USER = {"role": "user", "content": "u"}
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "d", "parameters": {"type": "object"}},
}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}}


def said(*ids: str, **fields: Any) -> Body:
    calls = [
        {"id": id_, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for id_ in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **fields}


def result(id_: str) -> Body:
    return {"role": "tool", "tool_call_id": id_, "content": "r"}


def body(*messages: Any, **fields: Any) -> Body:
    return {"model": MODEL, "stream": True, "messages": list(messages), **fields}


def tool(**function: Any) -> list[Body]:
    return [{"type": "function", "function": {**TOOL["function"], **function}}]  # pyright: ignore[reportGeneralTypeIssues] (a plain dict of the wire)


async def post(server: ModelServer, clients: Clients, sent: Any, **options: Any) -> tuple[int, Any]:
    client = await clients()
    async with client.post(f"{server.url}/chat/completions", json=sent, **options) as response:
        text = await response.text()
    return response.status, json.loads(text) if response.content_type.endswith("json") else text


GOOD: dict[str, Body] = {
    "plain": body(USER),
    "system first": body(SYSTEM, USER),
    "calls and results in any order": body(USER, said("1", "2"), result("2"), result("1"), USER),
    "parts": body({"role": "user", "content": [{"type": "text", "text": "t"}, IMAGE]}),
    "text beside calls": body(USER, said("1", content="t"), result("1")),
    "everything": body(
        SYSTEM,
        USER,
        stream_options={"include_usage": True},
        tools=[TOOL],
        tool_choice="auto",
        parallel_tool_calls=True,
        reasoning_effort="high",
        max_completion_tokens=5,
        temperature=1,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {}, "strict": False},
        },
    ),
}


@pytest.mark.parametrize("sent", GOOD.values(), ids=GOOD.keys())
async def test_what_the_api_takes_is_answered(clients: Clients, sent: Body) -> None:
    async with ModelServer([Reply(text="ok")]) as server:
        status, answer = await post(server, clients, sent)
    assert status == 200
    assert answer.endswith("data: [DONE]\n\n")
    assert server.refused == []


BAD: dict[str, tuple[Any, str]] = {
    "no object": ([], "not what the API takes"),
    "no messages": ({"model": MODEL}, "messages"),
    "empty history": (body(), "messages"),
    "no model": ({"messages": [USER]}, "model"),
    "unknown field": (body(USER, thinking=True), "unknown field `thinking`"),
    "unknown field of a message": (body({**USER, "id": "x"}), "unknown field `id`"),
    "unknown field of a call": (body(USER, said("1", reasoning="x"), result("1")), "reasoning"),
    "unknown field of a tool": (body(USER, tools=[{**TOOL, "name": "x"}]), "unknown field `name`"),
    "unknown stream option": (body(USER, stream_options={"usage": True}), "usage"),
    "unknown role": (body({"role": "robot", "content": "x"}), "robot"),
    "unknown effort": (body(USER, reasoning_effort="extreme"), "extreme"),
    "wrong type": (body({"role": "user", "content": 5}), "content"),
    "wrong number": (body(USER, max_completion_tokens=0), "max_completion_tokens"),
    "text for a number": (body(USER, max_completion_tokens="5"), "max_completion_tokens"),
    "unknown part": (body({"role": "user", "content": [{"type": "smell"}]}), "smell"),
    "part without text": (body({"role": "user", "content": [{"type": "text"}]}), "text"),
    "no parts": (body({"role": "user", "content": []}), "content"),
    "image without data": (
        body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a.png"}}]}),
        "url",
    ),
    "empty assistant": (body(USER, {"role": "assistant", "content": ""}), "needs content"),
    "empty calls": (body(USER, said()), "tool_calls"),
    "call without result": (body(USER, said("1"), USER), "these are missing"),
    "call without result at the end": (body(USER, said("1")), "at the end"),
    "one of two results": (body(USER, said("1", "2"), result("1"), USER), "missing: ['2']"),
    "block with something between": (
        body(USER, said("1", "2"), result("1"), USER, result("2")),
        "missing",
    ),
    "two results": (body(USER, said("1"), result("1"), result("1")), "is none"),
    "result without call": (body(USER, result("1")), "is none"),
    "result of an older call": (
        body(USER, said("1"), result("1"), said("2"), result("1"), result("2")),
        "is none",
    ),
    "same id in one message": (body(USER, said("1", "1"), result("1"), result("1")), "used before"),
    "same id later": (
        body(USER, said("1"), result("1"), said("1"), result("1")),
        "used before",
    ),
    "empty id": (body(USER, said(""), result("")), "id"),
    "system in the middle": (body(USER, SYSTEM, USER), "only be the first"),
    "two systems": (body(SYSTEM, SYSTEM, USER), "only be the first"),
    "bad tool name": (body(USER, tools=tool(name="a b")), "name"),
    "long tool name": (body(USER, tools=tool(name="a" * 65)), "name"),
    "same tool twice": (body(USER, tools=[TOOL, TOOL]), "unique"),
    "tool schema of no object": (body(USER, tools=tool(parameters={})), "must be object"),
    "no tools": (body(USER, tools=[]), "tools"),
    "parallel without tools": (body(USER, parallel_tool_calls=True), "only allowed with tools"),
    "stream options without stream": (
        {**body(USER, stream_options={}), "stream": False},
        "only allowed when stream",
    ),
}


@pytest.mark.promise("004.13")
@pytest.mark.parametrize(("sent", "words"), BAD.values(), ids=BAD.keys())
async def test_what_the_api_does_not_take_is_refused(
    clients: Clients, sent: Any, words: str
) -> None:
    async with ModelServer([Reply(text="ok")]) as server:
        status, answer = await post(server, clients, sent)
    assert status == 400
    assert answer["error"]["type"] == "invalid_request_error"
    assert words in answer["error"]["message"]
    assert [refused.message for refused in server.refused] == [answer["error"]["message"]]


async def test_a_name_in_a_call_must_be_one(clients: Clients) -> None:
    bad = said("1")
    bad["tool_calls"][0]["function"]["name"] = "functions.look"
    async with ModelServer([Reply()]) as server:
        assert (await post(server, clients, body(USER, bad, result("1"))))[0] == 400


async def test_what_is_no_json_is_refused(clients: Clients) -> None:
    client = await clients()
    async with ModelServer([Reply()]) as server:
        url = f"{server.url}/chat/completions"
        for data, kind in ((b"{", "application/json"), (b"{}", "text/plain")):
            async with client.post(url, data=data, headers={"Content-Type": kind}) as response:
                assert response.status == 400


async def test_the_key_and_the_model_must_be_right(clients: Clients) -> None:
    key = {"Authorization": "Bearer right"}
    async with ModelServer([Reply(text="ok")] * 3, key="right") as server:
        assert (await post(server, clients, body(USER)))[0] == 401
        wrong = {"Authorization": "Bearer wrong"}
        status, answer = await post(server, clients, body(USER), headers=wrong)
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
        other = {**body(USER), "model": "other"}
        status, answer = await post(server, clients, other, headers=key)
        assert (status, answer["error"]["code"]) == (404, "model_not_found")
        client = await clients()
        async with client.get(f"{server.url}/models") as response:
            assert response.status == 401
        async with client.get(f"{server.url}/models", headers=key) as response:
            listed = await response.json()
    assert [model["id"] for model in listed["data"]] == [MODEL]


async def test_whoever_does_not_stream_gets_the_whole_at_once(clients: Clients) -> None:
    reply = Reply(text="t", calls=(Call("look", {"a": 1}, id="c"),))
    async with ModelServer([reply]) as server:
        status, answer = await post(server, clients, {**body(USER), "stream": False})
    assert status == 200
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'


async def test_a_script_that_is_over_says_so(clients: Clients) -> None:
    async with ModelServer([]) as server:
        status, answer = await post(server, clients, body(USER))
    assert (status, answer["error"]["code"]) == (400, "script_is_over")


async def test_a_hang_goes_on_when_the_test_lets_it(clients: Clients) -> None:
    def choose(request: Any) -> Reply:
        request.resume.set()
        return Reply(text="held", fault="hang mid-stream")

    async with ModelServer(choose) as server:
        assert (await ask(openai_model(server.url, clients))).text == "held"
        assert server.asked[0].hanging.is_set()


async def test_leaving_it_ends_what_still_hangs(clients: Clients) -> None:
    client = await clients()
    async with ModelServer([Reply(text="x", fault="hang after headers")]) as server:
        response = await client.post(f"{server.url}/chat/completions", json=body(USER))
    with pytest.raises(aiohttp.ClientError):
        await response.read()
    assert server.asked[0].gone.is_set()


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    script = tmp_path / "script.json"
    script.write_text('{"replies": [{"text": "one"}, {"text": "two"}], "repeat": true}')
    command = [sys.executable, "-m", "keryx.testing.modelserver", "--script", str(script)]

    def start(*options: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)

    return start


def test_it_runs_by_itself_and_ends_when_told(
    program: Callable[..., subprocess.Popen[str]],
) -> None:
    async def talk(url: str) -> list[str]:
        owned = model_clients()
        try:
            model = openai_model(url, owned.get, api_key="k")
            return [(await ask(model)).text for _ in range(3)]
        finally:
            await owned.close()

    with program("--port", "0", "--key", "k") as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            assert run_loop(talk(url)) == ["one", "two", "one"]
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
