"""The words of a text, as they are compared: without case, accents and signs.

It owns what a word is, for texts and for searches alike, so that every store and every index
agree. Scripts that set no spaces between words are kept by their characters, and by a mark for
each two that stand together.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

# Of longer ones (keys, encoded data) the beginning is enough to be found by.
LONGEST_WORD: Final = 40

# Thai to Myanmar, Khmer, kana with their signs, Han, Hangul, and the later planes of Han.
_UNSPACED: Final = (
    "\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Marks are characters for private use, which are in no word.
_FIRST_MARK: Final = 0xE000
_MARKS: Final = 0xFFF


# Made when they are first needed: so many ranges take milliseconds, which every start would pay.
@functools.cache
def _runs() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]+|[^ {_UNSPACED}]+")


@functools.cache
def _unspaced_one() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


class _Table(dict[int, str]):
    """What stands for each character; worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _folded(chr(code))
        return found


def _folded(sign: str) -> str:
    composed = unicodedata.normalize("NFKC", sign)
    if _unspaced_one().match(composed):
        return composed  # their marks make other letters of them
    plain = unicodedata.normalize("NFKD", sign).casefold()
    kept = [each for each in plain if not unicodedata.combining(each)]
    return "".join(each if unicodedata.category(each)[0] in "LNM" else " " for each in kept)


_TABLE: Final = _Table()


def fold(text: str) -> str:
    """The text with every word as it is compared, and a space for every other sign."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.translate(_TABLE)


def fold_with_places(text: str) -> tuple[str, list[int] | range]:
    """The same, and for each of its characters where in the (composed) text it comes from."""
    if text.isascii():
        return text.translate(_TABLE), range(len(text) + 1)
    parts = [_TABLE[ord(sign)] for sign in text]
    places = [place for place, part in enumerate(parts) for _ in part]
    return "".join(parts), [*places, len(text)]


def is_unspaced(run: str) -> bool:
    return _unspaced_one().match(run) is not None


def runs_of(folded: str) -> list[str]:
    """What stands between spaces, and between scripts that set spaces and those that do not."""
    return folded.split() if folded.isascii() else _runs().findall(folded)


def spans_of(folded: str) -> Iterator[tuple[str, int, int]]:
    """The same, each with where it begins and ends."""
    for match in _runs().finditer(folded):
        yield match.group(), match.start(), match.end()


def marks_of(run: str) -> set[str]:
    """All that an unspaced run is found by: its characters, and what stands for its pairs.

    Pairs share a few marks, because most pairs are rare and a word for each of them would make an
    index larger than the text. Together with the characters hardly a wrong text has them all.
    """
    codes = [ord(sign) for sign in run]
    pairs = {
        chr(_FIRST_MARK + ((first * 0x9E3779B1 + second * 0x85EBCA77 >> 12) & _MARKS))
        for first, second in pairwise(codes)
    }
    return pairs.union(run)


def words_of(text: str) -> set[str]:
    """All that the text can be found by."""
    folded = fold(text)
    if folded.isascii():
        return {word[:LONGEST_WORD] for word in folded.split()}
    found: set[str] = set()
    for run in _runs().findall(folded):
        if is_unspaced(run):
            found |= marks_of(run)
        else:
            found.add(run[:LONGEST_WORD])
    return found
