"""What a tool returned, as content that can be logged, sent and read."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from keryx.errors import ToolFailedError
from keryx.messages import File, Image, Json, Part, Text

# What a model is shown of one result. More would crowd out the context; what it needs beyond
# this it can ask for in pieces.
RESULT_LIMIT: Final = 100_000
# The beginning of an output says what it is, the end how it went; the beginning says more.
HEAD_SHARE: Final = 0.75


def content_of(value: Any) -> tuple[Part, ...]:
    """Encode what a tool returned; raises `ToolFailedError` if that cannot be done."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, Text | Json | Image | File):
        return (value,)
    if isinstance(value, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", value)
        if items and all(isinstance(item, Text | Json | Image | File) for item in items):
            return tuple(items)
    return (Json(msgspec.Raw(_encode(value))),)


def _encode(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_encode_foreign)
    except Exception as error:
        # A foreign object's own code runs here, so any kind of error may come out of it.
        raise ToolFailedError(
            f"the tool did its work but returned a {type(value).__name__} that cannot be shown: "
            f"{error}. It should return text, or values that JSON has."
        ) from error


def _encode_foreign(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise NotImplementedError(f"a {type(value).__name__} has no JSON form")


def bounded(content: tuple[Part, ...], limit: int = RESULT_LIMIT) -> tuple[Part, ...]:
    """The same content, cut in the middle where it is too long for a model."""
    return tuple(_bounded_part(part, limit) for part in content)


def _bounded_part(part: Part, limit: int) -> Part:
    if isinstance(part, Text) and len(part.text) > limit:
        return Text(_cut(part.text, limit))
    if isinstance(part, Json) and len(bytes(part.value)) > limit:
        return Text(_cut(bytes(part.value).decode(), limit))
    return part


def _cut(text: str, limit: int) -> str:
    head = int(limit * HEAD_SHARE)
    tail = limit - head
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[-tail:]}"
