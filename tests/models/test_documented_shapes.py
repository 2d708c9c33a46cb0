"""Streams as the providers' public documentation shows them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from keryx.events import Usage
from keryx.messages import AssistantMessage, Opaque, Text, ToolCall
from keryx.models.anthropic.reply import AnthropicReply
from keryx.models.gemini.reply import GeminiReply
from keryx.models.openai.reply import ChatReply
from keryx.models.responses.reply import ResponsesReply
from keryx.models.sse import SseParser
from keryx.models.wire.quirks import Quirks
from keryx.models.wire.replies import Reply
from keryx.ports.model import Finished
from tests.models.scripted_server import Answer, NewModel

pytestmark = pytest.mark.promise("model.1")

ANTHROPIC_THINKING = """\
event: message_start
data: {"type": "message_start", "message": {"id": "msg_01", "type": "message", "role": \
"assistant", "content": [], "model": "claude-sonnet-4-5", "stop_reason": null, \
"stop_sequence": null, "usage": \
{"input_tokens": 25, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7, \
"output_tokens": 1}}}

event: content_block_start
data: {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", \
"thinking": "", "signature": ""}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": \
"I need to find the GCD of 1071 and 462"}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", \
"signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"}}

event: content_block_stop
data: {"type": "content_block_stop", "index": 0}

event: content_block_start
data: {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", \
"data": "EmwKAhgBEgy3va3pzix"}}

event: content_block_stop
data: {"type": "content_block_stop", "index": 1}

event: ping
data: {"type": "ping"}

event: content_block_start
data: {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": \
"Okay, let's check the weather."}}

event: content_block_stop
data: {"type": "content_block_stop", "index": 2}

event: content_block_start
data: {"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": \
"toolu_01T1x1fJ34qAmk2tNTrN7Up6", "name": "get_weather", "input": {}}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", \
"partial_json": ""}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", \
"partial_json": "{\\"location\\": \\"San Fra"}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", \
"partial_json": "ncisco, CA\\"}"}}

event: content_block_stop
data: {"type": "content_block_stop", "index": 3}

event: message_delta
data: {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, \
"usage": {"output_tokens": 89}}

event: message_stop
data: {"type": "message_stop"}

"""
RESPONSES_CALL = """\
event: response.created
data: {"type":"response.created","response":{"id":"resp_67","object":"response","status":\
"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_67","type":\
"reasoning","summary":[]}}

event: response.reasoning_summary_part.added
data: {"type":"response.reasoning_summary_part.added","item_id":"rs_67","output_index":0,\
"summary_index":0,"part":{"type":"summary_text","text":""}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_67","output_index":0,\
"summary_index":0,"delta":"**Checking the weather**"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_67","type":\
"reasoning","summary":[{"type":"summary_text","text":"**Checking the weather**"}],\
"encrypted_content":"gAAAAABoISQ24OyVRYbkYfukdJoqdzWT"}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":\
"fc_1234xyz","call_id":"call_1234xyz","name":"get_weather","arguments":""}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1234xyz","output_index":1,\
"delta":"{\\"location\\":"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1234xyz","output_index":1,\
"delta":"\\"Paris, France\\"}"}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","item_id":"fc_1234xyz","output_index":1,\
"arguments":"{\\"location\\":\\"Paris, France\\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":\
"fc_1234xyz","call_id":"call_1234xyz","name":"get_weather","arguments":\
"{\\"location\\":\\"Paris, France\\"}"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_67","object":"response","status":\
"completed","usage":{"input_tokens":37,"output_tokens":11,"output_tokens_details":\
{"reasoning_tokens":4},"input_tokens_details":{"cached_tokens":8},"total_tokens":48}}}

"""
GEMINI_CALLS = """\
data: {"candidates": [{"content": {"parts": [{"text": "**Planning**", "thought": true}],"role": \
"model"},"index": 0}],"usageMetadata": {"promptTokenCount": 66,"totalTokenCount": 66},\
"modelVersion": "gemini-3-pro-preview"}

