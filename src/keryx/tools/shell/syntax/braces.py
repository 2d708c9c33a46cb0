"""Brace expansion: `{a,b}c` is two words. It comes first, before any value is known.

A range such as `{a..e}` becomes a pattern, `[a-e]`: the words that come out of it are many, and
their number tells nothing.
"""

from __future__ import annotations

import re

from keryx.tools.shell.syntax.nodes import Part, Text, Word

MOST = 64
"""Words that one may become, and brackets that one may hold; more is not worth the effort."""

_MARKS = re.compile(r"([{},])")
_RANGE = re.compile(r"([A-Za-z]|[+-]?[0-9]+)\.\.([A-Za-z]|[+-]?[0-9]+)(?:\.\.[+-]?[0-9]+)?$")

_Piece = str | Part  # a bracket or a comma that is not quoted; or what only stands there


def expand(word: Word) -> tuple[Word, ...] | None:
    """The words that it becomes; `None` if they are too many."""
    pieces = _pieces(word)
    brackets = pieces.count("{")
    if brackets > MOST:
        return None
    if not brackets:
        return (word,)
    pieces = _without_ranges(pieces)
    expanded = _expanded(pieces)
    if expanded is None:
        return None
    words = (Word(tuple(_part(piece) for piece in one)) for one in expanded)
    # An alternative that is empty makes no word, unless it is quoted.
    return tuple(word for word in words if word.bare != "")


def _pieces(word: Word) -> list[_Piece]:
    found: list[_Piece] = []
    for part in word.parts:
        if isinstance(part, Text) and not part.quoted:
            texts = (text for text in _MARKS.split(part.value) if text)
            found.extend(text if text in "{}," else Text(text, quoted=False) for text in texts)
        else:
            found.append(part)
    return found


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
    """A pattern that matches what comes out of a range, and perhaps more."""
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
    found: list[list[_Piece]] = []
    for alternative in alternatives:
        middles = _expanded(alternative)
        if middles is None or len(found) + len(middles) * len(endings) > MOST:
            return None
        found.extend([*before, *middle, *ending] for middle in middles for ending in endings)
    return found


def _alternatives(pieces: list[_Piece], start: int) -> tuple[list[list[_Piece]], int]:
    """What stands between the commas of the bracket at `start`, and where it ends."""
    found: list[list[_Piece]] = [[]]
    depth = 0
    for index in range(start + 1, len(pieces)):
        one = pieces[index]
        if one == "}" and depth == 0:
            return found, index
        if one == "," and depth == 0:
            found.append([])
            continue
        depth += (one == "{") - (one == "}")
        found[-1].append(one)
    return [], start
