"""Encodes requests to the Responses API: items, tools and options, as JSON bytes.

A message becomes one or more items, with commas between. Reasoning items are sent back as they
came, and so are the ids of the items that came with them; what another provider made has no ids.
Only fields of the API are written.
"""

from __future__ import annotations

import fnmatch
from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.messages import AssistantMessage, Message, Opaque, ToolCall, ToolMessage, UserMessage
from keryx.models.wire.encoding import (
    EncodedTools,
    Media,
    MediaLoader,
    blocks,
    encode,
    join_body,
    tool_name,
)
from keryx.models.wire.schemas import is_strict
from keryx.ports.model import ModelRequest, ToolSpec

LEAST_TOKENS: Final = 16
"""The least limit of a reply that the API takes."""
_RESERVED_OPTIONS: Final = frozenset({"model", "input", "instructions", "stream", "store", "tools"})
_WITHOUT_REASONING: Final = ("gpt-3.5*", "gpt-4*", "chatgpt-*")
"""Models that refuse to be asked for encrypted reasoning."""


class _Signed(msgspec.Struct):
    """The fields of a signed item that are read here."""

    type: str
    id: str = ""
    phase: str | None = None


_decode_signed: Final = json_decoder(_Signed).decode


def encode_message(message: Message, media: MediaLoader, signer: str) -> bytes:
    """Encode one message for the API: its items, with commas between."""
    match message:
        case UserMessage():
            spans = list(media.spans(message.content))
            items = [{"role": "user", "content": _content(spans)}] if spans else []
            return encode(items)[1:-1]
        case AssistantMessage():
            return encode(_reply_items(message, signer))[1:-1]
        case ToolMessage():
            output = _content(list(media.spans(message.content)))
            item = {
                "type": "function_call_output",
                "call_id": message.call_id,
                "output": output or "",
            }
            return encode(item)


def _content(spans: list[str | Media]) -> str | list[dict[str, Any]]:
    if len(spans) == 1 and isinstance(spans[0], str):
        return spans[0]
    return [_part(span) for span in spans]


def _part(span: str | Media) -> dict[str, Any]:
    if isinstance(span, str):
        return {"type": "input_text", "text": span}
    if span.media_type.startswith("image/"):
        return {"type": "input_image", "image_url": span.url}
    return {"type": "input_file", "filename": span.name or "file", "file_data": span.url}


def _reply_items(message: AssistantMessage, signer: str) -> list[object]:
    """Return the items of a reply. A signed item names the text before it, or the call after."""
    items: list[object] = []
    text, call_id = "", ""
    for block in blocks(message, signer):
        match block:
            case str():
                items.append(_message(block))
            case ToolCall():
                items.append(_call(block, call_id))
                call_id = ""
            case Opaque():
                signed = _decode_signed(block.item)
                if signed.type == "function_call":
                    call_id = signed.id
                elif signed.type != "message":
                    items.append(block.item)
                elif text:
                    items[-1] = _message(text, signed)
        text = block if isinstance(block, str) else ""
    while items and isinstance(items[-1], msgspec.Raw):
        items.pop()  # the API refuses reasoning that nothing follows
    return items


def _message(text: str, signed: _Signed | None = None) -> dict[str, Any]:
    if signed is None:
        return {"role": "assistant", "content": text}
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    phase = {} if signed.phase is None else {"phase": signed.phase}
    return {
        "type": "message",
        "id": signed.id,
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **phase,
    }


def _call(call: ToolCall, item_id: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        **({"id": item_id} if item_id else {}),
        "call_id": call.call_id,
        "name": tool_name(call.tool),
        "arguments": call.arguments or "{}",
    }


def describe_tool(spec: ToolSpec) -> dict[str, Any]:
    # Without `strict` this API would demand closed schemas.
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "strict": False,
    }


def encode_body(model: str, request: ModelRequest, tools: EncodedTools) -> bytes:
    """Return the whole body."""
    encoded_tools = tools.encode(request.tools) if request.tools else None
    items = b",".join(filter(None, request.history))
    return join_body(_options(model, request), encoded_tools, "input", items)


def _options(model: str, request: ModelRequest) -> dict[str, Any]:
    options: dict[str, Any] = {"model": model, "stream": True, "store": False}
    if not any(fnmatch.fnmatchcase(model, pattern) for pattern in _WITHOUT_REASONING):
        options["include"] = ["reasoning.encrypted_content"]
    options |= {
        name: value for name, value in request.extra.items() if name not in _RESERVED_OPTIONS
    }
    if request.system:
        options["instructions"] = request.system
    if (choice := request.tool_choice) is not None:
        function = {"type": "function", "name": choice.name}
        options["tool_choice"] = function if choice.name else "required"
    if request.effort is not None:
        options["reasoning"] = {**options.get("reasoning", {}), "effort": request.effort}
    if request.max_tokens is not None:
        options["max_output_tokens"] = max(LEAST_TOKENS, request.max_tokens)
    if request.schema is not None:
        answer = {
            "type": "json_schema",
            "name": "answer",
            "schema": request.schema,
            "strict": is_strict(request.schema),
        }
        options["text"] = {**options.get("text", {}), "format": answer}
    return options
