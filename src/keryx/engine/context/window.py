"""Which part of the history a model is sent, and about how many tokens that is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import Image, Part, text_of

PER_TOKEN: Final = 4
"""Bytes, about. Only what no provider has counted yet is counted so."""
OF_A_PICTURE: Final = 1_000
"""Tokens, about."""


def recent(fold: Fold, up_to: int) -> int:
    """Where the part of the history begins that a summary up to there does not stand for."""
    return bisect_right(fold.history, up_to, key=lambda item: item.seq)


def kept_words(fold: Fold, turn_id: str | None, up_to: int) -> list[Delivered]:
    """What people said in the turn that a summary cuts through: that is not left to a summary."""
    return [
        item
        for item in fold.history[: recent(fold, up_to)]
        if isinstance(item, Delivered) and item.turn_id == turn_id
    ]


def sent(fold: Fold, turn_id: str | None, up_to: int) -> list[HistoryItem]:
    """All that a model is sent beside a summary that cuts through this turn, up to there."""
    new = [item for item in fold.history[recent(fold, up_to) :] if item.turn_id not in fold.undone]
    return [*kept_words(fold, turn_id, up_to), *new]


def expected(fold: Fold) -> int:
    """About how many tokens the next request will have: as last counted, and what came since."""
    compacted, grown = fold.compacted, 0
    counted = 0 if compacted is None else compacted.seq
    for item in reversed(fold.history):
        if item.seq <= counted:
            break
        if isinstance(item, Replied) and item.reply.usage is not None:
            usage = item.reply.usage
            return usage.input_tokens + usage.output_tokens + grown + _results(item)
        grown += weight(item)
    return grown if compacted is None else grown + compacted.tokens_after


def weight(item: HistoryItem) -> int:
    """About how many tokens it has."""
    match item:
        case Delivered():
            return weigh(item.message.text) + _parts(item.message.attachments)
        case Replied():
            asked = sum(weigh(call.arguments) for call in item.reply.calls)
            return weigh(item.reply.text) + asked + _results(item)


def weigh(text: str) -> int:
    """About how many tokens such a text has."""
    return len(text.encode(errors="replace")) // PER_TOKEN + 1


def _results(item: Replied) -> int:
    return sum(_parts(result.result) for result in item.results.values())


def _parts(parts: Iterable[Part]) -> int:
    return sum(
        OF_A_PICTURE if isinstance(part, Image) else weigh(text_of((part,))) for part in parts
    )
