"""Decodes the stream of the Gemini API and merges it into pieces."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.events import Usage
from keryx.models.gemini.wire import Signed
from keryx.models.wire.encoding import encode
from keryx.models.wire.problems import SERVER_FAULT, Problem, problem_of
from keryx.models.wire.replies import EventReply, Pieces, StreamFailedError

_STOP_REASONS: Final = {"STOP": "stop", "MAX_TOKENS": "length"}
"""All other reasons are about the content, but for those of a failure."""
_FAILED: Final = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "OTHER",
    }
)
"""The model wrote what the server could not read, so the reply is not whole. Another one may be."""


class _Call(msgspec.Struct, gc=False):
    id: str | None = None
    name: str = ""
    args: dict[str, Any] | None = None


class _Part(msgspec.Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str | None = None
    function_call: _Call | None = None


class _Content(msgspec.Struct, gc=False):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, gc=False, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Feedback(msgspec.Struct, gc=False, rename="camel"):
    block_reason: str | None = None


class _Usage(msgspec.Struct, gc=False, rename="camel"):
    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class _Chunk(msgspec.Struct, gc=False, rename="camel"):
    """The fields that are used; msgspec skips all others."""

    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    error: dict[str, Any] | None = None


_decode: Final = json_decoder(_Chunk).decode


class GeminiReply(EventReply[_Chunk]):
    """One reply while it arrives. The last chunk has the reason of the end, and the counts."""

    def __init__(self, signer: str) -> None:
        super().__init__(signer, _decode)
        self.usage: Usage | None = None
        self._finish_reason = ""
        self._calls = 0

    @property
    def is_complete(self) -> bool:
        return bool(self._finish_reason)

    @property
    def stop_reason(self) -> str:
        if self._finish_reason == "STOP" and self._calls:
            return "tool_calls"
        return _STOP_REASONS.get(self._finish_reason, "content_filter")

    def _read(self, event: _Chunk, pieces: Pieces) -> None:
        if event.error is not None:
            raise StreamFailedError(problem_of(event.error))
        feedback = event.prompt_feedback
        if feedback is not None and feedback.block_reason:
            message = f"the request was refused for its content ({feedback.block_reason})"
            raise StreamFailedError(Problem(message, status=400))
        if event.usage_metadata is not None:
            self.usage = _usage(event.usage_metadata)
        for candidate in (event.candidates or ())[:1]:
            if candidate.content is not None:
                for part in candidate.content.parts or ():
                    self._add_part(part, pieces)
            if candidate.finish_reason:
                if candidate.finish_reason in _FAILED:
                    raise StreamFailedError(_unfinished(candidate))
                self._finish_reason = candidate.finish_reason
        self.is_done = self.is_complete and event.usage_metadata is not None

    def _add_part(self, part: _Part, pieces: Pieces) -> None:
        call, signature = part.function_call, part.thought_signature
        if call is not None:
            if signature:
                pieces.opaque(self._signer, encode(Signed(signature)))
            pieces.call(
                self._calls,
                call_id=call.id or "",
                tool=call.name,
                arguments=encode(call.args or {}).decode(),
            )
            self._calls += 1
        elif part.thought:
            pieces.reasoning(part.text or "")
        else:
            text = part.text or ""
            pieces.text(text)
            if signature:
                pieces.opaque(self._signer, encode(Signed(signature, len(text))))


def _unfinished(candidate: _Candidate) -> Problem:
    cause = f": {candidate.finish_message}" if candidate.finish_message else ""
    message = f"it could not finish its reply ({candidate.finish_reason}){cause}"
    return Problem(message, status=SERVER_FAULT)


def _usage(usage: _Usage) -> Usage:
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        input_tokens=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        output_tokens=(usage.candidates_token_count or 0) + thoughts,
        cached_tokens=usage.cached_content_token_count or 0,
        reasoning_tokens=thoughts,
    )
