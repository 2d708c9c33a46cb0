"""Encodes requests to Chat Completions: messages, tools and options, as JSON bytes.

Only fields of the API are written.
"""

from __future__ import annotations

import hashlib
import re
import string
from typing import Any, Final

import msgspec

from keryx.decoding import decode_json
from keryx.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
    text_of,
)
from keryx.models.wire.encoding import EncodedTools, MediaLoader, encode, join_body, tool_name
from keryx.models.wire.quirks import Quirks
from keryx.models.wire.schemas import instruction, is_strict
from keryx.ports.model import ModelRequest, ToolSpec

# `extra` cannot replace these fields of the body.
_RESERVED_OPTIONS: Final = frozenset({"model", "messages", "stream", "stream_options", "tools"})
# Mistral, and the templates of its models on any server, take only ids of this form; all others do.
_ID_LENGTH: Final = 9
_ID: Final = re.compile(r"[a-zA-Z0-9]{9}")
_ID_CHARACTERS: Final = string.digits + string.ascii_letters


def encode_message(message: Message, media: MediaLoader, signer: str, quirks: Quirks) -> bytes:
    """Encode one message for the API."""
    match message:
        case UserMessage():
            return encode({"role": "user", "content": _user_content(message, media)})
        case AssistantMessage():
            return encode(_assistant(message, signer, quirks))
        case ToolMessage():
            content = text_of(message.content)
            call_id = _id(message.call_id)
            return encode({"role": "tool", "tool_call_id": call_id, "content": content})


def _assistant(message: AssistantMessage, signer: str, quirks: Quirks) -> dict[str, Any]:
    text = text_of(message.content)
    fields: dict[str, Any] = {"role": "assistant", "content": text}
    if message.calls:
        fields["content"] = text or None
        fields["tool_calls"] = [_call(call) for call in message.calls]
    for item in message.opaque:
        if item.provider == signer:
            fields |= decode_json(item.item, dict[str, msgspec.Raw])
    if quirks.needs_reasoning:
        fields.setdefault(quirks.returned, "")
    return fields


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": tool_name(call.tool), "arguments": call.arguments or "{}"}
    return {"id": _id(call.call_id), "type": "function", "function": function}


def _id(call_id: str) -> str:
    """Return an id that every server takes; the same for the same call."""
    if _ID.fullmatch(call_id):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode()).digest())
    characters: list[str] = []
    for _ in range(_ID_LENGTH):
        number, index = divmod(number, len(_ID_CHARACTERS))
        characters.append(_ID_CHARACTERS[index])
    return "".join(characters)


def _user_content(message: UserMessage, media: MediaLoader) -> str | list[dict[str, Any]]:
    spans = list(media.spans(message.content))
    if all(isinstance(span, str) for span in spans):
        return "".join(span for span in spans if isinstance(span, str))
    return [
        {"type": "text", "text": span}
        if isinstance(span, str)
        else {"type": "image_url", "image_url": {"url": span.url}}
        for span in spans
    ]


def describe_tool(spec: ToolSpec) -> dict[str, Any]:
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    return {"type": "function", "function": function}


def encode_body(model: str, quirks: Quirks, request: ModelRequest, tools: EncodedTools) -> bytes:
    """Return the whole body."""
    messages = b",".join(request.history)
    system = request.system
    if request.schema is not None and not quirks.takes_schemas:
        system = "\n\n".join(filter(None, [system, instruction(request.schema)]))
    if system:
        first = encode({"role": "system", "content": system})
        messages = b"%b,%b" % (first, messages) if messages else first
    encoded_tools = tools.encode(request.tools) if request.tools else None
    return join_body(_options(model, quirks, request), encoded_tools, "messages", messages)


def _options(model: str, quirks: Quirks, request: ModelRequest) -> dict[str, Any]:
    options: dict[str, Any] = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    options |= {
        name: value for name, value in request.extra.items() if name not in _RESERVED_OPTIONS
    }
    if request.tools and quirks.names_parallel_calls:
        # Elsewhere this is the default, and some models refuse the field.
        options.setdefault("parallel_tool_calls", True)
    if (choice := request.tool_choice) is not None:
        function = {"type": "function", "function": {"name": choice.name}}
        options["tool_choice"] = function if choice.name else "required"
    if request.effort is not None:
        options["reasoning_effort"] = request.effort
    if request.max_tokens is not None:
        options[quirks.token_limit] = request.max_tokens
    if request.schema is not None and quirks.takes_schemas:
        answer = {
            "name": "answer",
            "schema": request.schema,
            "strict": is_strict(request.schema),
        }
        options["response_format"] = {"type": "json_schema", "json_schema": answer}
    return {name: value for name, value in options.items() if name not in quirks.without}
