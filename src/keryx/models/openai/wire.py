"""What Chat Completions is sent: messages, tools and options, as JSON bytes.

Each message is encoded by itself and once; a body is joined from such bytes, never decoded and
encoded again. Only fields that the API takes are written.
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
"""Gives a blob by its hash."""

# How many different tool lists are kept encoded. Each session has one that seldom changes.
TOOL_LISTS: Final = 64

_encode: Final = msgspec.json.Encoder().encode
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 64
# The body is ours in these; `extra` adds others.
_OURS: Final = frozenset({"model", "messages", "stream", "stream_options", "tools"})


def encode_message(message: Message, blobs: LoadBlob | None) -> bytes:
    """One message as the API takes it. `blobs` is None for a model that sees no images."""
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
    # A model may make up a name that the API would refuse to hear again, for ever.
    name = _NOT_IN_NAMES.sub("_", call.tool)[:_LONGEST_NAME] or "unknown"
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
                    lines.append(_named(part, sees=blobs is not None))
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


def _named(image: Image, *, sees: bool) -> str:
    name = f"{image.media_type} {image.name or image.blob}"
    if sees:
        return f"[{name}: the image is not there any more]"
    return f"[{name}: use vision_analyze to see it]"


def encode_system(text: str) -> bytes:
    return _encode({"role": "system", "content": text})


class EncodedTools:
    """Tool lists as bytes, each encoded once for as long as the same tools are given."""

    def __init__(self) -> None:
        # Keyed by the objects themselves: what is kept here cannot be collected, so no id recurs.
        self._kept: dict[tuple[int, ...], tuple[Sequence[ToolSpec], bytes]] = {}

    def encode(self, tools: Sequence[ToolSpec]) -> bytes:
        key = tuple(map(id, tools))
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= TOOL_LISTS:
                del self._kept[next(iter(self._kept))]
            found = self._kept[key] = (tuple(tools), _encode([_tool(spec) for spec in tools]))
        return found[1]


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
    }
    return {"type": "function", "function": function}


def encode_body(model: bytes, request: ModelRequest, tools: EncodedTools) -> bytes:
    """The whole body. `model` is the name as JSON."""
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
    options = {name: value for name, value in request.extra.items() if name not in _OURS}
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
    """Whether the API would take the schema as strict: every object closed, every field needed."""
    if isinstance(schema, list):
        return all(_is_strict(part) for part in cast("list[object]", schema))
    if not isinstance(schema, Mapping):
        return True
    fields = cast("Mapping[str, object]", schema)
    if fields.get("type") == "object" or "properties" in fields:
        properties = fields.get("properties")
        names = set(cast("Mapping[str, object]", properties)) if properties else set[str]()
        required = fields.get("required")
        needed = set(cast("Sequence[str]", required)) if required else set[str]()
        if fields.get("additionalProperties") is not False or names != needed:
            return False
    return all(_is_strict(part) for part in fields.values())
