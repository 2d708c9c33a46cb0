"""The bytes that a model server sends in each of the four wire formats, and the least that a reader
of them has to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

TEXTS: Final = (" arma", " viru", " cano", " Troi", " qui ", " prim", " ab o", " ris ")
"""All of one length, so that the number of characters gives the number of tokens."""
_ARGUMENTS: Final = ('{"a":2,', '"b":3}')


@dataclass(frozen=True, slots=True)
class WireFormat:
    """One API: what it sends, and where."""

    name: str
    path: bytes
    """A part of the path that only this API has."""
    begin: bytes
    text: Callable[[str], bytes]
    """One token."""
    end: Callable[[int], bytes]
    """The end of a reply of so many tokens."""
    call: Callable[[int], bytes]
    """A whole reply that calls the tool `add`."""
    result: re.Pattern[bytes]
    """A result of a call in a request."""
    read: Callable[[bytes], str]
    """Decodes one event, and returns its text: what every reader has to do."""


def event(data: Mapping[str, object], *, named: bool = False) -> bytes:
    """One server-sent event as one chunk of HTTP."""
    line = b"data: %b\n\n" % msgspec.json.encode(data)
    if named:
        line = b"event: %b\n%b" % (str(data["type"]).encode(), line)
    return b"%x\r\n%b\r\n" % (len(line), line)


# -- Chat Completions


def _chat(delta: Mapping[str, object], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return event(_chat_chunk(choices=[choice], usage=None))


def _chat_chunk(**fields: object) -> dict[str, object]:
    return {
        "id": "chatcmpl-0123456789abcdefghijklmnopqrs",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "test-model",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        **fields,
    }


def _chat_end(tokens: int, finish_reason: str = "stop") -> bytes:
    usage = {"prompt_tokens": 9, "completion_tokens": tokens, "total_tokens": tokens + 9}
    done = b"data: [DONE]\n\n"
    last = b"%x\r\n%b\r\n" % (len(done), done)
    return _chat({}, finish_reason) + event(_chat_chunk(choices=[], usage=usage)) + last


def _chat_call(number: int) -> bytes:
    function = {"name": "add", "arguments": ""}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    begin = {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None}
    pieces = [
        _chat({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        for piece in _ARGUMENTS
    ]
    return _chat(begin) + b"".join(pieces) + _chat_end(9, "tool_calls")


class _ChatDelta(msgspec.Struct, gc=False):
    content: str | None = None


class _ChatChoice(msgspec.Struct, gc=False):
    delta: _ChatDelta


class _ChatChunk(msgspec.Struct, gc=False):
    choices: list[_ChatChoice] = []


_decode_chat: Final = msgspec.json.Decoder(_ChatChunk).decode


def _read_chat(data: bytes) -> str:
    if data == b"[DONE]":
        return ""
    return "".join(choice.delta.content or "" for choice in _decode_chat(data).choices)


# -- Responses


def _response(kind: str, **fields: object) -> bytes:
    return event({"type": f"response.{kind}", "sequence_number": 7, **fields}, named=True)


_MESSAGE: Final[dict[str, Any]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [],
}


def _response_end(tokens: int) -> bytes:
    usage = {"input_tokens": 9, "output_tokens": tokens, "total_tokens": tokens + 9}
    item = {**_MESSAGE, "status": "completed"}
    return _response("output_item.done", output_index=0, item=item) + _response(
        "completed", response={"id": "resp_1", "status": "completed", "usage": usage}
    )


def _response_call(number: int) -> bytes:
    item = {
        "id": f"fc_{number}",
        "type": "function_call",
        "call_id": f"call_{number}",
        "name": "add",
        "arguments": "",
    }
    pieces = [
        _response("function_call_arguments.delta", output_index=0, item_id=item["id"], delta=piece)
        for piece in _ARGUMENTS
    ]
    done = {**item, "arguments": "".join(_ARGUMENTS)}
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    return (
        _response("output_item.added", output_index=0, item=item)
        + b"".join(pieces)
        + _response("output_item.done", output_index=0, item=done)
        + _response("completed", response={"id": "resp_1", "status": "completed", "usage": usage})
    )


class _ResponseEvent(msgspec.Struct, gc=False):
    type: str = ""
    delta: str = ""


_decode_response: Final = msgspec.json.Decoder(_ResponseEvent).decode


def _read_response(data: bytes) -> str:
    read = _decode_response(data)
    return read.delta if read.type == "response.output_text.delta" else ""


# -- Messages


def _message(kind: str, **fields: object) -> bytes:
    return event({"type": kind, **fields}, named=True)


def _message_start() -> bytes:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "test-model",
        "stop_reason": None,
        "usage": {"input_tokens": 9, "output_tokens": 1},
    }
    return _message("message_start", message=message)


def _message_end(tokens: int, stop_reason: str = "end_turn") -> bytes:
    return (
        _message("content_block_stop", index=0)
        + _message(
            "message_delta",
            delta={"stop_reason": stop_reason, "stop_sequence": None},
            usage={"output_tokens": tokens},
        )
        + _message("message_stop")
    )


def _message_call(number: int) -> bytes:
    block: dict[str, Any] = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "add",
        "input": {},
    }
    pieces = [
        _message(
            "content_block_delta",
            index=0,
            delta={"type": "input_json_delta", "partial_json": piece},
        )
        for piece in _ARGUMENTS
    ]
    begin = _message_start() + _message("content_block_start", index=0, content_block=block)
    return begin + b"".join(pieces) + _message_end(9, "tool_use")


class _MessageDelta(msgspec.Struct, gc=False):
    text: str = ""


class _MessageEvent(msgspec.Struct, gc=False):
    delta: _MessageDelta = msgspec.field(default_factory=_MessageDelta)


_decode_message: Final = msgspec.json.Decoder(_MessageEvent).decode


def _read_message(data: bytes) -> str:
    return _decode_message(data).delta.text


# -- generateContent


def _content(*parts: object, finish: str | None = None, tokens: int = 0) -> bytes:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 9, "candidatesTokenCount": tokens, "totalTokenCount": tokens + 9}
    return event(
        {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "test-model",
            "responseId": "r1",
        }
    )


def _content_call(number: int) -> bytes:
    call = {"functionCall": {"name": "add", "args": {"a": 2, "b": 3}}}
    signed = {**call, "thoughtSignature": f"c2lnbmF0dXJl{number:04}"}
    return _content(signed, finish="STOP", tokens=9)


class _Part(msgspec.Struct, gc=False):
    text: str = ""


class _Content(msgspec.Struct, gc=False):
    parts: list[_Part] = []


class _Candidate(msgspec.Struct, gc=False):
    content: _Content = msgspec.field(default_factory=_Content)


class _Generated(msgspec.Struct, gc=False):
    candidates: list[_Candidate] = []


_decode_content: Final = msgspec.json.Decoder(_Generated).decode


def _read_content(data: bytes) -> str:
    return "".join(
        part.text
        for candidate in _decode_content(data).candidates
        for part in candidate.content.parts
    )


CHAT: Final = WireFormat(
    "chat",
    b"/chat/completions",
    _chat({"role": "assistant", "content": "", "refusal": None}),
    lambda text: _chat({"content": text}),
    _chat_end,
    _chat_call,
    re.compile(rb'"role":\s*"tool"'),
    _read_chat,
)
RESPONSES: Final = WireFormat(
    "responses",
    b"/responses",
    _response("output_item.added", output_index=0, item=_MESSAGE),
    lambda text: _response(
        "output_text.delta",
        item_id="msg_1",
        output_index=0,
        content_index=0,
        delta=text,
        logprobs=[],
    ),
    _response_end,
    _response_call,
    re.compile(rb'"function_call_output"'),
    _read_response,
)
MESSAGES: Final = WireFormat(
    "anthropic",
    b"/messages",
    _message_start()
    + _message("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    lambda text: _message(
        "content_block_delta", index=0, delta={"type": "text_delta", "text": text}
    ),
    _message_end,
    _message_call,
    re.compile(rb'"tool_result"'),
    _read_message,
)
GENERATE: Final = WireFormat(
    "gemini",
    b"GenerateContent",
    b"",
    lambda text: _content({"text": text}),
    lambda tokens: _content({"text": ""}, finish="STOP", tokens=tokens),
    _content_call,
    re.compile(rb'"functionResponse"'),
    _read_content,
)
FORMATS: Final = (CHAT, RESPONSES, MESSAGES, GENERATE)
