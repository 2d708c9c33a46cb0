"""What each wire format is sent, and what it gives back, over a real connection."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from keryx.errors import ModelError
from keryx.events import Usage
from keryx.messages import (
    AssistantMessage,
    File,
    Image,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from keryx.models.servers.providers import ROWS
from keryx.models.wire.quirks import Quirks
from keryx.ports.model import ModelRequest, ToolSpec
from keryx.testing.modelserver import Call, ModelServer, Reply
from tests.models.scripted_server import KEY, TOOLS, NewModel, ask, user

pytestmark = pytest.mark.promise("model.1")

CLOSED = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}},
    "required": ["n"],
}
OPEN = {"type": "object", "additionalProperties": {"type": "integer"}}
LOOK = Call("look", {"path": "a"})


async def test_text_reasoning_calls_and_usage_come_whole(new_model: NewModel) -> None:
    usage = Usage(input_tokens=100, output_tokens=20, cached_tokens=64, reasoning_tokens=7)
    if new_model.format == "anthropic":  # its API does not count reasoning apart
        usage = Usage(input_tokens=100, output_tokens=20, cached_tokens=64)
    reply = Reply(
        text="Hello there, «wörld» 🎉\n",
        reasoning="Let me think.",
        calls=(Call("look", {"path": "a"}, id="x1"), Call("look", {"path": "b"}, id="x2")),
        usage=usage,
        chunk=3,
    )
    async with ModelServer([reply], key=KEY) as server:
        answer = await ask(new_model(server.host), tools=TOOLS, effort="high")
        assert server.refused == []
    assert answer.text == reply.text
    assert answer.reasoning == reply.reasoning
    assert answer.calls == {0: ["x1", "look", '{"path":"a"}'], 1: ["x2", "look", '{"path":"b"}']}
    assert answer.finished is not None
    assert answer.finished.stop_reason == "tool_calls"
    assert answer.finished.usage == usage
    assert answer.finished.model == f"{new_model.format}:test-model"


FORCED: dict[str, tuple[str, Any, Any]] = {
    "chat": (
        "tool_choice",
        "required",
        {"type": "function", "function": {"name": "look"}},
    ),
    "responses": ("tool_choice", "required", {"type": "function", "name": "look"}),
    "anthropic": ("tool_choice", {"type": "any"}, {"type": "tool", "name": "look"}),
    "gemini": (
        "toolConfig",
        {"functionCallingConfig": {"mode": "ANY"}},
        {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
    ),
}


@pytest.mark.promise("page20.36")
@pytest.mark.parametrize("effort", [None, "high"])
async def test_a_reply_must_call_a_tool(new_model: NewModel, effort: str | None) -> None:
    field, any_tool, named_tool = FORCED[new_model.format]
    replies = [Reply(calls=(Call("look", {"path": "a"}),))] * 3
    async with ModelServer(replies, key=KEY) as server:
        model = new_model(server.host)
        for choice in (ToolChoice(), ToolChoice(name="look"), None):
            await ask(model, tools=TOOLS, tool_choice=choice, effort=effort)
        assert server.refused == []
        fields = [asked.body.get(field) for asked in server.asked]
        assert fields == [any_tool, named_tool, None]
        with pytest.raises(ModelError):
            await ask(model, tools=TOOLS, tool_choice=ToolChoice(name="other"))
        with pytest.raises(ModelError):
            await ask(model, tool_choice=ToolChoice())
        assert len(server.refused) == 2


@pytest.mark.parametrize("new_model", ["anthropic"], indirect=True)
async def test_the_messages_api_does_not_think_before_a_call_that_it_must_make(
    new_model: NewModel,
) -> None:
    thinking = {"thinking": {"type": "adaptive"}}
    async with ModelServer([Reply(text="x")], key=KEY) as server:
        with pytest.raises(ModelError):
            await ask(new_model(server.host), tools=TOOLS, tool_choice=ToolChoice(), extra=thinking)
        assert "Thinking may not be enabled" in server.refused[0].message


SHOWN = {"type": "adaptive", "display": "summarized"}
BOUND = {**SHOWN, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def body(new_model: NewModel, model: str, **options: Any) -> dict[str, Any]:
    adapter = new_model("http://127.0.0.1", model=model)
    history = options.pop("history", [adapter.encode(user("hello"))])
    request = ModelRequest(system=options.pop("system", ""), history=history, **options)
    return msgspec.json.decode(adapter.body(request), type=dict[str, Any])


@pytest.mark.parametrize(
    ("model", "effort", "fields"),
    [
        ("claude-opus-4-6", None, {}),
        ("claude-opus-4-6", "none", {}),
        (
            "claude-opus-4-6",
            "low",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        ),
        (
            "claude-opus-4-6",
            "xhigh",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        ),
        (
            "claude-next",
            "max",
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
        ),
        ("claude-opus-4-8", None, {}),
        ("claude-opus-4-8", "xhigh", {"thinking": SHOWN, "output_config": {"effort": "xhigh"}}),
        ("claude-sonnet-5", None, {"thinking": SHOWN}),
        ("claude-sonnet-5", "none", {"thinking": {"type": "disabled"}}),
        ("claude-fable-5", "none", {"thinking": SHOWN, "output_config": {"effort": "low"}}),
        ("claude-opus-5-5", None, {"thinking": BOUND}),
        ("claude-opus-5-5", "none", {"thinking": BOUND, "output_config": {"effort": "low"}}),
        ("claude-fable-5-1", "max", {"thinking": BOUND, "output_config": {"effort": "max"}}),
        ("claude-sonnet-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        (
            "claude-sonnet-4-20250514",
            "high",
            {"thinking": {"type": "enabled", "budget_tokens": 20480}},
        ),
        ("claude-3-5-haiku-20241022", "high", {"max_tokens": 8192}),
        ("claude-3-haiku-20240307", "high", {"max_tokens": 4096}),
    ],
)
@pytest.mark.parametrize("new_model", ["anthropic"], indirect=True)
def test_claude_thinks_as_its_generation_does(
    new_model: NewModel, model: str, effort: str | None, fields: dict[str, Any]
) -> None:
    sent = body(new_model, model, effort=effort)
    expected = {"max_tokens": 32_000, **fields}
    assert {name: sent[name] for name in expected} == expected
    assert ("thinking" in sent) == ("thinking" in fields)


@pytest.mark.parametrize("new_model", ["anthropic"], indirect=True)
def test_thinking_needs_room_and_calls_that_were_thought_about(new_model: NewModel) -> None:
    adapter = new_model("http://127.0.0.1", model="claude-sonnet-4-5")
    assert body(new_model, "claude-sonnet-4-5", effort="high", max_tokens=2000)["thinking"] == {
        "type": "enabled",
        "budget_tokens": 1999,
    }
    assert "thinking" not in body(new_model, "claude-sonnet-4-5", effort="high", max_tokens=1000)
    calls = AssistantMessage((), (ToolCall("c", "look"),))
    history = [*map(adapter.encode, (user("go"), calls, ToolMessage("c", (Text("r"),), "look")))]
    assert "thinking" not in body(new_model, "claude-sonnet-4-5", effort="high", history=history)
    history += [*map(adapter.encode, (AssistantMessage((Text("done"),)), user("more")))]
    assert "thinking" in body(new_model, "claude-sonnet-4-5", effort="high", history=history)


@pytest.mark.parametrize("new_model", ["anthropic"], indirect=True)
async def test_thinking_stays_as_it_is_until_the_turn_ends(new_model: NewModel) -> None:
    thought, more = Reply(reasoning="hm", calls=(LOOK,)), Reply(calls=(LOOK,))
    async with ModelServer(
        [thought, more, Reply(text="x")], models=("claude-sonnet-4-5",)
    ) as server:
        model = new_model(server.host, model="claude-sonnet-4-5")
        said: list[Message] = [user("go")]
        for number in range(3):
            answer = await ask(model, *said, tools=TOOLS, effort="high")
            opaque = tuple(
                Opaque(provider=item.provider, item=msgspec.Raw(item.item))
                for item in answer.opaque
            )
            calls = tuple(ToolCall(f"c{number}", tool) for _, tool, _ in answer.calls.values())
            said.append(AssistantMessage((), calls, "", opaque))
            said += [ToolMessage(call.call_id, (Text("r"),), "look") for call in calls]
        assert server.refused == []
        thinking = [asked.body.get("thinking") for asked in server.asked]
    # After another value the API would have to read the whole history again.
    assert thinking == [{"type": "enabled", "budget_tokens": 20_480}] * 3


@pytest.mark.parametrize("new_model", ["anthropic"], indirect=True)
async def test_claude_is_asked_for_a_call_in_words_if_it_cannot_be_made_to_call(
    new_model: NewModel,
) -> None:
    names = ("claude-opus-5-5", "claude-haiku-5-5")
    async with ModelServer([Reply(calls=(LOOK,))] * 2, models=names) as server:
        for name in names:
            model = new_model(server.host, model=name)
            await ask(model, tools=TOOLS, tool_choice=ToolChoice(name="look"))
        assert server.refused == []
        large, small = (asked.body for asked in server.asked)
    assert "tool_choice" not in large
    assert "a call of the tool look" in large["system"][0]["text"]
    assert small["tool_choice"] == {"type": "tool", "name": "look"}


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-3-pro-preview", None, {"includeThoughts": True}),
        ("gemini-3-pro-preview", "none", {"includeThoughts": False, "thinkingLevel": "low"}),
        ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.1-pro", "medium", {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-3-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        ("gemini-3-flash", "xhigh", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-2.5-flash", "none", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-pro", "none", {"includeThoughts": False, "thinkingBudget": 128}),
        ("gemini-2.5-pro", "high", {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("gemini-2.0-flash", "high", None),
        ("gemini-3-flash", "banana", {"includeThoughts": True}),
        ("gemini-2.5-pro", "banana", {"includeThoughts": True}),
        ("gemini-2.5-flash-image", None, None),
        ("gemma-3-27b-it", None, None),
    ],
)
@pytest.mark.parametrize("new_model", ["gemini"], indirect=True)
def test_gemini_thinks_as_its_generation_does(
    new_model: NewModel, model: str, effort: str | None, config: dict[str, Any] | None
) -> None:
    sent = body(new_model, model, effort=effort)
    assert sent["generationConfig"].get("thinkingConfig") == config


@pytest.mark.parametrize("new_model", ["responses", "gemini"], indirect=True)
def test_a_very_short_reply_is_asked_for_as_the_api_takes_it(new_model: NewModel) -> None:
    sent = body(new_model, "gemini-2.5-flash", max_tokens=5)
    if new_model.format == "responses":
        assert sent["max_output_tokens"] == 16
    else:
        assert sent["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 0


@pytest.mark.parametrize("new_model", ["responses"], indirect=True)
def test_responses_ask_for_reasoning_of_models_that_have_it(new_model: NewModel) -> None:
    sent = body(new_model, "gpt-6", effort="low", system="Be brief.", max_tokens=99)
    assert sent["store"] is False
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert sent["reasoning"] == {"effort": "low"}
    assert (sent["instructions"], sent["max_output_tokens"]) == ("Be brief.", 99)
    assert "include" not in body(new_model, "gpt-4.1-mini")


ANSWERS: dict[str, Any] = {
    "chat": ("response_format", None),
    "responses": ("text", None),
    "anthropic": ("output_config", None),
    "gemini": ("generationConfig", "responseJsonSchema"),
}


async def test_an_answer_is_described_as_each_api_wants_it(new_model: NewModel) -> None:
    field, inner = ANSWERS[new_model.format]
    async with ModelServer(lambda _: Reply(text="{}")) as server:
        for schema in (CLOSED, OPEN):
            await ask(new_model(server.host), schema=schema, tools=TOOLS)
        assert server.refused == []
        closed, open_ = (request.body for request in server.asked)
    assert field in closed
    assert inner is None or inner in closed[field]
    if new_model.format == "anthropic":
        # Its grammar has only closed objects, so words describe the open one.
        assert closed["output_config"]["format"]["schema"] == {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": False,
        }
        assert "output_config" not in open_
        assert "matches this JSON schema" in open_["system"][0]["text"]


@pytest.mark.parametrize("new_model", ["gemini"], indirect=True)
def test_an_older_gemini_is_asked_in_words_for_an_answer_beside_tools(new_model: NewModel) -> None:
    sent = body(new_model, "gemini-2.5-pro", schema=CLOSED, tools=TOOLS)
    assert "responseJsonSchema" not in sent["generationConfig"]
    assert "matches this JSON schema" in sent["systemInstruction"]["parts"][0]["text"]
    assert (
        "responseJsonSchema" in body(new_model, "gemini-2.5-pro", schema=CLOSED)["generationConfig"]
    )


async def test_tools_of_every_shape_are_taken(new_model: NewModel) -> None:
    tools = (
        *TOOLS,
        ToolSpec("bare", "No parameters.", {"type": "object", "properties": {}}),
        ToolSpec(
            "rich",
            "References and unions.",
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"anyOf": [{"type": "null"}]}},
                "$defs": {"x": {"enum": ["p", "q"]}},
                "additionalProperties": False,
            },
        ),
    )
    async with ModelServer([Reply(text="ok")]) as server:
        await ask(new_model(server.host), tools=tools)
        assert server.refused == []


async def test_one_tool_with_odd_parameters_does_not_have_all_requests_refused(
    new_model: NewModel,
) -> None:
    path, url = {"path": {"type": "string"}}, {"url": {"type": "string"}}
    choice = [{"properties": path, "required": ["path"]}, {"$ref": "#/$defs/by_url"}]
    schemas: list[dict[str, Any]] = [
        {},
        {"type": "object"},
        {"type": "string"},
        {"type": "object", "anyOf": choice, "$defs": {"by_url": {"properties": url}}},
        {"allOf": [{"properties": path, "required": ["path"]}], "properties": url, "enum": [{}]},
        {"$ref": "#/$defs/loop", "$defs": {"loop": {"$ref": "#/$defs/loop", "properties": path}}},
    ]
    tools = [ToolSpec(f"tool_{number}", "Odd.", schema) for number, schema in enumerate(schemas)]
    async with ModelServer([Reply(text="ok")]) as server:
        await ask(new_model(server.host), tools=tools)
        assert server.refused == []
        (asked,) = server.asked
    if new_model.format == "anthropic":
        sent = [tool["input_schema"] for tool in asked.body["tools"]]
        empty: dict[str, Any] = {"type": "object", "properties": {}}
        assert sent[:3] == [empty] * 3
        assert sent[3] | {"$defs": {}} == {**empty, "properties": {**path, **url}, "$defs": {}}
        assert sent[4] == {**empty, "properties": {**url, **path}, "required": ["path"]}
        assert sent[5]["properties"] == path


async def test_a_conversation_may_begin_with_a_reply(new_model: NewModel) -> None:
    """As one that was imported does."""
    async with ModelServer([Reply(text="ok")]) as server:
        await ask(new_model(server.host), AssistantMessage((Text("Hello!"),)), user("hi"))
        assert server.refused == []


async def test_only_what_the_api_reads_is_sent_as_media(new_model: NewModel) -> None:
    blobs = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg/>"}
    message = UserMessage(
        (
            Text("see"),
            Image("png", "image/png", "a.png"),
            File("pdf", "application/pdf", "b.pdf"),
            Image("gone", "image/png", "c.png"),
            File("txt", "text/plain", "d.txt"),
            Image("svg", "image/svg+xml", "e.svg"),
        )
    )
    async with ModelServer(lambda _: Reply(text="ok")) as server:
        seeing = new_model(server.host, sees_images=True, blobs=blobs.__getitem__)
        blind = new_model(server.host)
        await ask(seeing, message)
        await ask(blind, message)
        assert server.refused == []
        with_media, without_media = (request.raw for request in server.asked)
    assert b"iVBORw==" in with_media
    assert (b"JVBERg==" in with_media) == (new_model.format != "chat")
    assert b"c.png: the image does not exist any more" in with_media
    assert b"[text/plain d.txt]" in with_media
    assert b"[image/svg+xml e.svg]" in with_media
    assert b"iVBORw==" not in without_media
    assert b"a.png: use vision_analyze to see it" in without_media


# -- deviations of single servers


@pytest.mark.parametrize("new_model", ["chat"], indirect=True)
async def test_a_server_gets_its_own_reasoning_back_if_it_needs_it(new_model: NewModel) -> None:
    quirks = ROWS["deepseek"].quirks
    async with ModelServer(lambda _: Reply(text="ok", reasoning="my thoughts")) as server:
        model = new_model(server.host, quirks=quirks)
        answer = await ask(model, max_tokens=5, schema=CLOSED)
        (item,) = answer.opaque
        assert msgspec.json.decode(item.item) == {"reasoning_content": "my thoughts"}
        sent = server.asked[0].body
    assert sent["max_tokens"] == 5
    assert "response_format" not in sent
    assert "matches this JSON schema" in sent["messages"][0]["content"]
    plain = body_with(new_model, Quirks(without=("stream_options",)))
    assert "stream_options" not in plain


def body_with(new_model: NewModel, quirks: Quirks) -> dict[str, Any]:
    adapter = new_model("http://127.0.0.1", quirks=quirks)
    request = ModelRequest(system="", history=[adapter.encode(user("hello"))])
    return msgspec.json.decode(adapter.body(request), type=dict[str, Any])


@pytest.mark.parametrize("new_model", ["chat"], indirect=True)
async def test_a_deployment_is_named_in_the_address(new_model: NewModel) -> None:
    async with ModelServer([Reply(text="ok")], key=KEY) as server:
        model = new_model(server.host, quirks=ROWS["azure"].quirks)
        await ask(model)
        assert server.asked[0].headers["api-key"] == KEY
        assert "Authorization" not in server.asked[0].headers
    assert model.address("http://h/deployments/m?api-version=1") == (
        "http://h/deployments/m/chat/completions?api-version=1"
    )
