"""What the model does not get of a history: what a summary replaces, and undone turns. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from keryx.engine.log.state import Delivered, HistoryItem
from keryx.events import ContextCompacted, MessageAccepted, TurnRestored, TurnUndone


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


class Branches:
    """Which turns were undone, and which of them replaced each other."""

    def __init__(self) -> None:
        self.undone: set[str] = set()
        self.changes = 0
        """How often a turn was undone or restored."""
        self.restores = 0
        self._branch: dict[str, str] = {}
        """For an undone turn, the replaced turn that it can be restored with."""
        self._variants: dict[str, list[str]] = {}
        """For each of the turns that replaced each other, all of them: the same list."""

    def note(self, event: TurnUndone | TurnRestored) -> None:
        self.changes += 1
        self._branch.pop(event.turn_id, None)
        if isinstance(event, TurnRestored):
            self.undone.discard(event.turn_id)
            self.restores += 1
            return
        self.undone.add(event.turn_id)
        if event.branch is not None:
            self._branch[event.turn_id] = event.branch

    def note_message(self, event: MessageAccepted) -> None:
        if event.variants:
            variants = self._variants.get(event.variants[0]) or list(event.variants)
            variants.append(event.turn_id)
            self._variants.update(dict.fromkeys(variants, variants))

    def variants(self, turn_id: str) -> tuple[str, ...]:
        """Return the turns that replaced each other, this one among them, oldest first."""
        return tuple(self._variants.get(turn_id, (turn_id,)))

    def restorable(self, turn_id: str) -> list[str]:
        """Return the turns that come back together with this one, in no order."""
        return [turn for turn, branch in self._branch.items() if branch == turn_id]
