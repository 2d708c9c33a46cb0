"""Finished pieces of a conversation, before any screen decides how they look."""

from __future__ import annotations

import unicodedata
from typing import Final, Literal, NamedTuple

Kind = Literal["user", "reply", "code", "note", "error", "diff", "call", "output", "request"]
TAB: Final = "    "


class Piece(NamedTuple):
    """A finished part of the conversation; `detail`: the language of code, or `item`."""

    kind: Kind
    text: str
    detail: str = ""


def printable(text: str) -> str:
    """Return the text without characters that a terminal would obey or that hide other text."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(map(_printable_letter, text))


def one_line(text: str, longest: int) -> str:
    """Return the text on one line, of at most so many characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= longest else f"{line[: max(0, longest - 1)]}…"


def _printable_letter(letter: str) -> str:
    if letter == "\n" or letter.isprintable():
        return letter
    if letter == "\t":
        return TAB
    # A joiner belongs to emoji and scripts; other format characters can reorder or hide text.
    is_harmless = letter in "\u200d\u200c" or unicodedata.category(letter) in ("Zs", "Mn")
    return letter if is_harmless else "" if letter == "\r" else "\N{REPLACEMENT CHARACTER}"
