"""What a summary stands for, and need not be kept in memory. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from keryx.engine.log.state import Delivered, HistoryItem
from keryx.events import ContextCompacted


def without_summed_up(
    history: Sequence[HistoryItem], summary: ContextCompacted
) -> tuple[list[HistoryItem], set[str]]:
    """The history that is sent beside the summary, and the turns that are not in it any more.

    What people said in the turn that it cuts through is not left to a summary.
    """
    count = bisect_right(history, summary.up_to, key=lambda item: item.seq)
    words = [item for item in history[:count] if _is_said_in(item, summary.turn_id)]
    kept = [*words, *history[count:]]
    gone = {item.turn_id for item in history[:count]} - {item.turn_id for item in kept}
    return kept, gone


def _is_said_in(item: HistoryItem, turn_id: str | None) -> bool:
    return isinstance(item, Delivered) and item.turn_id == turn_id
