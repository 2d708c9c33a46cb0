"""Chat Completions: the chunks that an answer becomes, and the errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from keryx.events import Usage
from keryx.testing.modelserver.apis.api import Accepted, RefusedError, Request, cut, data_frame
from keryx.testing.modelserver.apis.chat_rules import check
from keryx.testing.modelserver.script import Reply


class ChatApi:
    """Chat Completions. `returns_reasoning`: a history may have the server's own reasoning."""

    name = "chat"
    path = "/v1/chat/completions"
    folder = "/v1"
    lead = 1

    def __init__(self) -> None:
        self.returns_reasoning = False

    def key(self, headers: Mapping[str, str]) -> str:
        return bearer(headers)

    def check(self, request: Request, models: Sequence[str]) -> Accepted:
        body = check(request.raw, models, returns_reasoning=self.returns_reasoning)
        options = body.stream_options
        with_usage = options is not None and options.include_usage
        return Accepted(body.model, body.stream, with_usage)

    def frames(self, reply: Reply, number: int, accepted: Accepted) -> Iterator[bytes]:
        envelope = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": accepted.model,
        }

        def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return data_frame({**envelope, "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        for text in cut(reply.reasoning, reply.chunk):
            yield chunk({"reasoning_content": text})
        for text in cut(reply.text, reply.chunk):
            yield chunk({"content": text})
        for delta in _call_deltas(reply, number):
            yield chunk({"tool_calls": [delta]})
        if reply.fault != "no finish_reason":
            yield chunk({}, _stop_reason(reply))
        if accepted.with_usage and reply.fault != "no usage":
            yield data_frame({**envelope, "choices": [], "usage": _usage(reply.usage)})
        if reply.fault != "no done":
            yield b"data: [DONE]\n\n"

    def whole(self, reply: Reply, number: int, accepted: Accepted) -> bytes:
        """Return the answer to whoever does not stream."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": call.id or f"call_{number}_{index}",
                    "type": "function",
                    "function": {"name": call.tool, "arguments": call.text},
                }
                for index, call in enumerate(reply.calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": _stop_reason(reply)}
        answer = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 0,
            "model": accepted.model,
            "choices": [choice],
            "usage": _usage(reply.usage),
        }
        return msgspec.json.encode(answer)

    def error(self, refused: RefusedError) -> bytes:
        return error_object(refused)

    def error_frame(self, reply: Reply) -> bytes:
        refused = RefusedError(reply.message, reply.status, reply.code, "scripted")
        return b"data: %b\n\n" % error_object(refused)

    def models(self, names: Sequence[str]) -> Any:
        return openai_models(names)


def bearer(headers: Mapping[str, str]) -> str:
    """Return the key of OpenAI's APIs, or of their deployments at Azure."""
    return headers.get("api-key", "") or headers.get("Authorization", "").removeprefix("Bearer ")


def error_object(refused: RefusedError) -> bytes:
    error = {
        "message": refused.message,
        "type": refused.type,
        "param": None,
        "code": refused.code,
    }
    return msgspec.json.encode({"error": error})


def openai_models(names: Sequence[str]) -> dict[str, Any]:
    models = [{"id": name, "object": "model", "created": 0, "owned_by": "keryx"} for name in names]
    return {"object": "list", "data": models}


def _stop_reason(reply: Reply) -> str:
    return reply.stop or ("tool_calls" if reply.calls else "stop")


def _call_deltas(reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(reply.calls):
        first = {"name": call.tool, "arguments": ""}
        call_id = call.id or f"call_{number}_{index}"
        yield {"index": index, "id": call_id, "type": "function", "function": first}
        for text in cut(call.text, reply.chunk):
            yield {"index": index, "function": {"arguments": text}}


def _usage(counted: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": counted.input_tokens,
        "completion_tokens": counted.output_tokens,
        "total_tokens": counted.input_tokens + counted.output_tokens,
        "prompt_tokens_details": {"cached_tokens": counted.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": counted.reasoning_tokens},
    }
