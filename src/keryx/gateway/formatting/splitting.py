"""Splits a formatted text into messages that fit a platform's limit.

A message ends at an empty line, a line or a word if there is one near the limit. Formatting that
spans the cut goes on in the next message, so code stays code. Limits count UTF-16 units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from keryx.gateway.formatting.markdown import FormattedText, Mark
from keryx.ports.platform import Content, Span

_BREAKS: Final = ("\n\n", "\n", " ")


def units(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def split(formatted: FormattedText, limit: int) -> list[Content]:
    """Return the text as messages of at most `limit` units; each has something to see."""
    return [
        content
        for start, end in _cuts(formatted.text, limit)
        if is_visible((content := _slice(formatted, start, end)).text)
    ]


def plain(text: str, limit: int | None) -> list[Content]:
    """Return a text without formatting, as messages of at most `limit` units."""
    if limit is None:
        return [Content(text=text)]
    return split(FormattedText(text), limit)


def with_line(contents: Sequence[Content], line: str, limit: int | None) -> list[Content]:
    """Return messages with an unformatted line at their end."""
    if not line:
        return list(contents)
    last = msgspec.structs.replace(contents[-1], text=f"{contents[-1].text}\n\n{line}")
    if limit is None or units(last.text) <= limit:
        return [*contents[:-1], last]
    return [*contents, *plain(line, limit)]


def tail(text: str, limit: int) -> str:
    """Return the last `limit` UTF-16 units of a text."""
    return text.encode("utf-16-le", "replace")[-2 * limit :].decode("utf-16-le", "ignore")


def is_visible(text: str) -> bool:
    """Return whether there is a character to see."""
    return any(letter.isprintable() and not letter.isspace() for letter in text)


def _cuts(text: str, limit: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = _furthest(text, start, limit)
        if end < len(text):
            end = _nice(text, start, end)
        yield start, end
        start = end


def _furthest(text: str, start: int, limit: int) -> int:
    end, size = start, 0
    for character in text[start : start + limit]:
        size += 2 if character > "\uffff" else 1
        if size > limit:
            break
        end += 1
    return max(end, start + 1)


def _nice(text: str, start: int, end: int) -> int:
    """Return the best place to cut in the second half."""
    for mark in _BREAKS:
        at = text.rfind(mark, start + (end - start) // 2, end)
        if at > start:
            return at + len(mark)
    return end


def _slice(formatted: FormattedText, start: int, end: int) -> Content:
    text = formatted.text[start:end]
    stripped = text.strip("\n")
    start += len(text) - len(text.lstrip("\n")) if stripped else 0
    end = start + len(stripped)
    spans = [
        _span(formatted.text, mark, start, end)
        for mark in formatted.marks
        if mark.start < end and mark.end > start
    ]
    return Content(text=stripped, spans=tuple(spans))


def _span(text: str, mark: Mark, start: int, end: int) -> Span:
    first, last = max(mark.start, start), min(mark.end, end)
    return Span(mark.kind, units(text[start:first]), units(text[first:last]), mark.value)
