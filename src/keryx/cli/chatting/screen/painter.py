"""Turns finished pieces into rows with colours; knows nothing of a cursor.

Rows have no padding, gutter or boxes, so that copied text is the text itself. Code, commands and
diffs are not wrapped: the terminal does that, and copies them as they were.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.text import Text

from keryx.cli.chatting.pieces import Kind, Piece
from keryx.cli.screens.markdown_stream import NEXT_ITEM
from keryx.cli.screens.outcomes import MARKS
from keryx.cli.screens.outcomes import STYLES as CALL_ENDINGS

STYLES: Final[dict[Kind, str]] = {
    "user": "bold",
    "note": "dim",
    "error": "red",
    "output": "dim",
    "request": "bold yellow",
}
CALL_STYLES: Final = {mark: CALL_ENDINGS[ending] for ending, mark in MARKS.items()}
DIFF_STYLES: Final = {"+": "green", "-": "red", "@": "cyan"}
CLOSE: Final = frozenset(
    {("call", "output"), ("output", "call"), ("output", "diff"), ("call", "diff"), ("diff", "call")}
)
"""Kinds that follow one another without a blank row."""


class _PlainHeading(Heading):
    """A heading without a box."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _PlainCode(CodeBlock):
    """Code without a background and without padding."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _highlighted(str(self.text).rstrip("\n"), self.lexer_name)


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _PlainHeading,
        "fence": _PlainCode,
        "code_block": _PlainCode,
    }


@functools.lru_cache(maxsize=16)
def _syntax(language: str) -> Syntax:
    return Syntax("", language or "text", theme="ansi_dark", background_color="default")


def _highlighted(code: str, language: str) -> Text:
    text = _syntax(language).highlight(code) if language else Text(code)
    text.rstrip()
    return text


class Painter:
    """Paints pieces, one after another, for a terminal."""

    def __init__(self) -> None:
        # 16 colours only: they are those that the person chose. NO_COLOR is read by rich.
        self._console = Console(
            file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False
        )
        self._last: Kind | None = None

    def rows(self, pieces: Iterable[Piece], width: int) -> list[str]:
        """Return the rows of these pieces, with blank rows between blocks."""
        rows: list[str] = []
        for piece in pieces:
            if self.begins_block(piece):
                rows.append("")
            self._last = piece.kind
            rows += self.block(piece, width)
        return rows

    def begins_block(self, piece: Piece) -> bool:
        """Return whether a blank row comes before this piece."""
        if self._last == piece.kind:
            return piece.kind not in ("code", "call") and piece.detail != NEXT_ITEM
        return self._last is not None and (self._last, piece.kind) not in CLOSE

    def block(self, piece: Piece, width: int) -> list[str]:
        """Return the rows of one piece."""
        match piece.kind:
            case "reply":
                markdown = _Markdown(piece.text, hyperlinks=False)
                return self._wrapped(markdown, width)
            case "code":
                return [
                    self._row(_highlighted(line, piece.detail)) for line in piece.text.split("\n")
                ]
            case "diff":
                return [self._styled(line, _diff_style(line)) for line in _lines(piece)]
            case "call":
                return self._wrapped(_call(piece.text), width)
            case "user":
                text = f"> {piece.text}"
            case _:
                text = piece.text
        return self._wrapped(Text(text, STYLES[piece.kind]), width)

    def _styled(self, line: str, style: str) -> str:
        return self._row(Text.assemble((line, style)))  # a style of the whole is not rendered

    def _row(self, text: Text) -> str:
        return self._ansi(text.render(self._console, end=""))

    def _wrapped(self, renderable: Any, width: int) -> list[str]:
        options = self._console.options.update(width=max(10, width))
        lines = self._console.render_lines(renderable, options, pad=False)
        rows = [self._ansi(line) for line in lines]
        while rows and not rows[-1]:
            rows.pop()
        while rows and not rows[0]:
            rows.pop(0)
        return rows

    def _ansi(self, segments: Iterable[Segment]) -> str:
        """Return a row without blanks at its end."""
        parts = [segment for segment in segments if not segment.control]
        while parts and not parts[-1].text.strip():
            parts.pop()
        if parts:
            last = parts.pop()
            parts.append(Segment(last.text.rstrip(), last.style))
        if self._console.no_color:
            parts = list(Segment.remove_color(parts))
        return "".join(_styled_text(part.text, part.style) for part in parts)


def _styled_text(text: str, style: Style | None) -> str:
    render: Callable[[str], str] | None = style.render if style else None
    return render(text) if render else text


def _diff_style(line: str) -> str:
    return "bold" if line.startswith(("--- ", "+++ ")) else DIFF_STYLES.get(line[:1], "")


def _lines(piece: Piece) -> Sequence[str]:
    return piece.text.split("\n")


def _call(text: str) -> Text:
    return Text.assemble((text[:1], CALL_STYLES.get(text[:1], "")), text[1:])
