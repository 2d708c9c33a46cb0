"""Encodes requests to the Gemini API: parts, tools and options, as JSON bytes.

A message is encoded as its parts; the body joins neighbours of one kind, so that the results of a
step are one content. Tools and answers are described by plain JSON schemas, which the API takes
beside its own dialect. Only fields of the API are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.messages import (
    AssistantMessage,
    Message,
    Opaque,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from keryx.models.gemini.generations import Generation
from keryx.models.wire.encoding import (
    OPENING,
    EncodedTools,
    Group,
    Media,
    MediaLoader,
    Roles,
    arguments_of,
    blocks,
    join_body,
    tagged,
    tool_name,
)
from keryx.models.wire.schemas import instruction
from keryx.ports.model import ModelRequest, ToolSpec

UNSIGNED: Final = "skip_thought_signature_validator"
"""The API's own word for a call that another model made: it has no signature to check."""

ROOM_TO_THINK: Final = 1024
"""Tokens. In a shorter reply thinking would leave no room for the answer."""
_RESERVED_OPTIONS: Final = frozenset({"contents", "systemInstruction", "tools"})
_USER, _REPLY, _RESULT = b"u", b"a", b"t"
_ROLES: Final = Roles(
    {
        _USER: Group("user", b'{"role":"user","parts":['),
        _RESULT: Group("results", b'{"role":"user","parts":['),
        _REPLY: Group("model", b'{"role":"model","parts":['),
    },
    tagged(_USER, [{"text": OPENING}]),
)


class Signed(msgspec.Struct):
    """A signature, and what it belongs to: the next call, or the last characters before it."""

    signature: str
    characters: int | None = None
    """How long the signed text is; None: the signature belongs to the next call."""


_decode_signed: Final = json_decoder(Signed).decode


def encode_message(
    message: Message, media: MediaLoader, signer: str, generation: Generation
) -> bytes:
    """Encode one message: its role as one byte, and its parts."""
    match message:
        case UserMessage():
            return tagged(_USER, [_part(span) for span in media.spans(message.content)])
        case AssistantMessage():
            return tagged(_REPLY, list(_reply_parts(message, signer, generation)))
        case ToolMessage():
            return tagged(_RESULT, [_result(message, media, generation)])


def _part(span: str | Media) -> dict[str, Any]:
    if isinstance(span, str):
        return {"text": span}
    return {"inlineData": {"mimeType": span.media_type, "data": span.base64}}


def _result(message: ToolMessage, media: MediaLoader, generation: Generation) -> dict[str, Any]:
    spans = list(media.spans(message.content))
    text = "\n".join(span for span in spans if isinstance(span, str))
    attached = [_part(span) for span in spans if isinstance(span, Media)]
    response: dict[str, Any] = {
        "id": message.call_id,
        "name": tool_name(message.tool),
        "response": {"result": text},
    }
    if attached and generation.signs_calls:
        response["parts"] = attached
    elif attached:
        response["response"] = {"result": f"{text}\n[an image that this model cannot see here]"}
    return {"functionResponse": response}


def _reply_parts(
    message: AssistantMessage, signer: str, generation: Generation
) -> Iterator[dict[str, Any]]:
    text, signature, is_first_call = "", "", True
    for block in blocks(message, signer):
        match block:
            case str():
                text += block
                continue
            case ToolCall():
                yield from _texts(text)
                if is_first_call and generation.signs_calls and not signature:
                    signature = UNSIGNED
                yield _call(block, signature)
                signature, is_first_call = "", False
            case Opaque():
                signed = _decode_signed(block.item)
                if signed.characters is None:
                    yield from _texts(text)
                    signature = signed.signature
                else:
                    start = max(0, len(text) - signed.characters)
                    yield from _texts(text[:start])
                    yield {"text": text[start:], "thoughtSignature": signed.signature}
        text = ""
    yield from _texts(text)


def _texts(text: str) -> list[dict[str, Any]]:
    return [{"text": text}] if text else []


def _call(call: ToolCall, signature: str) -> dict[str, Any]:
    function = {"id": call.call_id, "name": tool_name(call.tool), "args": arguments_of(call)}
    return {
        "functionCall": function,
        **({"thoughtSignature": signature} if signature else {}),
    }


def describe_tool(spec: ToolSpec) -> dict[str, Any]:
    described: dict[str, Any] = {"name": spec.name, "description": spec.description}
    # The API refuses an object without properties: such a tool has no parameters.
    if spec.parameters.get("properties"):
        described["parametersJsonSchema"] = spec.parameters
    return described


def encode_body(generation: Generation, request: ModelRequest, tools: EncodedTools) -> bytes:
    """Return the whole body."""
    encoded_tools = None
    if request.tools:
        encoded_tools = b'[{"functionDeclarations":%b}]' % tools.encode(request.tools)
    return join_body(
        _options(generation, request), encoded_tools, "contents", _ROLES.join(request.history)
    )


def _options(generation: Generation, request: ModelRequest) -> dict[str, Any]:
    options: dict[str, Any] = {
        name: value for name, value in request.extra.items() if name not in _RESERVED_OPTIONS
    }
    config: dict[str, Any] = dict(options.pop("generationConfig", {}))
    effort = request.effort
    if effort is None and request.max_tokens is not None and request.max_tokens < ROOM_TO_THINK:
        effort = "none"
    if thinking := generation.thinking(effort):
        config["thinkingConfig"] = thinking
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    system = request.system
    if request.schema is not None:
        if request.tools and not generation.signs_calls:
            # These models refuse a schema for the answer beside tools.
            system = "\n\n".join(filter(None, [system, instruction(request.schema)]))
        else:
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = request.schema
    options["generationConfig"] = config
    if (choice := request.tool_choice) is not None:
        names = {"allowedFunctionNames": [choice.name]} if choice.name else {}
        options["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", **names}}
    if system:
        options["systemInstruction"] = {"parts": [{"text": system}]}
    return options
