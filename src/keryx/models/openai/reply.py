"""Decodes the stream of Chat Completions and merges it into pieces.

It owns the format of the chunks and the deviations of servers. It refuses to know the transport.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.events import Usage
from keryx.models.openai.returned_reasoning import ReturnedReasoning
from keryx.models.wire.problems import SERVER_FAULT, Problem, problem_in
from keryx.models.wire.quirks import NO_QUIRKS, Quirks
from keryx.models.wire.replies import (
    CachedTokens,
    ReasoningTokens,
    StreamFailedError,
    usage_of,
)
from keryx.ports.model import CallPiece, OpaquePiece, Piece, ReasoningPiece, TextPiece

_DONE: Final = b"[DONE]"
_FAILED: Final = frozenset({"error", "insufficient_system_resource", "network_error"})
"""The reasons with which servers end a reply that they could not finish."""


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(msgspec.Struct, gc=False):
    """A part of the content, as Mistral's models that reason send it."""

    text: str | None = None
    thinking: list[_Part] | str | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | list[_Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: CachedTokens | None = None
    completion_tokens_details: ReasoningTokens | None = None
    cost: Any = None
    cost_details: Any = None
    is_byok: bool | None = None


class _Chunk(msgspec.Struct, gc=False):
    """The fields that are used; msgspec skips all others."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: dict[str, object] | str | None = None


_decode: Final = json_decoder(_Chunk).decode


class ChatReply:
    """One reply while it arrives."""

    def __init__(self, signer: str = "", quirks: Quirks = NO_QUIRKS) -> None:
        self.is_done = False
        """The server sent the end marker."""
        self.has_begun = False
        self.usage: Usage | None = None
        self.cost: float | None = None
        self.cache_writes = 0
        self._finish_reason = ""
        self._calls = _Calls()
        self._signer = signer
        self._reports_cost = quirks.reports_cost
        self._returned = ReturnedReasoning(quirks.returned) if quirks.returned else None

    @property
    def is_complete(self) -> bool:
        return self.is_done or bool(self._finish_reason)

    @property
    def stop_reason(self) -> str:
        return self._finish_reason or ("tool_calls" if self._calls.count else "stop")

    def add(self, events: list[bytes]) -> list[Piece]:
        """Return the pieces of these events: at most one of text, of reasoning and of each call.

        Raise `msgspec.DecodeError` for an invalid chunk, and `StreamFailedError`.
        """
        text = reasoning = ""
        calls: dict[int, CallPiece] | None = None
        for event in events:
            if event == _DONE:
                self.is_done = True
                break
            delta = self._delta(_decode(event), event)
            self.has_begun = True
            if delta is None:
                continue
            if isinstance(content := delta.content or delta.refusal, str):
                text += content
            if reasoning_text := delta.reasoning_content or delta.reasoning:
                reasoning += reasoning_text
            if delta.tool_calls:
                calls = calls or {}
                self._calls.add(delta.tool_calls, calls)
        # In the order of models: reasoning, text, calls, and what is sent back.
        pieces: list[Piece] = []
        if reasoning:
            pieces.append(ReasoningPiece(reasoning))
        if text:
            pieces.append(TextPiece(text))
        if calls:
            pieces += calls.values()
        pieces += self._returned_pieces()
        return pieces

    def _returned_pieces(self) -> list[OpaquePiece]:
        if self._returned is None or not self.is_complete:
            return []
        return self._returned.pieces(self._signer)

    def _delta(self, chunk: _Chunk, event: bytes) -> _Delta | None:
        if chunk.error:
            raise StreamFailedError(problem_in(event) or Problem())
        if chunk.usage is not None:
            counts = chunk.usage
            self.usage = usage_of(
                counts.prompt_tokens,
                counts.completion_tokens,
                counts.prompt_tokens_details,
                counts.completion_tokens_details,
                counts.total_tokens,
            )
            self.cache_writes = CachedTokens.writes(counts.prompt_tokens_details)
            if self._reports_cost:
                self.cost = _cost(counts)
        if not chunk.choices:
            return None
        choice = chunk.choices[0]
        if choice.finish_reason:
            if choice.finish_reason in _FAILED:
                raise StreamFailedError(_unfinished(choice.finish_reason))
            self._finish_reason = choice.finish_reason
        delta = choice.delta
        if delta is not None and isinstance(delta.content, list):
            delta.reasoning_content, delta.content = _texts(delta.content)
        if delta is not None and self._returned is not None:
            self._returned.add(delta.reasoning_content, delta.reasoning_details)
        return delta


def _texts(parts: list[_Part]) -> tuple[str, str]:
    """Return the reasoning and the text of these parts."""
    thoughts = text = ""
    for part in parts:
        if isinstance(part.thinking, list):
            thoughts += "".join(thought.text or "" for thought in part.thinking)
        else:
            thoughts += part.thinking or ""
        text += part.text or ""
    return thoughts, text


def _cost(counts: _Usage) -> float | None:
    """Return what the server says that the reply cost; None if it does not say."""
    cost = counts.cost
    if not isinstance(cost, int | float):
        return None
    match counts.cost_details:
        case {"upstream_inference_cost": int() | float() as upstream} if counts.is_byok:
            # With a key of the user's own this is paid to the provider, beside the server's share.
            return float(cost + upstream)
        case _:
            return float(cost)


def _unfinished(reason: str) -> Problem:
    return Problem(f"it could not finish its reply ({reason})", status=SERVER_FAULT)


class _Calls:
    """Assigns pieces to calls, even if a server leaves out or repeats the index."""

    def __init__(self) -> None:
        self.count = 0
        self._ids: dict[int, str] = {}
        """By our index."""
        self._with_name: set[int] = set()
        self._index_of: dict[int, int] = {}
        """Our index for each index of the server."""

    def add(self, deltas: list[_CallDelta], into: dict[int, CallPiece]) -> None:
        for delta in deltas:
            function = delta.function or _Function()
            index = self._index(delta, function.name or "")
            call_id, tool = "", ""
            if delta.id and index not in self._ids:
                call_id = self._ids[index] = delta.id
            if function.name and index not in self._with_name:
                self._with_name.add(index)
                tool = function.name
            arguments = function.arguments or ""
            if not (call_id or tool or arguments):
                continue
            earlier = into.get(index)
            if earlier is not None:
                call_id, tool = earlier.call_id or call_id, earlier.tool or tool
                arguments = earlier.arguments + arguments
            into[index] = CallPiece(index, call_id, tool, arguments)

    def _index(self, delta: _CallDelta, name: str) -> int:
        if delta.index is None:
            last = self.count - 1
            return self._new() if last < 0 or self._is_new_call(last, delta.id, name) else last
        index = self._index_of.get(delta.index)
        if index is None or (delta.id and self._ids.get(index, delta.id) != delta.id):
            # Some servers give every call the index 0; a new id means a new call.
            index = self._index_of[delta.index] = self._new()
        return index

    def _is_new_call(self, last: int, call_id: str | None, name: str) -> bool:
        if call_id:
            return self._ids.get(last, call_id) != call_id
        return bool(name) and last in self._with_name

    def _new(self) -> int:
        self.count += 1
        return self.count - 1