data: {"candidates": [{"content": {"parts": [{"text": "I will check."}, {"functionCall": {"id": \
"abc","name": "check_flight","args": {"flight": "AA100"}},"thoughtSignature": "<Signature A>"}, \
{"functionCall": {"name": "book_taxi","args": {}}}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"text": "","thoughtSignature": "<Signature B>"}],\
"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 66,\
"candidatesTokenCount": 12,"totalTokenCount": 178,"thoughtsTokenCount": 100,\
"cachedContentTokenCount": 16,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 66}]}}

"""


def read(reply: Reply, stream: str) -> Answer:
    """Read a stream at once, and again in pieces of three bytes: the answer is the same."""
    answers: list[Answer] = []
    data = stream.encode()
    for size, current in ((len(data), reply), (3, type(reply)("signer"))):  # pyright: ignore[reportCallIssue] (each reply takes the signer)
        answer, parser = Answer(), SseParser(limit=1 << 20)
        for start in range(0, len(data), size):
            for piece in current.add(parser.feed(data[start : start + size])):
                answer.take(piece)
        answer.take(Finished(current.stop_reason, current.usage))
        assert current.is_done
        answers.append(answer)
    first, second = answers
    assert (first.text, first.reasoning, first.calls, first.finished) == (
        (second.text, second.reasoning, second.calls, second.finished)
    )
    assert first.opaque == second.opaque
    return first


def items(answer: Answer) -> list[Any]:
    assert {piece.provider for piece in answer.opaque} <= {"signer"}
    return [msgspec.json.decode(piece.item) for piece in answer.opaque]


def test_messages_with_thinking_and_a_tool() -> None:
    answer = read(AnthropicReply("signer"), ANTHROPIC_THINKING)
    assert answer.reasoning == "I need to find the GCD of 1071 and 462"
    assert answer.text == "Okay, let's check the weather."
    assert answer.calls == {
        0: ["toolu_01T1x1fJ34qAmk2tNTrN7Up6", "get_weather", '{"location": "San Francisco, CA"}']
    }
    assert items(answer) == [
        {
            "type": "thinking",
            "thinking": "I need to find the GCD of 1071 and 462",
            "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds",
        },
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
    ]
    usage = Usage(input_tokens=132, output_tokens=89, cached_tokens=100)
    assert answer.finished == Finished("tool_calls", usage)


def test_responses_with_encrypted_reasoning_and_a_call() -> None:
    answer = read(ResponsesReply("signer"), RESPONSES_CALL)
    assert answer.reasoning == "**Checking the weather**"
    assert answer.calls == {0: ["call_1234xyz", "get_weather", '{"location":"Paris, France"}']}
    reasoning, call = items(answer)
    assert reasoning["encrypted_content"] == "gAAAAABoISQ24OyVRYbkYfukdJoqdzWT"
    assert call == {"type": "function_call", "id": "fc_1234xyz"}
    usage = Usage(input_tokens=37, output_tokens=11, cached_tokens=8, reasoning_tokens=4)
    assert answer.finished == Finished("tool_calls", usage)


def test_gemini_with_parallel_calls_and_signatures() -> None:
    answer = read(GeminiReply("signer"), GEMINI_CALLS)
    assert answer.reasoning == "**Planning**"
    assert answer.text == "I will check."
    assert answer.calls == {
        0: ["abc", "check_flight", '{"flight":"AA100"}'],
        1: ["", "book_taxi", "{}"],
    }
    assert items(answer) == [
        {"signature": "<Signature A>", "characters": None},
        {"signature": "<Signature B>", "characters": 0},
    ]
    usage = Usage(input_tokens=66, output_tokens=112, cached_tokens=16, reasoning_tokens=100)
    assert answer.finished == Finished("tool_calls", usage)


CHAT_DETAILS = """\
data: {"choices":[{"delta":{"role":"assistant","content":"","reasoning":"Hm","reasoning_details":\
[{"type":"reasoning.text","text":"H","format":"anthropic-claude-v1","index":0}]}}]}

data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"m","signature":\
"sig","format":"anthropic-claude-v1","index":0}]}}]}

data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"xyz",\
"index":1}]}}]}

data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}

data: [DONE]

