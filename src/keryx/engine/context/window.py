"""Which part of the history is sent to a model, and an estimate of its tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import Image, Part, text_of

BYTES_PER_TOKEN: Final = 4
"""An estimate, used only for texts that no provider has counted yet."""
TOKENS_PER_IMAGE: Final = 1_000
"""An estimate."""


def recent_start(fold: Fold, up_to: int) -> int:
    """Return the index of the first history item that a summary up to `up_to` does not replace."""
    return bisect_right(fold.history, up_to, key=lambda item: item.seq)


def messages_before(fold: Fold, turn_id: str | None, up_to: int) -> list[Delivered]:
    """Return the messages of this turn up to `up_to`: a summary does not replace them."""
    return [
        item
        for item in fold.history[: recent_start(fold, up_to)]
        if isinstance(item, Delivered) and item.turn_id == turn_id
    ]


def sent_items(fold: Fold, turn_id: str | None, up_to: int) -> list[HistoryItem]:
    """Return the items that are sent with a summary that was made in this turn, up to `up_to`."""
    new = [
        item
        for item in fold.history[recent_start(fold, up_to) :]
        if item.turn_id not in fold.undone
    ]
    return [*messages_before(fold, turn_id, up_to), *new]


def expected_tokens(fold: Fold) -> int:
    """Estimate the tokens of the next request: the last count, plus what was added since."""
    compacted, added = fold.compacted, 0
    counted = 0 if compacted is None else compacted.seq
    for item in reversed(fold.history):
        if item.seq <= counted:
            break
        if isinstance(item, Replied) and item.reply.usage is not None:
            usage = item.reply.usage
            return usage.input_tokens + usage.output_tokens + added + _result_tokens(item)
        added += item_tokens(item)
    return added if compacted is None else added + compacted.tokens_after


def item_tokens(item: HistoryItem) -> int:
    """Estimate the tokens of a history item."""
    match item:
        case Delivered():
            memories = sum(text_tokens(memory.text) for memory in item.memories)
            message = text_tokens(item.message.text) + _part_tokens(item.message.attachments)
            return memories + message
        case Replied():
            arguments = sum(text_tokens(call.arguments) for call in item.reply.calls)
            return text_tokens(item.reply.text) + arguments + _result_tokens(item)


def text_tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return len(text.encode(errors="replace")) // BYTES_PER_TOKEN + 1


def _result_tokens(item: Replied) -> int:
    return sum(_part_tokens(result.result) for result in item.results.values())


def _part_tokens(parts: Iterable[Part]) -> int:
    return sum(
        TOKENS_PER_IMAGE if isinstance(part, Image) else text_tokens(text_of((part,)))
        for part in parts
    )
