"""Encodes parts of messages, as all wire formats do: media, texts, calls, signed items, tool lists.

Each message is encoded once and separately; a body is joined from these bytes, with the messages at
its end. So a body begins with the bytes of the one before it. This module knows no API.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.messages import (
    AssistantMessage,
    File,
    Image,
    Json,
    Opaque,
    Part,
    Text,
    ToolCall,
    text_of,
)
from keryx.models.wire.schemas import parameters_of
from keryx.ports.model import ToolSpec

LoadBlob = Callable[[str], bytes]
"""Returns a blob by its hash; `LookupError` if there is none."""

PDF: Final = "application/pdf"
IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
"""The image types that most APIs take."""

# The size of the cache of encoded tool lists. Each session has one that seldom changes.
MAX_TOOL_LISTS: Final = 64

encode: Final = msgspec.json.Encoder().encode
_decode_object: Final = json_decoder(dict[str, Any]).decode
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME: Final = 64


def tool_name(name: str) -> str:
    """Return a name that every API takes: a model may invent one that would be refused for ever."""
    return _NOT_IN_NAMES.sub("_", name)[:_MAX_NAME] or "unknown"


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as an object, for an API that takes no text."""
    try:
        return _decode_object(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        # The tool has refused these arguments, and its result says so.
        return {"arguments": call.arguments}


class Media(msgspec.Struct, frozen=True):
    """An image or a file with its content."""

    media_type: str
    name: str
    base64: str

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.base64}"


class MediaLoader:
    """Loads what a model can read. `blobs` is None for a model that sees no images."""

    def __init__(self, blobs: LoadBlob | None, types: frozenset[str] | None = IMAGES) -> None:
        """`types`: the media types that the API takes; None: all images."""
        self._blobs = blobs
        self._types = types

    def spans(self, content: Sequence[Part]) -> Iterator[str | Media]:
        """Yield the content in order: neighbouring texts as one, and media."""
        lines: list[str] = []
        for part in content:
            media = self._load(part)
            if isinstance(media, str):
                lines.append(media)
                continue
            if text := "\n".join(lines):
                yield text
            lines.clear()
            yield media
        if text := "\n".join(lines):
            yield text

    def _load(self, part: Part) -> Media | str:
        """Return the medium, or what stands for the part as text."""
        match part:
            case Text() | Json():
                return text_of((part,))
            case Image() | File():
                if not self._takes(part):
                    return text_of((part,))
                name = f"{part.media_type} {part.name or part.blob}"
                if self._blobs is None:
                    return f"[{name}: use vision_analyze to see it]"
                try:
                    data = self._blobs(part.blob)
                except LookupError:
                    kind = "image" if isinstance(part, Image) else "file"
                    return f"[{name}: the {kind} does not exist any more]"
                return Media(part.media_type, part.name, base64.b64encode(data).decode())

    def _takes(self, part: Image | File) -> bool:
        if self._types is None:
            return isinstance(part, Image)
        if isinstance(part, File) and self._blobs is None:
            return False
        return part.media_type in self._types


def blocks(message: AssistantMessage, signer: str) -> Iterator[str | ToolCall | Opaque]:
    """Yield text, calls and the items of this signer, in the order of the reply."""
    text, calls = text_of(message.content), message.calls
    text_end = call_count = 0
    for item in message.opaque:
        if item.provider != signer:
            continue
        if item.after_text > text_end and text[text_end : item.after_text]:
            yield text[text_end : item.after_text]
            text_end = item.after_text
        yield from calls[call_count : item.after_calls]
        call_count = max(call_count, item.after_calls)
        yield item
    if rest := text[text_end:]:
        yield rest
    yield from calls[call_count:]


class EncodedTools:
    """A cache of encoded tool lists. `describe` returns one tool as the API takes it."""

    def __init__(self, describe: Callable[[ToolSpec], Mapping[str, Any]]) -> None:
        self._describe = describe
        # Keyed by object ids: the cache holds the objects, so no id is reused.
        self._cache: dict[tuple[int, ...], tuple[Sequence[ToolSpec], bytes]] = {}

    def encode(self, tools: Sequence[ToolSpec]) -> bytes:
        key = tuple(map(id, tools))
        entry = self._cache.get(key)
        if entry is None:
            if len(self._cache) >= MAX_TOOL_LISTS:
                del self._cache[next(iter(self._cache))]
            encoded = encode([self._describe(_takeable(spec)) for spec in tools])
            entry = self._cache[key] = (tuple(tools), encoded)
        return entry[1]


def _takeable(spec: ToolSpec) -> ToolSpec:
    parameters = parameters_of(spec.parameters)
    if parameters is spec.parameters:
        return spec
    return msgspec.structs.replace(spec, parameters=parameters)


def join_body(options: Mapping[str, Any], tools: bytes | None, key: str, messages: bytes) -> bytes:
    """Return the body: the options, the tools as JSON, and the messages last.

    Nothing that changes from step to step stands before the messages.
    """
    start = encode(options)[:-1]
    parts = [
        start,
        b',"tools":%b' % tools if tools else b"",
        b',"%b":[%b]}' % (key.encode(), messages),
    ]
    return b"".join(parts)


class Group(msgspec.Struct, frozen=True):
    """Messages that become one if they are neighbours, and what stands before their blocks."""

    name: str
    start: bytes


class Roles:
    """Joins messages into groups of one role.

    Each encoded message is one byte for its role, then its blocks as JSON, with commas between. The
    brackets are added here, so that neighbours become one message while the bytes of each stay the
    same.
    """

    def __init__(self, groups: Mapping[bytes, Group], opening: bytes) -> None:
        """`opening` is an encoded message: the APIs refuse a history that begins with a reply."""
        self._groups = dict(groups)
        self._opening = opening

    def join(self, history: Sequence[bytes]) -> bytes:
        parts: list[bytes] = []
        last: Group | None = None
        messages = [message for message in history if len(message) > 1]  # others have no block
        if messages and not messages[0].startswith(self._opening[:1]):
            messages.insert(0, self._opening)
        for message in messages:
            group = self._groups[message[:1]]
            if group is last:
                parts += (b",", message[1:])
            else:
                parts += (b"" if last is None else b"]},", group.start, message[1:])
                last = group
        return b"" if last is None else b"".join([*parts, b"]}"])


OPENING: Final = "[the conversation begins with a reply]"
"""What stands in the place of the person's first message if there is none."""


def tagged(role: bytes, blocks_: Sequence[object]) -> bytes:
    """Return the blocks of one message for `Roles`."""
    return role + encode(blocks_)[1:-1]