"""


@pytest.mark.parametrize(
    ("field", "stream", "item"),
    [
        (
            "reasoning_details",
            CHAT_DETAILS,
            {
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": "Hm",
                        "format": "anthropic-claude-v1",
                        "index": 0,
                        "signature": "sig",
                    },
                    {"type": "reasoning.encrypted", "data": "xyz", "index": 1},
                ]
            },
        ),
        (
            "reasoning_content",
            CHAT_DETAILS.replace('"reasoning":"Hm"', '"reasoning_content":"Hm"'),
            {"reasoning_content": "Hm"},
        ),
    ],
)
def test_chat_servers_that_need_their_reasoning_back(
    field: str, stream: str, item: dict[str, Any]
) -> None:
    answer, parser = Answer(), SseParser(limit=1 << 20)
    for piece in ChatReply("signer", Quirks(returned=field)).add(parser.feed(stream.encode())):
        answer.take(piece)
    assert items(answer) == [item]
    assert answer.text == "Hi"


# -- what is sent back is what came


def test_a_reply_goes_back_in_the_order_in_which_it_came(new_model: NewModel) -> None:
    def signed(item: Any, after_text: int = 0, after_calls: int = 0) -> Opaque:
        raw = msgspec.Raw(msgspec.json.encode(item))
        return Opaque(
            provider=model.signer, item=raw, after_text=after_text, after_calls=after_calls
        )

    model = new_model("http://127.0.0.1")
    thinking = {"type": "thinking", "thinking": "t", "signature": "s"}
    again = {"type": "redacted_thinking", "data": "d"}
    reasoning: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "e",
    }
    phase = {"type": "message", "id": "msg_1", "phase": "commentary"}
    opaque = {
        "chat": (),
        "anthropic": (signed(thinking), signed(again, 3, 0), signed(thinking, 6, 1)),
        "responses": (
            signed(reasoning),
            signed(phase, 6),
            signed({"type": "function_call", "id": "fc_1"}, 6),
            signed({"type": "function_call", "id": "fc_2"}, 6, 1),
        ),
        "gemini": (signed({"signature": "A", "characters": 2}, 6), signed({"signature": "B"}, 6)),
    }[model.format]
    calls = (ToolCall("c1", "look", '{"a":1}'), ToolCall("c2", "look", "[]"))
    message = AssistantMessage((Text("onetwo"),), calls, "t", opaque)
    raw = model.encode(message)
    if model.format in ("anthropic", "gemini"):
        raw = raw.removeprefix(b"a")
    values = msgspec.json.decode(b"[%b]" % raw)
    expected: dict[str, list[Any]] = {
        "anthropic": [
            thinking,
            {"type": "text", "text": "one"},
            again,
            {"type": "text", "text": "two"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}},
            thinking,
            {"type": "tool_use", "id": "c2", "name": "look", "input": {"arguments": "[]"}},
        ],
        "responses": [
            reasoning,
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "onetwo", "annotations": []}],
                "phase": "commentary",
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c1",
                "name": "look",
                "arguments": '{"a":1}',
            },
            {
                "type": "function_call",
                "id": "fc_2",
                "call_id": "c2",
                "name": "look",
                "arguments": "[]",
            },
        ],
        "gemini": [
            {"text": "onet"},
            {"text": "wo", "thoughtSignature": "A"},
            {
                "functionCall": {"id": "c1", "name": "look", "args": {"a": 1}},
                "thoughtSignature": "B",
            },
            {"functionCall": {"id": "c2", "name": "look", "args": {"arguments": "[]"}}},
        ],
    }
    if model.format != "chat":
        assert values == expected[model.format]
    # To any other address, model or format nothing of it is sent.
    for other in (new_model("http://127.0.0.2"), new_model("http://127.0.0.1", model="other")):
        assert other.encode(message) == other.encode(AssistantMessage((Text("onetwo"),), calls))


@pytest.mark.parametrize("new_model", ["responses"], indirect=True)
def test_reasoning_that_nothing_follows_is_not_sent_back(new_model: NewModel) -> None:
    model = new_model("http://127.0.0.1")
    item: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}
    raw = msgspec.Raw(msgspec.json.encode(item))
    opaque = Opaque(provider=model.signer, item=raw, after_text=2)
    message = AssistantMessage((Text("So"),), (), "", (opaque,))
    assert msgspec.json.decode(model.encode(message)) == {"role": "assistant", "content": "So"}


@pytest.mark.parametrize(
    ("reply", "event"),
    [
        (
            ChatReply("s"),
            (
                b'{"choices":[],"usage":{"prompt_tokens":9,"prompt_tokens_details":'
                b'{"cached_tokens":2,"cache_write_tokens":5}}}'
            ),
        ),
        (
            ResponsesReply("s"),
            (
                b'{"type":"response.completed","response":{"usage":{"input_tokens":9,'
                b'"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":5}}}}'
            ),
        ),
        (
            AnthropicReply("s"),
            (
                b'{"type":"message_start","message":{"usage":{"input_tokens":2,'
                b'"cache_read_input_tokens":2,"cache_creation_input_tokens":5}}}'
            ),
        ),
    ],
)
def test_what_is_written_to_the_cache_is_input_with_a_price_of_its_own(
    reply: Reply, event: bytes
) -> None:
    reply.add([event])
    assert reply.usage == Usage(input_tokens=9, cached_tokens=2)
    assert reply.cache_writes == 5
