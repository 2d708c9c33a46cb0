"""Encodes requests to Chat Completions: messages, tools and options, as JSON bytes.

Each message is encoded once and separately; a body is joined from these bytes. Only fields of the
API are written.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from keryx.messages import (
    AssistantMessage,
    File,
    Image,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    text_of,
)
from keryx.ports.model import ModelRequest, ToolSpec

LoadBlob = Callable[[str], bytes]
"""Returns a blob by its hash."""

# The size of the cache of encoded tool lists. Each session has one that seldom changes.
MAX_TOOL_LISTS: Final = 64

_encode: Final = msgspec.json.Encoder().encode
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME: Final = 64
# `extra` cannot replace these fields of the body.
_RESERVED_OPTIONS: Final = frozenset({"model", "messages", "stream", "stream_options", "tools"})


def encode_message(message: Message, blobs: LoadBlob | None) -> bytes:
    """Encode one message for the API. `blobs` is None for a model that sees no images."""
    match message:
        case UserMessage():
            return _encode({"role": "user", "content": _user_content(message.content, blobs)})
        case AssistantMessage():
            text = text_of(message.content)
            if not message.calls:
                return _encode({"role": "assistant", "content": text})
            calls = [_call(call) for call in message.calls]
            return _encode({"role": "assistant", "content": text or None, "tool_calls": calls})
        case ToolMessage():
            content = text_of(message.content)
            return _encode({"role": "tool", "tool_call_id": message.call_id, "content": content})


def _call(call: ToolCall) -> dict[str, Any]:
    # A model may invent a name that the API would refuse in every later request.
    name = _NOT_IN_NAMES.sub("_", call.tool)[:_MAX_NAME] or "unknown"
    function = {"name": name, "arguments": call.arguments or "{}"}
    return {"id": call.call_id, "type": "function", "function": function}


def _user_content(content: tuple[Part, ...], blobs: LoadBlob | None) -> str | list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    lines: list[str] = []
    has_image = False
    for part in content:
        match part:
            case Image():
                url = _data_url(part, blobs)
                if url is None:
                    lines.append(_image_note(part, sees_images=blobs is not None))
                else:
                    has_image = True
                    _flush(lines, parts)
                    parts.append({"type": "image_url", "image_url": {"url": url}})
            case Text() | Json() | File():
                lines.append(text_of((part,)))
    if not has_image:
        return "\n".join(lines)
    _flush(lines, parts)
    return parts


def _flush(lines: list[str], parts: list[dict[str, Any]]) -> None:
    text = "\n".join(lines)
    lines.clear()
    if text:
        parts.append({"type": "text", "text": text})


def _data_url(image: Image, blobs: LoadBlob | None) -> str | None:
    if blobs is None:
        return None
    try:
        data = blobs(image.blob)
    except LookupError:
        return None
    return f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"


def _image_note(image: Image, *, sees_images: bool) -> str:
    name = f"{image.media_type} {image.name or image.blob}"
    if sees_images:
        return f"[{name}: the image does not exist any more]"
    return f"[{name}: use vision_analyze to see it]"


def encode_system(text: str) -> bytes:
    return _encode({"role": "system", "content": text})


class EncodedTools:
    """A cache of encoded tool lists."""

    def __init__(self) -> None:
        # Keyed by object ids: the cache holds the objects, so no id is reused.
        self._cache: dict[tuple[int, ...], tuple[Sequence[ToolSpec], bytes]] = {}

    def encode(self, tools: Sequence[ToolSpec]) -> bytes:
        key = tuple(map(id, tools))
        entry = self._cache.get(key)
        if entry is None:
            if len(self._cache) >= MAX_TOOL_LISTS:
                del self._cache[next(iter(self._cache))]
            entry = self._cache[key] = (tuple(tools), _encode([_tool(spec) for spec in tools]))
        return entry[1]


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    return {"type": "function", "function": function}


def encode_body(model: bytes, request: ModelRequest, tools: EncodedTools) -> bytes:
    """Return the whole body. `model` is the name as JSON."""
    messages = b",".join(request.history)
    if request.system:
        system = encode_system(request.system)
        messages = b"%b,%b" % (system, messages) if messages else system
    options = _options(request)
    parts = [
        b'{"model":%b,"stream":true,"stream_options":{"include_usage":true}' % model,
        b',"messages":[%b]' % messages,
        b',"tools":%b' % tools.encode(request.tools) if request.tools else b"",
        # The options as one object, without its opening brace.
        b"," + _encode(options)[1:] if options else b"}",
    ]
    return b"".join(parts)


def _options(request: ModelRequest) -> dict[str, Any]:
    options = {
        name: value for name, value in request.extra.items() if name not in _RESERVED_OPTIONS
    }
    if request.tools:
        options.setdefault("parallel_tool_calls", True)
    if request.effort is not None:
        options["reasoning_effort"] = request.effort
    if request.max_tokens is not None:
        options["max_completion_tokens"] = request.max_tokens
    if request.schema is not None:
        answer = {
            "name": "answer",
            "schema": request.schema,
            "strict": _is_strict(request.schema),
        }
        options["response_format"] = {"type": "json_schema", "json_schema": answer}
    return options


def _is_strict(schema: object) -> bool:
    """Return whether the schema is strict for the API: objects closed, all fields required."""
    if isinstance(schema, list):
        return all(_is_strict(part) for part in cast("list[object]", schema))
    if not isinstance(schema, Mapping):
        return True
    fields = cast("Mapping[str, object]", schema)
    if fields.get("type") == "object" or "properties" in fields:
        properties = fields.get("properties")
        names = set(cast("Mapping[str, object]", properties)) if properties else set[str]()
        required = fields.get("required")
        required_names = set(cast("Sequence[str]", required)) if required else set[str]()
        if fields.get("additionalProperties") is not False or names != required_names:
            return False
    return all(_is_strict(part) for part in fields.values())
