"""What Chat Completions streams back, decoded and merged into pieces.

It owns the shape of the chunks and the habits of servers that differ from the API. It refuses to
know how the bytes came.
"""

from __future__ import annotations

from typing import Final

import msgspec

from keryx.events import Usage
from keryx.models.failures import Problem, problem_in
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
    """Only what is used; msgspec skips the rest without building it."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: dict[str, object] | str | None = None


_decode: Final = msgspec.json.Decoder(_Chunk).decode


class BrokenOffError(Exception):
    """The server put an error object into the stream."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Reply:
    """One reply as it grows."""

    def __init__(self) -> None:
        self.is_done = False
        """The server has said that nothing follows."""
        self.has_begun = False
        self.usage: Usage | None = None
        self._finish_reason = ""
        self._calls = _Calls()

    @property
    def is_whole(self) -> bool:
        return self.is_done or bool(self._finish_reason)

    @property
    def stop_reason(self) -> str:
        return self._finish_reason or ("tool_calls" if self._calls.count else "stop")

    def take(self, events: list[bytes]) -> list[Piece]:
        """All that these events say: at most one piece of text, of reasoning and of each call.

        Raises `msgspec.DecodeError` for what is not a chunk, and `BrokenOffError`.
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
            if said := delta.content or delta.refusal:
                text += said
            if thought := delta.reasoning_content or delta.reasoning:
                reasoning += thought
            if delta.tool_calls:
                calls = calls or {}
                self._calls.take(delta.tool_calls, calls)
        # In the order in which models think, speak and call.
        pieces: list[Piece] = []
        if reasoning:
            pieces.append(ReasoningPiece(reasoning))
        if text:
            pieces.append(TextPiece(text))
        if calls:
            pieces += calls.values()
        return pieces

    def _delta(self, chunk: _Chunk, event: bytes) -> _Delta | None:
        if chunk.error:
            raise BrokenOffError(problem_in(event) or Problem())
        if chunk.usage is not None:
            self.usage = _usage(chunk.usage)
        if not chunk.choices:
            return None
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        return choice.delta


class _Calls:
    """Which call a piece belongs to, also where a server leaves out or repeats the index."""

    def __init__(self) -> None:
        self.count = 0
        self._ids: dict[int, str] = {}
        """By our index."""
        self._named: set[int] = set()
        self._ours: dict[int, int] = {}
        """Our index by the server's."""

    def take(self, deltas: list[_CallDelta], into: dict[int, CallPiece]) -> None:
        for delta in deltas:
            function = delta.function or _Function()
            index = self._index(delta, function.name or "")
            call_id, tool = "", ""
            if delta.id and index not in self._ids:
                call_id = self._ids[index] = delta.id
            if function.name and index not in self._named:
                self._named.add(index)
                tool = function.name
            arguments = function.arguments or ""
            if not (call_id or tool or arguments):
                continue
            before = into.get(index)
            if before is not None:
                call_id, tool = before.call_id or call_id, before.tool or tool
                arguments = before.arguments + arguments
            into[index] = CallPiece(index, call_id, tool, arguments)

    def _index(self, delta: _CallDelta, name: str) -> int:
        if delta.index is None:
            last = self.count - 1
            return self._new() if last < 0 or self._is_other(last, delta.id, name) else last
        ours = self._ours.get(delta.index)
        if ours is None or (delta.id and self._ids.get(ours, delta.id) != delta.id):
            # Some servers number every call 0; a new id tells that it is another one.
            ours = self._ours[delta.index] = self._new()
        return ours

    def _is_other(self, last: int, call_id: str | None, name: str) -> bool:
        if call_id:
            return self._ids.get(last, call_id) != call_id
        return bool(name) and last in self._named

    def _new(self) -> int:
        self.count += 1
        return self.count - 1


def _usage(usage: _Usage) -> Usage:
    cached, thought = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=(cached.cached_tokens if cached else None) or 0,
        reasoning_tokens=(thought.reasoning_tokens if thought else None) or 0,
    )
