"""Brace expansion: `{a,b}c` is two words. It is the first expansion, before any value is known.

A range such as `{a..e}` becomes a pattern, `[a-e]`, because it may give very many words.
"""

from __future__ import annotations

import re

from keryx.tools.shell.syntax.nodes import Part, Text, Word

MAX_WORDS = 64
"""The most words that one word may become, and the most brackets in it."""

_MARKS = re.compile(r"([{},])")
_RANGE = re.compile(r"([A-Za-z]|[+-]?[0-9]+)\.\.([A-Za-z]|[+-]?[0-9]+)(?:\.\.[+-]?[0-9]+)?$")

_Piece = str | Part  # an unquoted bracket or comma, or a literal part


def expand(word: Word) -> tuple[Word, ...] | None:
    """Return the words that it becomes; None if they are too many."""
    pieces = _pieces(word)
    brackets = pieces.count("{")
    if brackets > MAX_WORDS:
        return None
    if not brackets:
        return (word,)
    pieces = _without_ranges(pieces)
    expanded = _expanded(pieces)
    if expanded is None:
        return None
    words = (Word(tuple(_part(piece) for piece in alternative)) for alternative in expanded)
    # An empty alternative gives no word, unless it is quoted.
    return tuple(word for word in words if word.bare != "")


def _pieces(word: Word) -> list[_Piece]:
    pieces: list[_Piece] = []
    for part in word.parts:
        if isinstance(part, Text) and not part.quoted:
            texts = (text for text in _MARKS.split(part.value) if text)
            pieces.extend(text if text in "{}," else Text(text, quoted=False) for text in texts)
        else:
            pieces.append(part)
    return pieces


def _without_ranges(pieces: list[_Piece]) -> list[_Piece]:
    plain: list[_Piece] = []
    at = 0
    while at < len(pieces):
        inner = pieces[at + 1] if pieces[at] == "{" and pieces[at + 2 : at + 3] == ["}"] else None
        bounds = _RANGE.match(inner.value) if isinstance(inner, Text) and not inner.quoted else None
        if bounds is None:
            plain.append(pieces[at])
            at += 1
        else:
            plain.append(Text(_pattern(*bounds.groups()), quoted=False))
            at += len("{x}")
    return plain


def _pattern(first: str, last: str) -> str:
    """Return a pattern that matches all words of a range, and perhaps more."""
    return f"[{first}-{last}]" if first.isalpha() and last.isalpha() else "*[0-9]"


def _part(piece: _Piece) -> Part:
    return Text(piece, quoted=False) if isinstance(piece, str) else piece


def _expanded(pieces: list[_Piece]) -> list[list[_Piece]] | None:
    start = 0
    while "{" in pieces[start:]:
        start = pieces.index("{", start)
        alternatives, end = _alternatives(pieces, start)
        if len(alternatives) > 1:
            return _combined(pieces[:start], alternatives, pieces[end + 1 :])
        start += 1
    return [pieces]


def _combined(
    before: list[_Piece], alternatives: list[list[_Piece]], after: list[_Piece]
) -> list[list[_Piece]] | None:
    endings = _expanded(after)
    if endings is None:
        return None
    combinations: list[list[_Piece]] = []
    for alternative in alternatives:
        middles = _expanded(alternative)
        if middles is None or len(combinations) + len(middles) * len(endings) > MAX_WORDS:
            return None
        combinations.extend([*before, *middle, *ending] for middle in middles for ending in endings)
    return combinations


def _alternatives(pieces: list[_Piece], start: int) -> tuple[list[list[_Piece]], int]:
    """Return the alternatives of the bracket at `start`, and where it ends."""
    alternatives: list[list[_Piece]] = [[]]
    depth = 0
    for index in range(start + 1, len(pieces)):
        piece = pieces[index]
        if piece == "}" and depth == 0:
            return alternatives, index
        if piece == "," and depth == 0:
            alternatives.append([])
            continue
        depth += (piece == "{") - (piece == "}")
        alternatives[-1].append(piece)
    return [], start
