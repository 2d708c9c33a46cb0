"""How much of a result a model is shown."""

from __future__ import annotations

from typing import Final

from keryx.messages import Json, Part, Text

# What a model is shown of one result. More would crowd out the context; what it needs beyond
# this it can ask for in pieces.
RESULT_LIMIT: Final = 100_000
# The beginning of an output says what it is, the end how it went; the beginning says more.
HEAD_SHARE: Final = 0.75


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
