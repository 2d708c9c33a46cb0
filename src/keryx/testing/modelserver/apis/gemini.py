"""The Gemini API: the chunks that an answer becomes, and the errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from keryx.decoding import decode_json
from keryx.testing.modelserver.apis.api import (
    Accepted,
    RefusedError,
    Request,
    Signatures,
    cut,
    data_frame,
)
from keryx.testing.modelserver.apis.gemini_rules import FunctionCall, check, signed_content
from keryx.testing.modelserver.script import Reply

_STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_STOPS: Final = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}


class GeminiApi:
    """The Gemini API."""

    name = "gemini"
    path = "/v1beta/models/{model}:streamGenerateContent"
    folder = "/v1beta"
    lead = 1

    def __init__(self) -> None:
        self._signatures = Signatures(self.name)

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-goog-api-key", "") or headers.get("Authorization", "")

    def check(self, request: Request, models: Sequence[str]) -> Accepted:
        if request.query.get("alt") != "sse":
            raise RefusedError("this server streams events only: alt=sse")
        check(request.raw, request.model, models, self._signatures)
        return Accepted(request.model)

    def frames(self, reply: Reply, number: int, accepted: Accepted) -> Iterator[bytes]:
        # As the real server does, it counts the tokens of the input first.
        yield self._chunk([], reply, number, accepted)
        for text in cut(reply.reasoning, reply.chunk):
            yield self._chunk([{"text": text, "thought": True}], reply, number, accepted)
        for text in cut(reply.text, reply.chunk):
            yield self._chunk([{"text": text}], reply, number, accepted)
        if reply.text and reply.reasoning:
            # In a stream the signature of the text comes in a part of its own.
            signature = self._signatures.sign(accepted.model, "")
            part = {"text": "", "thoughtSignature": signature}
            yield self._chunk([part], reply, number, accepted)
        parts = [self._call(reply, number, at, accepted.model) for at in range(len(reply.calls))]
        if parts:
            yield self._chunk(parts, reply, number, accepted)
        yield self._chunk([], reply, number, accepted, finish=_STOPS.get(reply.stop, "STOP"))

    def _call(self, reply: Reply, number: int, at: int, model: str) -> dict[str, Any]:
        scripted = reply.calls[at]
        arguments = decode_json(scripted.text, dict[str, Any])
        call = FunctionCall(scripted.tool, arguments, scripted.id or f"call_{number}_{at}")
        part: dict[str, Any] = {"functionCall": msgspec.to_builtins(call)}
        if at == 0:  # of calls that are made together only the first is signed
            part["thoughtSignature"] = self._signatures.sign(model, signed_content(None, call))
            self._signatures.remember((call.name, call.args))
        return part

    def _chunk(
        self,
        parts: Sequence[dict[str, Any]],
        reply: Reply,
        number: int,
        accepted: Accepted,
        finish: str | None = None,
    ) -> bytes:
        candidate: dict[str, Any] = {"index": 0}
        if parts:
            candidate["content"] = {"role": "model", "parts": parts}
        if finish is not None and reply.fault != "no finish_reason":
            candidate["finishReason"] = finish
        elif finish is not None:
            candidate["finishReason"] = "STOP"  # the API has no other mark of the end
        chunk: dict[str, Any] = {"candidates": [candidate]}
        if reply.fault != "no usage":
            chunk["usageMetadata"] = _usage(reply, is_last=finish is not None)
        return data_frame({**chunk, "modelVersion": accepted.model, "responseId": f"r{number}"})

    def whole(self, reply: Reply, number: int, accepted: Accepted) -> bytes:
        raise NotImplementedError

    def error(self, refused: RefusedError) -> bytes:
        return msgspec.json.encode(_error(refused.message, refused.status, refused.code))

    def error_frame(self, reply: Reply) -> bytes:
        code = reply.code
        number = int(code) if isinstance(code, int) or (code and code.isdecimal()) else None
        return data_frame(_error(reply.message, number, code))

    def models(self, names: Sequence[str]) -> Any:
        methods = ["generateContent", "countTokens"]
        return {
            "models": [
                {"name": f"models/{name}", "supportedGenerationMethods": methods} for name in names
            ]
        }


def _error(message: str, status: int | None, code: str | int | None) -> dict[str, Any]:
    error: dict[str, Any] = {"message": message}
    if status is not None:
        error |= {"code": status, "status": _STATUSES.get(status, "UNKNOWN")}
    if isinstance(code, str):
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        error["details"] = [{"@type": kind, "reason": code.upper()}]
    return {"error": error}


def _usage(reply: Reply, *, is_last: bool) -> dict[str, Any]:
    counted = reply.usage
    usage = {
        "promptTokenCount": counted.input_tokens,
        "cachedContentTokenCount": counted.cached_tokens,
        "totalTokenCount": counted.input_tokens,
    }
    if is_last:
        usage |= {
            "candidatesTokenCount": counted.output_tokens - counted.reasoning_tokens,
            "thoughtsTokenCount": counted.reasoning_tokens,
        }
    return usage
