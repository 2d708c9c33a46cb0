"""The order of results: by meaning, with one of five places for the best by words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LEXICAL_PLACE: Final = 5
"""Every fifth place is for the words: names, numbers and rare words have little meaning."""


def ordered(by_meaning: Sequence[int], by_words: Sequence[int], limit: int) -> list[int]:
    """Return the texts of both lists, each once, in the order that they are shown.

    The ranks are not fused: a text that shares only frequent words with the question would then
    stand before one that means the same.
    """
    chosen: dict[int, None] = {}
    meaning, words = iter(by_meaning), iter(by_words)
    while len(chosen) < limit:
        sources = (
            [words, meaning]
            if len(chosen) % LEXICAL_PLACE == LEXICAL_PLACE - 1
            else [meaning, words]
        )
        candidates = (no for source in sources for no in source if no not in chosen)
        best = next(candidates, None)
        if best is None:
            break
        chosen[best] = None
    return list(chosen)
