"""The words of a search: whether a text matches, how well, and the snippet to show of it.

A text must have all words. The last one may be the beginning of a word, because a person may
still type, unless a space or sign follows it. It refuses to know where texts are stored.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from keryx.ports.search import Piece
from keryx.store.search.tokenizer import (
    LONGEST_WORD,
    fold,
    fold_with_places,
    is_unspaced,
    marks_of,
    runs_of,
    spans_of,
)

# More words would only make a search slow.
MAX_WORDS: Final = 16
# The length of a snippet, and how much of it stands before the first match.
SNIPPET_LENGTH: Final = 160
SNIPPET_BEFORE: Final = 40
# In a text that repeats a word only so many matches are marked; a snippet shows no more.
_MAX_MARKS: Final = 200

_SPACES: Final = re.compile(r"\s+")

_Span = tuple[int, int]


class Query:
    """The words that somebody searches for."""

    __slots__ = ("_full_words", "_needles", "_phrase", "_prefixes", "_runs", "_unspaced", "terms")

    def __init__(self, words: str) -> None:
        folded = fold(words)
        self._runs = list(dict.fromkeys(runs_of(folded)))[:MAX_WORDS]
        self._unspaced = [run for run in self._runs if is_unspaced(run)]
        self._prefixes: tuple[str, ...] = ()
        spaced = [run for run in self._runs if not is_unspaced(run)]
        if spaced and spaced[-1] == self._runs[-1] and not folded.endswith(" "):
            self._prefixes = (spaced.pop()[:LONGEST_WORD],)
        # The index has only the beginning of long words.
        self._prefixes += tuple(run[:LONGEST_WORD] for run in spaced if len(run) >= LONGEST_WORD)
        self._full_words = {run for run in spaced if len(run) < LONGEST_WORD}
        self.terms = sorted(self._full_words.union(*map(marks_of, self._unspaced)))
        """Words that every matching text has (see `tokenizer.words_of`)."""
        self._needles = [
            *(f" {run} " for run in self._full_words),
            *(f" {run}" for run in self._prefixes),
            *self._unspaced,
        ]
        self._phrase = _phrase_of(self._runs)

    def __bool__(self) -> bool:
        return bool(self._runs)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The beginnings of words that every matching text has too."""
        return self._prefixes

    def rank(self, text: str) -> int | None:
        """Return how well a text matches: 0 if it has the words together as they were typed, 1 if
        it has them apart or has a longer word, None if one of them is missing."""
        joined = f" {' '.join(runs_of(fold(text)))} "
        for needle in self._needles:
            if needle not in joined:
                return None
        return 0 if self._phrase in joined else 1

    def snippet(self, text: str) -> tuple[Piece, ...]:
        """Return the part of the text that shows the matches best."""
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        folded, places = fold_with_places(text)
        first, spans = self._find(folded)
        marks = [(places[begin], places[end - 1] + 1) for begin, end in spans]
        at = places[first]
        begin = max(0, min(at - SNIPPET_BEFORE, len(text) - SNIPPET_LENGTH))
        end = min(len(text), begin + SNIPPET_LENGTH)
        pieces = _cut(text, marks, begin, end)
        if begin:
            pieces.insert(0, Piece("…", False))
        if end < len(text):
            pieces.append(Piece("…", False))
        return tuple(_joined(pieces))

    def _find(self, folded: str) -> tuple[int, list[_Span]]:
        """Return where the snippet should begin, and the places of all matches."""
        spans: list[_Span] = []
        phrase_start: int | None = None
        last_runs: list[tuple[str, int]] = []
        for run, begin, end in spans_of(folded):
            last_runs = [*last_runs, (run, begin)][-len(self._runs) :]
            if phrase_start is None and [word for word, _ in last_runs] == self._runs:
                phrase_start = last_runs[0][1]
            if run in self._full_words or (self._prefixes and run.startswith(self._prefixes)):
                spans.append((begin, end))
            elif self._unspaced and is_unspaced(run):
                spans += _merge_overlaps(self._places_in(run, begin))
            if len(spans) >= _MAX_MARKS:
                break
        first = spans[0][0] if spans else 0
        return (first if phrase_start is None else phrase_start), spans

    def _places_in(self, run: str, begin: int) -> list[_Span]:
        return [
            (begin + match.start(), begin + match.end())
            for word in self._unspaced
            for match in re.finditer(re.escape(word), run)
        ]


def _phrase_of(runs: list[str]) -> str:
    """Return the words as they stand in a folded text; an unspaced run may go on at both ends."""
    before = "" if not runs or is_unspaced(runs[0]) else " "
    after = "" if not runs or is_unspaced(runs[-1]) else " "
    return before + " ".join(runs) + after


def _merge_overlaps(spans: list[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _cut(text: str, marks: list[_Span], begin: int, end: int) -> list[Piece]:
    pieces: list[Piece] = []
    at = begin
    for mark_begin, mark_end in marks:
        start, stop = max(mark_begin, at), min(mark_end, end)
        if start < stop:
            pieces += [Piece(text[at:start], False), Piece(text[start:stop], True)]
            at = stop
    pieces.append(Piece(text[at:end], False))
    return pieces


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Join neighbours of the same kind, drop empty pieces and put all in one line."""
    joined: list[Piece] = []
    for piece in pieces:
        text = _SPACES.sub(" ", piece.text)
        if joined and joined[-1].found == piece.found:
            joined[-1] = Piece(joined[-1].text + text, piece.found)
        elif text:
            joined.append(Piece(text, piece.found))
    return joined
