"""Servers of Chat Completions that differ from OpenAI's own, as their public documentation says."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from keryx.events import Usage
from keryx.messages import AssistantMessage, Text, ToolCall, ToolMessage
from keryx.models.http import Clients
from keryx.models.openai.model import OpenAIModel
from keryx.models.openai.reply import ChatReply
from keryx.models.servers.providers import ROWS, Row, row_at
from keryx.ports.model import ModelRequest
from tests.models.scripted_server import TOOLS, Answer, user

pytestmark = pytest.mark.promise("model.1")

CALL_ID = "p_0123456789abcdef.0"
"""As the engine makes them."""
CALLED = AssistantMessage((), (ToolCall(CALL_ID, "look"), ToolCall(f"{CALL_ID}1", "look")))


def model_of(row: Row, clients: Clients) -> OpenAIModel:
    return OpenAIModel(
        name="p:m",
        model="m",
        base_url="http://127.0.0.1/v1",
        api_key=None,
        clients=clients,
        quirks=row.quirks,
    )


def body(row: Row, clients: Clients, **options: Any) -> dict[str, Any]:
    model = model_of(row, clients)
    results = [ToolMessage(call.call_id, (Text("r"),), "look") for call in CALLED.calls]
    history = [user("go"), CALLED, *results, AssistantMessage((Text("done"),)), user("more")]
    request = ModelRequest(system="", history=[*map(model.encode, history)], tools=TOOLS, **options)
    return msgspec.json.decode(model.body(request), type=dict[str, Any])


def read(row: Row, *chunks: dict[str, Any]) -> tuple[Answer, ChatReply]:
    reply, answer = ChatReply("s", row.quirks), Answer()
    for chunk in chunks:
        for piece in reply.add([msgspec.json.encode(chunk)]):
            answer.take(piece)
    return answer, reply


async def test_the_ids_of_calls_have_the_form_that_mistral_demands(clients: Clients) -> None:
    _, called, first, second, *_ = body(ROWS["mistral"], clients)["messages"]
    ids = [call["id"] for call in called["tool_calls"]]
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call_id) for call_id in ids)
    assert ids == [first["tool_call_id"], second["tool_call_id"]]
    assert len(set(ids)) == 2


def test_the_thoughts_of_mistral_come_as_parts_of_the_content() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Let me "}]}
    answer, _ = read(
        ROWS["mistral"],
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"content": [thought]}}]},
        {"choices": [{"delta": {"content": [{**thought, "thinking": "see."}]}}]},
        {"choices": [{"delta": {"content": [{"type": "text", "text": "It is "}]}}]},
        {"choices": [{"delta": {"content": "4."}, "finish_reason": "stop"}]},
    )
    assert (answer.reasoning, answer.text) == ("Let me see.", "It is 4.")


async def test_deepseek_gets_the_field_of_reasoning_with_every_reply(clients: Clients) -> None:
    replies = [
        message
        for message in body(ROWS["deepseek"], clients)["messages"]
        if message["role"] == "assistant"
    ]
    assert [message["reasoning_content"] for message in replies] == ["", ""]
    others = body(ROWS["groq"], clients)["messages"]
    assert not any("reasoning_content" in message for message in others)


@pytest.mark.parametrize(
    ("total", "output"),
    [(135, 103), (41, 9), (None, 9)],
    ids=["counted apart", "included", "no total"],
)
def test_reasoning_that_is_counted_apart_is_output(total: int | None, output: int) -> None:
    usage = {
        "prompt_tokens": 32,
        "completion_tokens": 9,
        "total_tokens": total,
        "completion_tokens_details": {"reasoning_tokens": 94},
    }
    _, reply = read(ROWS["xai"], {"choices": [], "usage": usage})
    assert reply.usage == Usage(input_tokens=32, output_tokens=output, reasoning_tokens=94)


@pytest.mark.parametrize(
    ("fields", "cost"),
    [
        ({"cost": 0.95, "cost_details": {"upstream_inference_cost": None}}, 0.95),
        ({"cost": 0.95, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.9}}, 0.95),
        ({"cost": 0.05, "is_byok": True, "cost_details": {"upstream_inference_cost": 1}}, 1.05),
        ({"cost": {"total_cost": 1}}, None),
        ({}, None),
    ],
)
def test_openrouter_says_what_a_reply_cost(fields: dict[str, Any], cost: float | None) -> None:
    chunk: dict[str, Any] = {
        "choices": [],
        "usage": {"prompt_tokens": 194, "completion_tokens": 2, **fields},
    }
    assert read(ROWS["openrouter"], chunk)[1].cost == cost
    # Elsewhere the field may be in another currency.
    assert read(ROWS["groq"], chunk)[1].cost is None


async def test_a_field_that_some_models_refuse_is_sent_only_where_it_is_needed(
    clients: Clients,
) -> None:
    assert body(ROWS["llamacpp"], clients)["parallel_tool_calls"] is True
    assert "parallel_tool_calls" not in body(ROWS["azure"], clients)
    chosen = body(ROWS["azure"], clients, extra={"parallel_tool_calls": False})
    assert chosen["parallel_tool_calls"] is False


@pytest.mark.parametrize("name", ["ollama", "lmstudio", "vllm", "llamacpp"])
async def test_a_server_on_this_machine_gets_the_limit_that_it_knows(
    clients: Clients, name: str
) -> None:
    sent = body(ROWS[name], clients, max_tokens=9)
    assert sent["max_tokens"] == 9
    assert "max_completion_tokens" not in sent


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.mistral.ai/v1/", "mistral"),
        ("https://mine.openai.azure.com/openai/v1", "azure"),
        ("https://mine.cognitiveservices.azure.com/openai/deployments/m", "azure"),
        ("https://mine.services.ai.azure.com/openai/v1", "azure"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", None),
        ("https://proxy.example/v1", None),
    ],
)
def test_a_provider_is_known_by_its_host(address: str, name: str | None) -> None:
    assert row_at(address) == (None if name is None else ROWS[name])
