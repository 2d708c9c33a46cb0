"""What somebody searches for: whether a text fits, how well, and the place to show of it.

All words must be there. The last one may be the beginning of a word, because it may still be
typed, unless something follows it that is no word. It refuses to know where texts are kept.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from keryx.ports.store import Piece
from keryx.store.search.tokenizer import (
    LONGEST_WORD,
    fold,
    fold_with_places,
    is_unspaced,
    marks_of,
    runs_of,
    spans_of,
)

# More would only make one search slow.
MOST_WORDS: Final = 16
# How much is shown of a text, and how much of that stands before what was found.
SHOWN: Final = 160
SHOWN_BEFORE: Final = 40
# A text that repeats one word all over is marked up to here; no more of it is shown.
_MOST_FOUND: Final = 200

_SPACES: Final = re.compile(r"\s+")

_Span = tuple[int, int]


class Query:
    """The words that somebody searches for."""

    __slots__ = ("_begun", "_inside", "_needles", "_runs", "_together", "_whole", "terms")

    def __init__(self, words: str) -> None:
        folded = fold(words)
        self._runs = list(dict.fromkeys(runs_of(folded)))[:MOST_WORDS]
        self._inside = [run for run in self._runs if is_unspaced(run)]
        self._begun: tuple[str, ...] = ()
        spaced = [run for run in self._runs if not is_unspaced(run)]
        if spaced and spaced[-1] == self._runs[-1] and not folded.endswith(" "):
            self._begun = (spaced.pop()[:LONGEST_WORD],)
        # Of long ones only the beginning is known to an index.
        self._begun += tuple(run[:LONGEST_WORD] for run in spaced if len(run) >= LONGEST_WORD)
        self._whole = {run for run in spaced if len(run) < LONGEST_WORD}
        self.terms = sorted(self._whole.union(*map(marks_of, self._inside)))
        """Words that a text that fits has among its own (see `folding.words_of`)."""
        self._needles = [
            *(f" {run} " for run in self._whole),
            *(f" {run}" for run in self._begun),
            *self._inside,
        ]
        self._together = _all_together(self._runs)

    def __bool__(self) -> bool:
        return bool(self._runs)

    @property
    def beginnings(self) -> tuple[str, ...]:
        """Each of these begins one of its words too."""
        return self._begun

    def closeness(self, text: str) -> int | None:
        """How well a text fits: 0 if the words stand in it together as they were typed, 1 if they
        stand about in it or one is only begun, None if one of them is not in it."""
        joined = f" {' '.join(runs_of(fold(text)))} "
        for needle in self._needles:
            if needle not in joined:
                return None
        return 0 if self._together in joined else 1

    def snippet(self, text: str) -> tuple[Piece, ...]:
        """The part of the text that shows best what was found."""
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        folded, places = fold_with_places(text)
        first, spans = self._find(folded)
        marks = [(places[begin], places[end - 1] + 1) for begin, end in spans]
        at = places[first]
        begin = max(0, min(at - SHOWN_BEFORE, len(text) - SHOWN))
        end = min(len(text), begin + SHOWN)
        pieces = _cut(text, marks, begin, end)
        if begin:
            pieces.insert(0, Piece("…", False))
        if end < len(text):
            pieces.append(Piece("…", False))
        return tuple(_joined(pieces))

    def _find(self, folded: str) -> tuple[int, list[_Span]]:
        """Where the words stand, and which of the places is to be shown."""
        found: list[_Span] = []
        together: int | None = None
        before: list[tuple[str, int]] = []
        for run, begin, end in spans_of(folded):
            before = [*before, (run, begin)][-len(self._runs) :]
            if together is None and [each for each, _ in before] == self._runs:
                together = before[0][1]
            if run in self._whole or (self._begun and run.startswith(self._begun)):
                found.append((begin, end))
            elif self._inside and is_unspaced(run):
                found += _merged(self._places_in(run, begin))
            if len(found) >= _MOST_FOUND:
                break
        first = found[0][0] if found else 0
        return (first if together is None else together), found

    def _places_in(self, run: str, begin: int) -> list[_Span]:
        return [
            (begin + match.start(), begin + match.end())
            for wanted in self._inside
            for match in re.finditer(re.escape(wanted), run)
        ]


def _all_together(runs: list[str]) -> str:
    """How it stands in a text of runs with a space around each; an unspaced one may go on."""
    before = "" if not runs or is_unspaced(runs[0]) else " "
    after = "" if not runs or is_unspaced(runs[-1]) else " "
    return before + " ".join(runs) + after


def _merged(spans: list[_Span]) -> list[_Span]:
    found: list[_Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


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
    """Without empty ones, in one line, and each unlike the one before."""
    found: list[Piece] = []
    for piece in pieces:
        text = _SPACES.sub(" ", piece.text)
        if found and found[-1].found == piece.found:
            found[-1] = Piece(found[-1].text + text, piece.found)
        elif text:
            found.append(Piece(text, piece.found))
    return found
