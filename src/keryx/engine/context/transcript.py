"""A session's history as one model's bytes. Each message is encoded once, and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keryx.engine.context.prompt import messages_of, summary_message
from keryx.engine.context.window import kept_words, recent
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import File, Image, Message


class Transcript:
    """What one model is sent of a session; it only grows, until what it began with changes."""

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self._encode = encode
        self._bytes: list[bytes] = []
        self._first: list[Delivered] = []
        """What comes before the items that follow each other in the history."""
        self._items = 0
        self._begun: tuple[int, int] = (0, 0)
        """How many turns were undone, and which summary stands at the beginning."""

    def coming(self, fold: Fold) -> list[Image | File]:
        """The attachments of messages that are not encoded yet."""
        self._begin(fold)
        new: list[HistoryItem] = [*self._first, *fold.history[self._items :]]
        return [
            part for item in new if isinstance(item, Delivered) for part in item.message.attachments
        ]

    def history(self, fold: Fold) -> Sequence[bytes]:
        """All messages, encoding only those that are new. Every call in it has its result."""
        self._begin(fold)
        for words in self._first:
            self._bytes += map(self._encode, messages_of(words))
        self._first = []
        for item in fold.history[self._items :]:
            if isinstance(item, Replied) and not item.complete:
                break
            self._items += 1
            if item.turn_id not in fold.undone:
                self._bytes += map(self._encode, messages_of(item))
        return self._bytes

    def _begin(self, fold: Fold) -> None:
        """Anew, if a summary stands for the beginning now, or something was undone."""
        compacted = fold.compacted
        begun = (len(fold.undone), 0 if compacted is None else compacted.seq)
        if begun == self._begun:
            return
        self._begun, self._bytes, self._first = begun, [], []
        if compacted is not None:
            self._bytes.append(self._encode(summary_message(compacted)))
            self._first = kept_words(fold, compacted.turn_id, compacted.up_to)
        self._items = recent(fold, 0 if compacted is None else compacted.up_to)
