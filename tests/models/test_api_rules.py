"""The scripted server is as strict about the newer APIs as it is about Chat Completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keryx.models.http import Clients
from keryx.testing.modelserver import MODEL, ModelServer, Reply

pytestmark = pytest.mark.promise("model.1")

Body = dict[str, Any]
HEADERS = {"anthropic-version": "2023-06-01"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
OPEN = {"type": "object", "properties": {"a": {"type": "object"}}, "additionalProperties": False}


async def post(server: ModelServer, clients: Clients, api: str, body: Any) -> tuple[int, str]:
    path = server.apis[api].path.replace("{model}", MODEL)
    query = "?alt=sse" if api == "gemini" else ""
    client = await clients()
    async with client.post(f"{server.host}{path}{query}", json=body, headers=HEADERS) as response:
        return response.status, await response.text()


# -- Responses


def ask(*items: Body, **fields: Any) -> Body:
    return {"model": MODEL, "stream": True, "store": False, "input": [*items], **fields}


SAID = {"role": "user", "content": "u"}
REPLIED = {"role": "assistant", "content": "a"}


def call(call_id: str = "c", **fields: Any) -> Body:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"} | fields


def output(call_id: str = "c") -> Body:
    return {"type": "function_call_output", "call_id": call_id, "output": "r"}


REASONING: Body = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "forged"}
FUNCTION = {"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}

RESPONSES: dict[str, tuple[Body, str | None]] = {
    "good": (ask(SAID, REPLIED, call(), output(), SAID, tools=[FUNCTION]), None),
    "parallel calls": (ask(SAID, call("a"), call("b"), output("b"), output("a")), None),
    "unknown field": (ask(SAID, messages=[]), "unknown field `messages`"),
    "field of another API": (ask(SAID, max_tokens=5), "max_tokens"),
    "unknown field of an item": (ask({**SAID, "name": "x"}), "name"),
    "unknown type": (ask({"type": "tool", "x": 1}), "unknown type"),
    "call without output": (ask(SAID, call()), "No tool output found"),
    "output without call": (ask(SAID, output()), "No tool call found"),
    "something between": (ask(SAID, call(), SAID, output()), "No tool output found"),
    "message between outputs": (
        ask(SAID, call("a"), call("b"), output("a"), SAID, output("b")),
        "No tool output found",
    ),
    "same id twice": (ask(SAID, call(), output(), call(), output()), "used before"),
    "forged reasoning": (ask(SAID, REASONING, REPLIED), "could not be verified"),
    "call without its reasoning": (
        ask(SAID, call(id="fc_1_0_r"), output()),
        "without its required 'reasoning' item",
    ),
    "message without its reasoning": (
        ask(SAID, {**REPLIED, "type": "message", "id": "msg_1_0_r"}, SAID),
        "without its required 'reasoning' item",
    ),
    "ids with store": (ask(SAID, call(id="fc_1_0_p"), output(), store=True), "store"),
    "open schema that is strict": (
        ask(SAID, tools=[{**FUNCTION, "strict": True}]),
        "additionalProperties",
    ),
    "parallel without tools": (ask(SAID, parallel_tool_calls=True), "only allowed with tools"),
    "image that is none": (
        ask({"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}),
        "image_url",
    ),
    "unknown effort": (ask(SAID, reasoning={"effort": "extreme"}), "extreme"),
    "nothing": (ask(), "input"),
}

# -- Messages


def talk(*messages: Body, **fields: Any) -> Body:
    return {"model": MODEL, "stream": True, "max_tokens": 2000, "messages": [*messages], **fields}


def said(*blocks: Body) -> Body:
    return {"role": "user", "content": list(blocks) or "u"}


def replied(*blocks: Body) -> Body:
    return {"role": "assistant", "content": list(blocks) or "a"}


def use(id_: str = "t") -> Body:
    return {"type": "tool_use", "id": id_, "name": "look", "input": {}}


def result(id_: str = "t") -> Body:
    return {"type": "tool_result", "tool_use_id": id_, "content": "r"}


TEXT = {"type": "text", "text": "x"}
MARKED = {**TEXT, "cache_control": {"type": "ephemeral"}}
TOOL = {"name": "look", "input_schema": SCHEMA}
THINKING = {"type": "enabled", "budget_tokens": 1024}

ANTHROPIC: dict[str, tuple[Body, str | None]] = {
    "good": (talk(said(), replied(use()), said(result(), TEXT), tools=[TOOL]), None),
    "parallel": (talk(said(), replied(use("a"), use("b")), said(result("b"), result("a"))), None),
    "no max_tokens": ({"model": MODEL, "messages": [said()]}, "max_tokens"),
    "unknown field": (talk(said(), effort="low"), "unknown field `effort`"),
    "system as a message": (talk({"role": "system", "content": "s"}), "system"),
    "two users": (talk(said(), said()), "alternate"),
    "assistant first": (talk(replied(), said()), "alternate"),
    "assistant last": (talk(said(), replied()), "end with a user"),
    "empty text": (talk(said({"type": "text", "text": " \n"})), "non-whitespace"),
    "call without result": (talk(said(), replied(use()), said()), "without `tool_result`"),
    "one of two results": (
        talk(said(), replied(use("a"), use("b")), said(result("a"))),
        "without `tool_result`",
    ),
    "results in two messages": (
        talk(said(), replied(use("a"), use("b")), said(result("a")), replied(), said(result("b"))),
        "without `tool_result`",
    ),
    "text before the result": (
        talk(said(), replied(use()), said(TEXT, result())),
        "results come first",
    ),
    "result without call": (talk(said(result())), "unexpected `tool_use_id`"),
    "same id twice": (
        talk(said(), replied(use()), said(result()), replied(use()), said(result())),
        "unique",
    ),
    "id with a dot": (talk(said(), replied(use("a.b")), said(result("a.b"))), "id"),
    "five marks": (talk(said(*[MARKED] * 5)), "maximum of 4"),
    "forged thinking": (
        talk(said(), replied({"type": "thinking", "thinking": "x", "signature": "y"}), said()),
        "Invalid `signature`",
    ),
    "thinking that is missing": (
        talk(said(), replied(use()), said(result()), thinking=THINKING),
        "must start with a thinking block",
    ),
    "budget without room": (
        talk(said(), thinking={"type": "enabled", "budget_tokens": 2000}),
        "greater than",
    ),
    "open answer": (
        talk(said(), output_config={"format": {"type": "json_schema", "schema": OPEN}}),
        "additionalProperties",
    ),
    "image type": (
        talk(
            said(
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/svg+xml", "data": "x"},
                }
            )
        ),
        "image/svg",
    ),
}

# -- Gemini


def generate(*contents: Body, **fields: Any) -> Body:
    return {"contents": [*contents], **fields}


def of_user(*parts: Body) -> Body:
    return {"role": "user", "parts": list(parts) or [{"text": "u"}]}


def of_model(*parts: Body) -> Body:
    return {"role": "model", "parts": list(parts) or [{"text": "a"}]}


def function_call(
    id_: str = "c", signature: str | None = "skip_thought_signature_validator"
) -> Body:
    part: Body = {"functionCall": {"id": id_, "name": "look", "args": {}}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def function_response(id_: str = "c", name: str = "look") -> Body:
    return {"functionResponse": {"id": id_, "name": name, "response": {"result": "r"}}}


DECLARED = {"functionDeclarations": [{"name": "look", "description": "d"}]}

GEMINI: dict[str, tuple[Body, str | None]] = {
    "good": (
        generate(
            of_user(), of_model(function_call()), of_user(function_response()), tools=[DECLARED]
        ),
        None,
    ),
    "parallel": (
        generate(
            of_user(),
            of_model(function_call("a"), function_call("b", None)),
            of_user(function_response("a"), function_response("b")),
            of_user(),
        ),
        None,
    ),
    "unknown field": (generate(of_user(), messages=[]), "unknown field `messages`"),
    "unknown option": (generate(of_user(), generationConfig={"effort": "low"}), "effort"),
    "unknown role": (generate({"role": "assistant", "parts": [{"text": "x"}]}), "assistant"),
    "two models": (generate(of_user(), of_model(), of_model(), of_user()), "after a user's turn"),
    "model first": (generate(of_model(), of_user()), "after a user's turn"),
    "model last": (generate(of_user(), of_model()), "last turn"),
    "no signature": (
        generate(of_user(), of_model(function_call("c", None)), of_user(function_response())),
        "missing a thought_signature",
    ),
    "forged signature": (
        generate(of_user(), of_model(function_call("c", "x")), of_user(function_response())),
        "Corrupted thought signature",
    ),
    "one of two responses": (
        generate(
            of_user(),
            of_model(function_call("a"), function_call("b", None)),
            of_user(function_response("a")),
        ),
        "number of function response parts",
    ),
    "responses in two contents": (
        generate(
            of_user(),
            of_model(function_call("a"), function_call("b", None)),
            of_user(function_response("a")),
            of_user(function_response("b")),
        ),
        "number of function response parts",
    ),
    "wrong name": (
        generate(of_user(), of_model(function_call()), of_user(function_response("c", "x"))),
        "number of function response parts",
    ),
    "response without call": (generate(of_user(function_response())), "function response"),
    "two values in a part": (
        generate(of_user({"text": "x", "inlineData": {"mimeType": "image/png", "data": "x"}})),
        "oneof",
    ),
    "object without properties": (
        generate(
            of_user(),
            tools=[
                {
                    "functionDeclarations": [
                        {
                            "name": "look",
                            "description": "d",
                            "parametersJsonSchema": {"type": "object", "properties": {}},
                        }
                    ]
                }
            ],
        ),
        "non-empty",
    ),
    "budget for a newer model": (
        generate(of_user(), generationConfig={"thinkingConfig": {"thinkingBudget": 5}}),
        "thinkingLevel",
    ),
}

CASES = [
    pytest.param(api, body, words, id=f"{api}: {name}")
    for api, table in (("responses", RESPONSES), ("anthropic", ANTHROPIC), ("gemini", GEMINI))
    for name, (body, words) in table.items()
]


@pytest.mark.parametrize(("api", "body", "words"), CASES)
async def test_each_api_takes_what_it_should_and_nothing_else(
    clients: Clients, api: str, body: Body, words: str | None
) -> None:
    async with ModelServer([Reply(text="ok")]) as server:
        status, answer = await post(server, clients, api, body)
    if words is None:
        assert (status, server.refused) == (200, [])
        return
    assert status == 400
    assert words in json.loads(answer)["error"]["message"]


async def test_keys_and_versions_are_demanded_where_each_api_has_them(clients: Clients) -> None:
    async with ModelServer(lambda _: Reply(text="ok"), key="right") as server:
        client = await clients()
        for api, header, body in (
            ("responses", {"Authorization": "Bearer right"}, ask(SAID)),
            ("responses", {"api-key": "right"}, ask(SAID)),
            ("anthropic", {"x-api-key": "right"}, talk(said())),
            ("gemini", {"x-goog-api-key": "right"}, generate(of_user())),
        ):
            url = f"{server.host}{server.apis[api].path.replace('{model}', MODEL)}?alt=sse"
            async with client.post(url, json=body, headers=HEADERS) as response:
                assert response.status == 401
            async with client.post(url, json=body, headers={**HEADERS, **header}) as response:
                assert response.status == 200
        url = f"{server.host}/v1/messages"
        key = {"x-api-key": "right"}
        async with client.post(url, json=talk(said()), headers=key) as response:
            assert "anthropic-version" in await response.text()
