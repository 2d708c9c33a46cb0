"""The Messages API: the events that an answer becomes, and the errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from keryx.testing.modelserver.apis.anthropic_rules import (
    BINDING_HEADER,
    BOUND,
    ThinkingAdaptive,
    ThinkingEnabled,
    check,
    prefix,
)
from keryx.testing.modelserver.apis.api import (
    Accepted,
    RefusedError,
    Request,
    Signatures,
    cut,
    named_frame,
)
from keryx.testing.modelserver.script import Reply

_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_STOPS: Final = {"length": "max_tokens", "content_filter": "refusal"}


class AnthropicApi:
    """The Messages API."""

    name = "anthropic"
    path = "/v1/messages"
    folder = "/v1"
    lead = 2

    def __init__(self) -> None:
        self._signatures = Signatures(self.name)

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key", "") or headers.get("Authorization", "")

    def check(self, request: Request, models: Sequence[str]) -> Accepted:
        if "anthropic-version" not in request.headers:
            raise RefusedError("anthropic-version: header is required")
        body = check(request.raw, models, self._signatures)
        if not body.stream:
            raise RefusedError("this server streams only")
        thinking = body.thinking
        is_binding = isinstance(thinking, ThinkingAdaptive) and thinking.block_binding is not None
        if is_binding and BINDING_HEADER not in request.headers.get("anthropic-beta", ""):
            raise RefusedError("thinking.block_binding: a header `anthropic-beta` is required")
        thinks = isinstance(thinking, ThinkingEnabled | ThinkingAdaptive)
        return Accepted(
            body.model, thinks=thinks or bool(BOUND.search(body.model)), prefix=prefix(body)
        )

    def frames(self, reply: Reply, number: int, accepted: Accepted) -> Iterator[bytes]:
        return map(named_frame, self._events(reply, number, accepted))

    def _events(self, reply: Reply, number: int, accepted: Accepted) -> Iterator[dict[str, Any]]:
        message: dict[str, Any] = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": accepted.model,
            "content": [],
            "stop_reason": None,
        }
        counts = {} if reply.fault == "no usage" else {"usage": _usage(reply)}
        yield {"type": "message_start", "message": {**message, **counts}}
        index = 0
        if reply.reasoning and accepted.thinks:
            yield from self._thinking(reply, accepted)
            index = 1
        if reply.text:
            text_block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": text} for text in cut(reply.text, reply.chunk)]
            yield from _block(index, text_block, deltas)
            index += 1
        for at, call in enumerate(reply.calls):
            if reply.reasoning and accepted.thinks:
                self._remember(call.tool, call.text)
            call_id = call.id or f"toolu_{number}_{at}"
            block: dict[str, Any] = {
                "type": "tool_use",
                "id": call_id,
                "name": call.tool,
                "input": {},
            }
            parts = ["", *cut(call.text, reply.chunk)]
            yield from _block(
                index + at,
                block,
                [{"type": "input_json_delta", "partial_json": part} for part in parts],
            )
        yield {"type": "ping"}
        if reply.fault != "no finish_reason":
            usual = "tool_use" if reply.calls else "end_turn"
            delta = {"stop_reason": _STOPS.get(reply.stop, reply.stop) or usual}
            counts = {} if reply.fault == "no usage" else {"usage": _output(reply)}
            yield {"type": "message_delta", "delta": {**delta, "stop_sequence": None}, **counts}
        if reply.fault != "no done":
            yield {"type": "message_stop"}

    def _thinking(self, reply: Reply, accepted: Accepted) -> Iterator[dict[str, Any]]:
        signature = self._signatures.sign(accepted.model, reply.reasoning)
        self._signatures.bind(signature, accepted.prefix)
        thoughts = [
            {"type": "thinking_delta", "thinking": text}
            for text in cut(reply.reasoning, reply.chunk)
        ]
        block = {"type": "thinking", "thinking": "", "signature": ""}
        yield from _block(
            0, block, [*thoughts, {"type": "signature_delta", "signature": signature}]
        )

    def _remember(self, tool: str, arguments: str) -> None:
        # A client cannot send arguments that are no JSON back as they are.
        with contextlib.suppress(msgspec.DecodeError):
            self._signatures.remember((tool, msgspec.json.decode(arguments)))

    def whole(self, reply: Reply, number: int, accepted: Accepted) -> bytes:
        raise NotImplementedError

    def error(self, refused: RefusedError) -> bytes:
        usual = "api_error" if refused.status >= 500 else "invalid_request_error"
        kind = refused.code or _TYPES.get(refused.status, usual)
        error = {"type": str(kind), "message": refused.message}
        return msgspec.json.encode({"type": "error", "error": error, "request_id": "req_1"})

    def error_frame(self, reply: Reply) -> bytes:
        error = {"type": str(reply.code or "scripted"), "message": reply.message}
        return named_frame({"type": "error", "error": error})

    def models(self, names: Sequence[str]) -> Any:
        models = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01"}
            for name in names
        ]
        return {"data": models, "has_more": False, "first_id": None, "last_id": None}


def _block(
    index: int, block: dict[str, Any], deltas: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": block}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _usage(reply: Reply) -> dict[str, Any]:
    counted = reply.usage
    return {
        "input_tokens": counted.input_tokens - counted.cached_tokens,
        "cache_read_input_tokens": counted.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }


def _output(reply: Reply) -> dict[str, Any]:
    return {"output_tokens": reply.usage.output_tokens}
