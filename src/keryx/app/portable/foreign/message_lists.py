"""Reads lists of messages in OpenAI's form, strictly: what is wrong is named with its place."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from keryx.messages import Image, Part, Text, ToolCall, well_formed
from keryx.ports.store import Blob, blob_hash

_DATA_URL: Final = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)
_LEFT_OUT: Final = ("system", "developer", "session_meta")
"""Roles whose messages are not part of the conversation: Keryx writes its own instructions."""


class Said(msgspec.Struct, frozen=True):
    """A message of a person."""

    parts: tuple[Part, ...]


class Replied(msgspec.Struct, frozen=True):
    """A reply of a model, with the results of its calls as far as the list has them."""

    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    results: dict[str, tuple[Part, ...]] = msgspec.field(
        default_factory=dict[str, tuple[Part, ...]]
    )


class Conversation(msgspec.Struct):
    """A conversation from elsewhere."""

    items: list[Said | Replied] = msgspec.field(default_factory=list[Said | Replied])
    blobs: list[Blob] = msgspec.field(default_factory=list[Blob])
    left_out: int = 0
    """The number of messages that hold instructions of another program."""
    title: str = ""
    model: str = ""
    at: float | None = None


def read_messages(
    messages: object, place: str, places: Sequence[str] | None = None
) -> Conversation:
    """Return the conversation. `ValueError` names the place of what cannot be read.

    `places` are those of the messages, if some of the list were left out before.
    """
    conversation = Conversation()
    for number, message in enumerate(list_at(messages, place)):
        name = f"{place}[{number}]" if places is None else places[number]
        _read_message(conversation, message, name)
    if not conversation.items:
        raise ValueError(f"{place}: it has no message of a person or a model")
    return conversation


def _read_message(conversation: Conversation, value: object, place: str) -> None:
    message = object_at(value, place)
    role = message.get("role")
    match role:
        case "user":
            parts = _parts(message.get("content"), f"{place}.content", conversation.blobs)
            conversation.items.append(Said(parts))
        case "assistant":
            conversation.items.append(_reply(message, place, conversation.blobs))
        case "tool":
            _add_result(conversation, message, place)
        case str() if role in _LEFT_OUT:
            conversation.left_out += 1
        case _:
            raise ValueError(
                f"{place}.role is {role!r:.40}; "
                "it must be system, developer, user, assistant or tool"
            )


def _reply(message: Mapping[str, Any], place: str, blobs: list[Blob]) -> Replied:
    content = _parts(message.get("content"), f"{place}.content", blobs)
    text = "\n".join(part.text for part in content if isinstance(part, Text))
    reasoning = message.get("reasoning") or message.get("reasoning_content") or ""
    calls: list[ToolCall] = []
    for number, call in enumerate(list_at(message.get("tool_calls") or [], f"{place}.tool_calls")):
        calls.append(_call(call, f"{place}.tool_calls[{number}]"))
    if len({call.call_id for call in calls}) < len(calls):
        raise ValueError(f"{place}.tool_calls: two calls have the same id")
    return Replied(text, text_at(reasoning, f"{place}.reasoning"), tuple(calls))


def _call(value: object, place: str) -> ToolCall:
    call = object_at(value, place)
    function = object_at(call.get("function"), f"{place}.function")
    arguments = function.get("arguments", "{}")
    if isinstance(arguments, dict):
        arguments = msgspec.json.encode(arguments).decode()
    return ToolCall(
        call_id=text_at(call.get("id") or call.get("call_id"), f"{place}.id"),
        tool=text_at(function.get("name"), f"{place}.function.name"),
        arguments=text_at(arguments, f"{place}.function.arguments"),
    )


def _add_result(conversation: Conversation, message: Mapping[str, Any], place: str) -> None:
    call_id = text_at(message.get("tool_call_id"), f"{place}.tool_call_id")
    reply = conversation.items[-1] if conversation.items else None
    if not isinstance(reply, Replied) or call_id not in {call.call_id for call in reply.calls}:
        raise ValueError(
            f"{place} is the result of the call {call_id!r:.80}, which the reply before it did not "
            "make"
        )
    if call_id in reply.results:
        raise ValueError(f"{place}: the call {call_id!r:.80} has a result already")
    reply.results[call_id] = _parts(message.get("content"), f"{place}.content", conversation.blobs)


def _parts(content: object, place: str, blobs: list[Blob]) -> tuple[Part, ...]:
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(well_formed(content)),)
    items = list_at(content, place)
    return tuple(_part(item, f"{place}[{number}]", blobs) for number, item in enumerate(items))


def _part(value: object, place: str, blobs: list[Blob]) -> Part:
    part = object_at(value, place)
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text", "refusal"):
        return Text(text_at(part.get("refusal" if kind == "refusal" else "text"), f"{place}.text"))
    if kind in ("image_url", "input_image"):
        source = part.get("image_url")
        url = cast("Mapping[str, Any]", source).get("url") if isinstance(source, dict) else source
        return _image(text_at(url, f"{place}.image_url"), f"{place}.image_url", blobs)
    raise ValueError(f"{place}.type is {kind!r:.40}; it must be text or image_url")


def _image(url: str, place: str, blobs: list[Blob]) -> Part:
    match = _DATA_URL.fullmatch(url)
    if match is None:
        return Text(f"[image: {url}]")
    try:
        data = base64.b64decode(match[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{place}: the image is not base64") from error
    blob = Blob(blob_hash(data), data)
    blobs.append(blob)
    return Image(blob.hash, match[1])


def object_at(value: object, place: str) -> Mapping[str, Any]:
    """Return the value if it is an object; `ValueError` with the place otherwise."""
    if not isinstance(value, dict):
        raise ValueError(f"{place} must be an object")  # noqa: TRY004 (the file is wrong, not the program)
    return cast("Mapping[str, Any]", value)


def text_at(value: object, place: str) -> str:
    """Return the value if it is a text; `ValueError` with the place otherwise."""
    if not isinstance(value, str):
        raise ValueError(f"{place} must be a text")  # noqa: TRY004 (the file is wrong, not the program)
    return well_formed(value)


def list_at(value: object, place: str) -> Sequence[object]:
    """Return the value if it is a list; `ValueError` with the place otherwise."""
    if not isinstance(value, list):
        raise ValueError(f"{place} must be a list")  # noqa: TRY004 (the file is wrong, not the program)
    return cast("list[object]", value)
