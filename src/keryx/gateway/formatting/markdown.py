"""Markdown as plain text with formatted spans. It follows the parsed tree, so no text is lost.

What the tree does not know (tables, HTML) stays as it was written. Positions count characters.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from keryx.ports.platform import SpanKind

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LINKED: Final = ("http://", "https://", "mailto:", "tg://")
DEEPEST: Final = 20
"""Levels of quotes and lists in one another."""
_RULE: Final = "———"
_INLINE: Final[dict[str, SpanKind]] = {"strong": "bold", "em": "italic", "s": "strikethrough"}


class Mark(msgspec.Struct, frozen=True):
    """A formatted part of a text, in characters."""

    kind: SpanKind
    start: int
    end: int
    value: str = ""


class FormattedText(msgspec.Struct, frozen=True):
    """A text without markup, and what is formatted in it."""

    text: str
    marks: tuple[Mark, ...] = ()


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 (heavy; loaded with the first answer)

    options = {"html": False, "maxNesting": DEEPEST}
    return MarkdownIt("commonmark", options).enable("strikethrough")


@functools.cache
def _parser_without_definitions() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 (heavy; loaded with the first answer)

    options = {"html": False, "maxNesting": DEEPEST}
    return MarkdownIt("commonmark", options).enable("strikethrough").disable("reference")


def parse(markdown: str) -> FormattedText:
    """Return the text of a document and its formatting."""
    tokens = _parse(markdown)
    if any(token.nesting == 1 and token.level + 1 >= DEEPEST for token in tokens):
        return FormattedText(markdown)  # the parser leaves out what is deeper
    writer = _Writer()
    writer.blocks(tokens)
    return writer.result()


def _parse(markdown: str) -> list[Token]:
    """Return the tokens. Addresses that no link uses ("[1]: https://…") stay text."""
    definitions: dict[str, Any] = {}
    tokens = _parser().parse(markdown, definitions)
    addresses = {entry["href"] for entry in definitions.get("references", {}).values()}
    if definitions.get("duplicate_refs") or not addresses <= set(_targets(tokens)):
        return _parser_without_definitions().parse(markdown)
    return tokens


class _Writer:
    """Writes the tokens of a document one after another."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._trailing = 0
        """Line breaks at the end of the text so far."""
        self._pending = 0
        """Line breaks that are written before the next text."""
        self._marks: list[Mark] = []
        self._open: list[tuple[SpanKind, int, str]] = []
        self._lists: list[int | None] = []
        self._tight = 0

    def result(self) -> FormattedText:
        text = "".join(self._parts)
        return FormattedText(text, _without_overlaps(self._marks))

    def blocks(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            kind = token.type
            if kind == "inline":
                self._inline(token.children or [])
            elif kind in ("fence", "code_block"):
                self._code(token)
            elif kind == "hr":
                self._break(2)
                self._write(_RULE)
            elif kind.endswith("_open"):
                self._enter(token)
            elif kind.endswith("_close"):
                self._leave(token)
            elif token.content:
                self._break(2)
                self._write(token.content)

    def _enter(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._break(2)
                self._begin("bold")
            case "blockquote_open":
                self._break(2)
                self._flush()
                self._begin("blockquote")
            case "bullet_list_open":
                self._break(1 if self._lists else 2)
                self._lists.append(None)
            case "ordered_list_open":
                self._break(1 if self._lists else 2)
                self._lists.append(int(token.attrGet("start") or 1))
            case "list_item_open":
                self._item()
            case _:
                # A paragraph in a tight list, or the first one of an item, stays on its line.
                if not token.hidden:
                    self._break(2)

    def _item(self) -> None:
        self._break(1)
        number = self._lists[-1]
        indent = "  " * (len(self._lists) - 1)
        if number is None:
            self._write(f"{indent}• ")
        else:
            self._write(f"{indent}{number}. ")
            self._lists[-1] = number + 1
        self._pending = -1

    def _leave(self, token: Token) -> None:
        match token.type:
            case "heading_close":
                self._end("bold")
            case "blockquote_close":
                self._end("blockquote")
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case _:
                return

    def _inline(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            name, _, side = token.type.rpartition("_")
            if name in _INLINE and side == "open":
                self._flush()
                self._begin(_INLINE[name])
            elif name in _INLINE and side == "close":
                self._end(_INLINE[name])
            elif token.type == "link_open":
                self._flush()
                self._begin("text_link", str(token.attrGet("href") or ""))
            elif token.type == "link_close":
                self._end_link()
            elif token.type == "code_inline":
                self._flush()
                self._begin("code")
                self._write(token.content)
                self._end("code")
            elif token.type in ("softbreak", "hardbreak"):
                self._write("\n")
            elif token.type == "image":
                source = str(token.attrGet("src") or "")
                self._write(f"{token.content} ({source})" if token.content else source)
            else:
                self._write(token.content)

    def _end_link(self) -> None:
        kind, start, address = self._open.pop()
        assert kind == "text_link"
        text = "".join(self._parts)[start:]
        if address.startswith(LINKED):
            if text and text != address:
                self._marks.append(Mark("text_link", start, self._length, address))
        elif address and address != text:
            self._write(f" ({address})")

    def _code(self, token: Token) -> None:
        self._break(2)
        self._flush()
        self._begin("pre", token.info.strip().partition(" ")[0])
        self._write(token.content.removesuffix("\n"))
        self._end("pre")

    # -- text

    def _break(self, lines: int) -> None:
        """Begin a new line, after an empty one if `lines` is 2, before the next text."""
        if self._pending == -1:
            self._pending = 0
        elif self._length:
            self._pending = max(self._pending, lines - self._trailing)

    def _flush(self) -> None:
        if self._pending > 0:
            lines, self._pending = self._pending, 0
            self._write("\n" * lines)
        self._pending = 0

    def _write(self, text: str) -> None:
        if not text:
            return
        if self._pending > 0:
            self._flush()
        self._pending = 0
        self._parts.append(text)
        self._length += len(text)
        stripped = len(text.rstrip("\n"))
        self._trailing = (self._trailing if not stripped else 0) + len(text) - stripped

    def _begin(self, kind: SpanKind, value: str = "") -> None:
        self._flush()
        self._open.append((kind, self._length, value))

    def _end(self, kind: SpanKind) -> None:
        opened, start, value = self._open.pop()
        assert opened == kind
        if self._length > start:
            self._marks.append(Mark(kind, start, self._length, value))


def _without_overlaps(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Cut other formatting around code, which cannot have any, and drop quotes inside quotes.

    Code in a link is only a link: its address must not be lost.
    """
    links = [mark for mark in marks if mark.kind == "text_link"]
    codes = [
        mark
        for mark in marks
        if mark.kind == "pre" or (mark.kind == "code" and not _is_within(mark, links))
    ]
    quotes = [mark for mark in marks if mark.kind == "blockquote"]
    outer = [
        quote
        for quote in quotes
        if not any(
            other != quote and other.start <= quote.start and quote.end <= other.end
            for other in quotes
        )
    ]
    result = [*codes, *outer]
    for mark in marks:
        if mark.kind in ("code", "pre", "blockquote"):
            continue
        pieces = [mark]
        for code in codes:
            pieces = [part for piece in pieces for part in _around(piece, code)]
        result += pieces
    return tuple(sorted(result, key=lambda mark: (mark.start, -mark.end, mark.kind)))


def _is_within(mark: Mark, others: Sequence[Mark]) -> bool:
    return any(other.start <= mark.start and mark.end <= other.end for other in others)


def _around(mark: Mark, code: Mark) -> list[Mark]:
    if code.end <= mark.start or mark.end <= code.start:
        return [mark]
    before = msgspec.structs.replace(mark, end=code.start)
    after = msgspec.structs.replace(mark, start=code.end)
    return [part for part in (before, after) if part.start < part.end]


def links_in(markdown: str) -> list[str]:
    """Return the targets of all links and images, in order."""
    return _targets(_parser().parse(markdown))


def _targets(tokens: Sequence[Token]) -> list[str]:
    targets: list[str] = []
    for token in tokens:
        for child in token.children or []:
            target = cast("str | None", child.attrGet("href") or child.attrGet("src"))
            if target:
                targets.append(target)
    return targets
