"""The words of a text as they are compared: without case, accents and signs.

It owns what a word is, for texts and for searches, so that every store and every index agree. In
scripts without spaces between words the characters are the words, and a mark for each pair of
neighbours.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

# The beginning is enough to find longer words (keys, encoded data).
LONGEST_WORD: Final = 40

# Thai to Myanmar, Khmer, kana with their signs, Han, Hangul, and the later planes of Han.
_UNSPACED: Final = (
    "\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Marks are characters for private use, which no word has.
_FIRST_MARK: Final = 0xE000
_MARKS: Final = 0xFFF


# Compiled at first use: so many ranges take milliseconds, which would slow every start.
@functools.cache
def _runs() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]+|[^ {_UNSPACED}]+")


@functools.cache
def _unspaced_character() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


class _FoldTable(dict[int, str]):
    """The folded form of each character, computed at its first use."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold_character(chr(code))
        return folded


def _fold_character(character: str) -> str:
    composed = unicodedata.normalize("NFKC", character)
    if _unspaced_character().match(composed):
        return composed  # in these scripts a combining mark makes a different letter
    plain = unicodedata.normalize("NFKD", character).casefold()
    characters = [character for character in plain if not unicodedata.combining(character)]
    return "".join(
        character if unicodedata.category(character)[0] in "LNM" else " "
        for character in characters
    )


_TABLE: Final = _FoldTable()


def fold(text: str) -> str:
    """Return the text with folded words, and a space for every other character."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.translate(_TABLE)


def fold_with_places(text: str) -> tuple[str, list[int] | range]:
    """Return the folded text, and for each of its characters the offset in the composed text."""
    if text.isascii():
        return text.translate(_TABLE), range(len(text) + 1)
    parts = [_TABLE[ord(character)] for character in text]
    places = [place for place, part in enumerate(parts) for _ in part]
    return "".join(parts), [*places, len(text)]


def is_unspaced(run: str) -> bool:
    return _unspaced_character().match(run) is not None


def runs_of(folded: str) -> list[str]:
    """Split at spaces, and between scripts with spaces and scripts without them."""
    return folded.split() if folded.isascii() else _runs().findall(folded)


def spans_of(folded: str) -> Iterator[tuple[str, int, int]]:
    """Yield each run with its begin and end."""
    for match in _runs().finditer(folded):
        yield match.group(), match.start(), match.end()


def marks_of(run: str) -> set[str]:
    """Return the index words of an unspaced run: its characters, and the marks of its pairs.

    Pairs share a few marks, because most pairs are rare and a word for each pair would make the
    index larger than the text. Hardly any wrong text has all the characters and all the marks.
    """
    codes = [ord(character) for character in run]
    pairs = {
        chr(_FIRST_MARK + ((first * 0x9E3779B1 + second * 0x85EBCA77 >> 12) & _MARKS))
        for first, second in pairwise(codes)
    }
    return pairs.union(run)


def words_of(text: str) -> set[str]:
    """Return all words by which the text can be found."""
    folded = fold(text)
    if folded.isascii():
        return {word[:LONGEST_WORD] for word in folded.split()}
    words: set[str] = set()
    for run in _runs().findall(folded):
        if is_unspaced(run):
            words |= marks_of(run)
        else:
            words.add(run[:LONGEST_WORD])
    return words
