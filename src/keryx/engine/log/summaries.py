"""Removes from a history what a summary replaces. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from keryx.engine.log.state import Delivered, HistoryItem
from keryx.events import ContextCompacted


def without_summarized(
    history: Sequence[HistoryItem], summary: ContextCompacted
) -> tuple[list[HistoryItem], set[str]]:
    """Return the history without what the summary replaces, and the turns that it lost.

    The messages of the turn in which the summary was made are kept.
    """
    count = bisect_right(history, summary.up_to, key=lambda item: item.seq)
    messages = [item for item in history[:count] if _is_message_of(item, summary.turn_id)]
    remaining = [*messages, *history[count:]]
    lost = {item.turn_id for item in history[:count]} - {item.turn_id for item in remaining}
    return remaining, lost


def _is_message_of(item: HistoryItem, turn_id: str | None) -> bool:
    return isinstance(item, Delivered) and item.turn_id == turn_id
