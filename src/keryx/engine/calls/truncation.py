"""Shortens results that are too long for a model."""

from __future__ import annotations

from typing import Final

from keryx.messages import Json, Part, Text

# Characters of one result that a model gets. More would fill its context; a model can ask for the
# missing parts.
RESULT_LIMIT: Final = 100_000
# The beginning of an output says what it is, and the end how it went. The beginning says more.
HEAD_SHARE: Final = 0.75


def bounded(content: tuple[Part, ...], limit: int = RESULT_LIMIT) -> tuple[Part, ...]:
    """Return the content with the middle of long parts left out."""
    return tuple(_shortened_part(part, limit) for part in content)


def _shortened_part(part: Part, limit: int) -> Part:
    if isinstance(part, Text) and len(part.text) > limit:
        return Text(_shortened(part.text, limit))
    if isinstance(part, Json) and len(bytes(part.value)) > limit:
        return Text(_shortened(bytes(part.value).decode(), limit))
    return part


def _shortened(text: str, limit: int) -> str:
    head = int(limit * HEAD_SHARE)
    tail = limit - head
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[-tail:]}"
