"""Decodes the stream of the Gemini API and merges it into pieces."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.events import Usage
from keryx.models.gemini.wire import Signed
from keryx.models.wire.encoding import encode
from keryx.models.wire.problems import Problem, problem_of
from keryx.models.wire.replies import Pieces, StreamFailedError
from keryx.ports.model import Piece

_STOP_REASONS: Final = {"STOP": "stop", "MAX_TOKENS": "length"}
"""All other reasons are about the content."""


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


class GeminiReply:
    """One reply while it arrives. The last chunk has the reason of the end, and the counts."""

    def __init__(self, signer: str) -> None:
        self._signer = signer
        self.is_done = False
        self.has_begun = False
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

    def add(self, events: list[bytes]) -> list[Piece]:
        pieces = Pieces()
        for data in events:
            if self.is_done:
                break
            chunk = _decode(data)
            self.has_begun = True
            self._read(chunk, pieces)
        return pieces.finish()

    def _read(self, chunk: _Chunk, pieces: Pieces) -> None:
        if chunk.error is not None:
            raise StreamFailedError(problem_of(chunk.error))
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason:
            message = f"the request was refused for its content ({feedback.block_reason})"
            raise StreamFailedError(Problem(message, status=400))
        if chunk.usage_metadata is not None:
            self.usage = _usage(chunk.usage_metadata)
        for candidate in (chunk.candidates or ())[:1]:
            if candidate.content is not None:
                for part in candidate.content.parts or ():
                    self._add_part(part, pieces)
            if candidate.finish_reason:
                self._finish_reason = candidate.finish_reason
        self.is_done = self.is_complete and chunk.usage_metadata is not None

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


def _usage(usage: _Usage) -> Usage:
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        input_tokens=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        output_tokens=(usage.candidates_token_count or 0) + thoughts,
        cached_tokens=usage.cached_content_token_count or 0,
        reasoning_tokens=thoughts,
    )
