"""Decodes the stream of the Messages API and merges it into pieces."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.events import Usage
from keryx.models.anthropic.wire import thinking_block
from keryx.models.wire.encoding import encode
from keryx.models.wire.problems import problem_of
from keryx.models.wire.replies import EventReply, Pieces, StreamFailedError

_STOP_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct, gc=False):
    usage: _Usage | None = None


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    input: dict[str, Any] | None = None


class _Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    partial_json: str = ""
    thinking: str = ""
    signature: str = ""
    stop_reason: str | None = None


class _Event(msgspec.Struct, gc=False):
    """The fields that are used; msgspec skips all others."""

    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _Usage | None = None
    error: dict[str, Any] | None = None


_decode: Final = json_decoder(_Event).decode


class AnthropicReply(EventReply[_Event]):
    """One reply while it arrives."""

    def __init__(self, signer: str) -> None:
        super().__init__(signer, _decode)
        self._stop_reason = ""
        self._counts = _Usage()
        self._has_usage = False
        self._calls: dict[int, int] = {}
        """The index of each call, by the index of its block."""
        self._thinking: dict[int, list[str]] = {}
        self._signatures: dict[int, str] = {}

    @property
    def is_complete(self) -> bool:
        return self.is_done or bool(self._stop_reason)

    @property
    def stop_reason(self) -> str:
        default = "tool_calls" if self._calls else "stop"
        return _STOP_REASONS.get(self._stop_reason, self._stop_reason) or default

    @property
    def usage(self) -> Usage | None:
        if not self._has_usage:
            return None
        counts, cached = self._counts, self._counts.cache_read_input_tokens or 0
        # The API counts what it read from and wrote to its cache apart from the rest of the input.
        return Usage(
            input_tokens=(counts.input_tokens or 0) + cached + self.cache_writes,
            output_tokens=counts.output_tokens or 0,
            cached_tokens=cached,
        )

    def _read(self, event: _Event, pieces: Pieces) -> None:
        match event.type:
            case "content_block_delta" if event.delta is not None:
                self._add_delta(event.index, event.delta, pieces)
            case "content_block_start" if event.content_block is not None:
                self._open_block(event.index, event.content_block, pieces)
            case "content_block_stop":
                self._close_block(event.index, pieces)
            case "message_start" if event.message is not None:
                self._count(event.message.usage)
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._stop_reason = event.delta.stop_reason
            case "message_stop":
                self.is_done = True
            case _ if event.error is not None:
                raise StreamFailedError(problem_of(event.error))
            case _:
                pass

    def _open_block(self, index: int, block: _Block, pieces: Pieces) -> None:
        match block.type:
            case "text":
                pieces.text(block.text)
            case "thinking":
                self._thinking[index] = [block.thinking]
                self._signatures[index] = block.signature
                pieces.reasoning(block.thinking)
            case "redacted_thinking":
                item = {"type": "redacted_thinking", "data": block.data}
                pieces.opaque(self._signer, encode(item))
            case "tool_use":
                call = self._calls.setdefault(index, len(self._calls))
                arguments = encode(block.input).decode() if block.input else ""
                pieces.call(call, call_id=block.id, tool=block.name, arguments=arguments)
            case _:
                pass

    def _add_delta(self, index: int, delta: _Delta, pieces: Pieces) -> None:
        match delta.type:
            case "text_delta":
                pieces.text(delta.text)
            case "input_json_delta":
                if index in self._calls and delta.partial_json:
                    pieces.call(self._calls[index], arguments=delta.partial_json)
            case "thinking_delta":
                self._thinking.setdefault(index, []).append(delta.thinking)
                pieces.reasoning(delta.thinking)
            case "signature_delta":
                self._signatures[index] = self._signatures.get(index, "") + delta.signature
            case _:
                pass

    def _close_block(self, index: int, pieces: Pieces) -> None:
        thinking = self._thinking.pop(index, None)
        if thinking is not None:
            block = thinking_block("".join(thinking), self._signatures.pop(index, ""))
            pieces.opaque(self._signer, encode(block))

    def _count(self, usage: _Usage | None) -> None:
        """Take over the counts that this event has; the later ones are sums."""
        if usage is None:
            return
        self._has_usage = True
        for name in _Usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._counts, name, value)
        self.cache_writes = self._counts.cache_creation_input_tokens or 0
