"""Decodes the stream of the Responses API and merges it into pieces."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.events import Usage
from keryx.models.wire.encoding import encode
from keryx.models.wire.problems import problem_of
from keryx.models.wire.replies import (
    CachedTokens,
    EventReply,
    Pieces,
    ReasoningTokens,
    StreamFailedError,
    usage_of,
)


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: CachedTokens | None = None
    output_tokens_details: ReasoningTokens | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    usage: _Usage | None = None
    incomplete_details: _Incomplete | None = None
    error: dict[str, Any] | None = None


class _Event(msgspec.Struct, gc=False):
    """The fields that are used; msgspec skips all others."""

    type: str = ""
    delta: str | None = None
    output_index: int = 0
    summary_index: int = 0
    arguments: str | None = None
    item: msgspec.Raw = msgspec.Raw(b"{}")
    response: _Response | None = None
    error: dict[str, Any] | None = None
    code: str | None = None
    message: str | None = None


class _Item(msgspec.Struct, gc=False):
    type: str = ""
    id: str = ""
    call_id: str = ""
    name: str = ""
    phase: str | None = None
    encrypted_content: str | None = None
    arguments: str | None = None


_decode: Final = json_decoder(_Event).decode
_decode_item: Final = json_decoder(_Item).decode


class ResponsesReply(EventReply[_Event]):
    """One reply while it arrives."""

    def __init__(self, signer: str) -> None:
        super().__init__(signer, _decode)
        self.usage: Usage | None = None
        self._stop_reason = ""
        self._calls: dict[int, int] = {}
        """The index of each call, by the index of its item."""
        self._with_arguments: set[int] = set()
        """The calls whose arguments have begun to arrive."""

    @property
    def is_complete(self) -> bool:
        return self.is_done

    @property
    def stop_reason(self) -> str:
        return self._stop_reason or ("tool_calls" if self._calls else "stop")

    def _read(self, event: _Event, pieces: Pieces) -> None:
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                pieces.text(event.delta or "")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                pieces.reasoning(event.delta or "")
            case "response.reasoning_summary_part.added":
                pieces.reasoning("\n\n" if event.summary_index else "")
            case "response.function_call_arguments.delta":
                self._add_arguments(event.output_index, event.delta or "", pieces)
            case "response.output_item.added":
                self._open_item(event, pieces)
            case "response.output_item.done":
                self._close_item(event, pieces)
            case "response.completed" | "response.incomplete":
                self._end(event.response or _Response())
            case "response.failed" | "error":
                raise _failure(event)
            case _:
                pass

    def _open_item(self, event: _Event, pieces: Pieces) -> None:
        item = _decode_item(event.item)
        if item.type != "function_call":
            return
        index = self._calls.setdefault(event.output_index, len(self._calls))
        if item.id:
            pieces.opaque(self._signer, encode({"type": "function_call", "id": item.id}))
        pieces.call(index, call_id=item.call_id, tool=item.name)

    def _add_arguments(self, output_index: int, arguments: str, pieces: Pieces) -> None:
        index = self._calls.get(output_index)
        if index is not None and arguments:
            self._with_arguments.add(index)
            pieces.call(index, arguments=arguments)

    def _close_item(self, event: _Event, pieces: Pieces) -> None:
        item = _decode_item(event.item)
        match item.type:
            case "function_call":
                if event.output_index not in self._calls:
                    self._open_item(event, pieces)
                if self._calls[event.output_index] not in self._with_arguments:
                    self._add_arguments(event.output_index, item.arguments or "", pieces)
            case "reasoning" if item.encrypted_content:
                # Without the content the server could not read its own item again.
                pieces.opaque(self._signer, bytes(event.item))
            case "message" if item.id:
                phase = {} if item.phase is None else {"phase": item.phase}
                pieces.opaque(self._signer, encode({"type": "message", "id": item.id, **phase}))
            case _:
                pass

    def _end(self, response: _Response) -> None:
        self.is_done = True
        if response.usage is not None:
            counts = response.usage
            self.usage = usage_of(
                counts.input_tokens,
                counts.output_tokens,
                counts.input_tokens_details,
                counts.output_tokens_details,
            )
            self.cache_writes = CachedTokens.writes(counts.input_tokens_details)
        if response.incomplete_details is not None:
            reason = response.incomplete_details.reason or "incomplete"
            self._stop_reason = "length" if reason == "max_output_tokens" else reason


def _failure(event: _Event) -> StreamFailedError:
    response = event.response
    if response is not None and response.error is not None:
        return StreamFailedError(problem_of(response.error))
    fields = event.error or {"code": event.code, "message": event.message}
    return StreamFailedError(problem_of(fields))
