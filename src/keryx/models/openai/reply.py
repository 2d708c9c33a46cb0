"""Decodes the stream of Chat Completions and merges it into pieces.

It owns the format of the chunks and the deviations of servers. It refuses to know the transport.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.events import Usage
from keryx.models.openai.returned_reasoning import ReturnedReasoning
from keryx.models.wire.problems import Problem, problem_in
from keryx.models.wire.replies import StreamFailedError
from keryx.ports.model import CallPiece, Piece, ReasoningPiece, TextPiece

_DONE: Final = b"[DONE]"


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Chunk(msgspec.Struct, gc=False):
    """The fields that are used; msgspec skips all others."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: dict[str, object] | str | None = None


_decode: Final = json_decoder(_Chunk).decode


class ChatReply:
    """One reply while it arrives."""

    def __init__(self, signer: str = "", returned: str = "") -> None:
        """`returned`: the field of reasoning that the server needs back."""
        self.is_done = False
        """The server sent the end marker."""
        self.has_begun = False
        self.usage: Usage | None = None
        self._finish_reason = ""
        self._calls = _Calls()
        self._signer = signer
        self._returned = ReturnedReasoning(returned)

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
            if content := delta.content or delta.refusal:
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
        pieces += self._returned.pieces(self._signer) if self.is_complete else ()
        return pieces

    def _delta(self, chunk: _Chunk, event: bytes) -> _Delta | None:
        if chunk.error:
            raise StreamFailedError(problem_in(event) or Problem())
        if chunk.usage is not None:
            self.usage = _usage(chunk.usage)
        if not chunk.choices:
            return None
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        delta = choice.delta
        if delta is not None:
            self._returned.add(delta.reasoning_content, delta.reasoning_details)
        return delta


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


def _usage(usage: _Usage) -> Usage:
    input_details, output_details = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=(input_details.cached_tokens if input_details else None) or 0,
        reasoning_tokens=(output_details.reasoning_tokens if output_details else None) or 0,
    )
