"""Ends an answer at the first of some sequences, also where pieces or replies divide one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

Source = TypeVar("Source")


class StopSequences(Generic[Source]):
    """Passes on the text of an answer, up to the first stop sequence.

    The answer is the texts of its sources with `between` between them. The end of a piece that may
    be the beginning of a sequence is held back, also after its source has ended.
    """

    def __init__(self, sequences: Sequence[str], between: str) -> None:
        self._sequences = tuple(sequences)
        self._between = between
        self._sources: list[Source] = []
        """Those whose text is part of the answer, in order."""
        self._held: list[tuple[Source | None, str]] = []
        """Text that is held back, and its source; None: it stands between two sources."""
        self.is_reached = False

    def held(self, source: Source) -> int:
        """Return the number of characters of a source that are held back."""
        return sum(len(text) for owner, text in self._held if owner is source)

    def feed(self, source: Source, text: str) -> list[tuple[Source, str]]:
        """Return what can be shown now, each text with its source."""
        if not text:
            return []
        if not self._sources or self._sources[-1] is not source:
            if self._sources:
                self._held.append((None, self._between))
            self._sources.append(source)
        self._held.append((source, text))
        whole = "".join(text for _, text in self._held)
        ends = [at for sequence in self._sequences if (at := whole.find(sequence)) >= 0]
        if not ends:
            return self._take(len(whole) - self._beginning(whole))
        self.is_reached = True
        shown = self._take(min(ends))
        self._held.clear()
        return shown

    def drop(self, source: Source) -> None:
        """Forget the last source: another one takes its place in the answer."""
        if not self._sources or self._sources[-1] is not source:
            return
        self._sources.pop()
        while self._held and (self._held[-1][0] is source or self._held[-1][0] is None):
            self._held.pop()

    def flush(self) -> list[tuple[Source, str]]:
        """Return what is held back: the answer has ended."""
        return self._take(sum(len(text) for _, text in self._held))

    def _take(self, count: int) -> list[tuple[Source, str]]:
        shown: list[tuple[Source, str]] = []
        while count > 0:
            source, text = self._held.pop(0)
            if len(text) > count:
                self._held.insert(0, (source, text[count:]))
            if source is not None:
                shown.append((source, text[:count]))
            count -= len(text)
        return shown

    def _beginning(self, text: str) -> int:
        """Return the length of the longest end of the text that a sequence begins with."""
        longest = max((len(sequence) for sequence in self._sequences), default=1) - 1
        for length in range(min(longest, len(text)), 0, -1):
            if any(sequence.startswith(text[-length:]) for sequence in self._sequences):
                return length
        return 0
