"""A session's history as one model's bytes. Each message is encoded once and cached."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keryx.engine.context.prompt import messages_of, summary_message
from keryx.engine.context.window import messages_before, recent_start
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import File, Image, Message


class Transcript:
    """The encoded messages for one model. They are only appended to, until their base changes."""

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self._encode = encode
        self._bytes: list[bytes] = []
        self._leading: list[Delivered] = []
        """Messages that a summary does not replace; they come before the recent history."""
        self._items = 0
        self._base: tuple[int, int] = (0, 0)
        """How often turns were undone or restored, and the summary's seq: else start anew."""

    def new_attachments(self, fold: Fold) -> list[Image | File]:
        """Return the attachments of messages that are not encoded yet."""
        self._reset_if_changed(fold)
        new: list[HistoryItem] = [*self._leading, *fold.history[self._items :]]
        return [
            part for item in new if isinstance(item, Delivered) for part in item.message.attachments
        ]

    def new_media(self, fold: Fold) -> list[Image | File]:
        """Return the images that calls returned, of replies that are not encoded yet."""
        self._reset_if_changed(fold)
        return [
            part
            for item in fold.history[self._items :]
            if isinstance(item, Replied)
            for result in item.results.values()
            for part in result.result
            if isinstance(part, Image)
        ]

    def history(self, fold: Fold) -> Sequence[bytes]:
        """Return all messages, and encode those that are new. Every call in them has its result."""
        self._reset_if_changed(fold)
        for message in self._leading:
            self._bytes += map(self._encode, messages_of(message))
        self._leading = []
        for item in fold.history[self._items :]:
            if isinstance(item, Replied) and not item.complete:
                break
            self._items += 1
            if item.turn_id not in fold.undone:
                self._bytes += map(self._encode, messages_of(item))
        return self._bytes

    def _reset_if_changed(self, fold: Fold) -> None:
        """Start anew if there is a new summary, or a turn was undone."""
        compacted = fold.compacted
        base = (fold.branches.changes, 0 if compacted is None else compacted.seq)
        if base == self._base:
            return
        self._base, self._bytes, self._leading = base, [], []
        if compacted is not None:
            self._bytes.append(self._encode(summary_message(compacted)))
            self._leading = messages_before(fold, compacted.turn_id, compacted.up_to)
        self._items = recent_start(fold, 0 if compacted is None else compacted.up_to)
