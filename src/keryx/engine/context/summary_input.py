"""Selects the part of a history to summarize, and writes it as text for a model. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from keryx import events as ev
from keryx.engine.context.prompt import result_parts
from keryx.engine.context.verbatim import shortened
from keryx.engine.context.window import item_tokens, recent_start
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import text_of
from keryx.ports.files import tool_path

MOST_KEPT: Final = 2.0
"""How many times the part that is to be kept, so that a turn is kept as a whole."""
LONGEST_PIECE: Final = 8_000
"""Characters of one message, argument or result that are included, if the text fits."""
SHORTEST_PIECE: Final = 250


class SummaryInput(msgspec.Struct, frozen=True):
    """The part of a history that a summary will replace."""

    up_to: int
    items: tuple[HistoryItem, ...]
    earlier: ev.ContextCompacted | None
    """The summary of what came before this part."""


def select_input(fold: Fold, keep: float) -> SummaryInput | None:
    """Select all but the last part (`keep`, from 0 to 1); None if nothing can be summarized."""
    first = recent_start(fold, 0 if fold.compacted is None else fold.compacted.up_to)
    weights = [0 if i.turn_id in fold.undone else item_tokens(i) for i in fold.history[first:]]
    remaining = keep * sum(weights)
    at = len(fold.history)
    while at > first:
        item = fold.history[at - 1]
        remaining -= weights.pop()
        # A reply whose calls still run cannot be summarized.
        if remaining < 0 and not (isinstance(item, Replied) and not item.complete):
            break
        at -= 1
    at = _turn_boundary(fold, first, at, keep)
    items = tuple(item for item in fold.history[first:at] if item.turn_id not in fold.undone)
    turn_id = None if fold.turn is None else fold.turn.turn_id
    if all(isinstance(item, Delivered) and item.turn_id == turn_id for item in items):
        return None  # messages of the current turn are never summarized
    up_to = fold.last_seq if at == len(fold.history) else fold.history[at].seq - 1
    return SummaryInput(up_to, items, fold.compacted)


def _turn_boundary(fold: Fold, first: int, at: int, keep: float) -> int:
    """Return where to cut so that a turn is kept or summarized as a whole.

    Only the running turn is cut in two: a long one needs that.
    """
    if at == len(fold.history) or at <= first:
        return at
    turn_id = fold.history[at].turn_id
    if fold.turn is not None and fold.turn.turn_id == turn_id:
        return at
    start = end = at
    while start > first and fold.history[start - 1].turn_id == turn_id:
        start -= 1
    while end < len(fold.history) and fold.history[end].turn_id == turn_id:
        end += 1
    weights = [0 if i.turn_id in fold.undone else item_tokens(i) for i in fold.history[first:]]
    return start if sum(weights[start - first :]) <= MOST_KEPT * keep * sum(weights) else end


def render(chosen: SummaryInput, limit: int) -> str:
    """Return the part as text for a model, in at most so many characters."""
    longest = LONGEST_PIECE
    text = _render(chosen, longest)
    while len(text) > limit and longest > SHORTEST_PIECE:
        longest //= 2
        text = _render(chosen, longest)
    return shortened(text, limit)


def _render(chosen: SummaryInput, longest: int) -> str:
    earlier = [] if chosen.earlier is None else [f"## Summed up before\n{chosen.earlier.summary}"]
    return "\n\n".join([*earlier, *(_render_item(item, longest) for item in chosen.items)])


def _render_item(item: HistoryItem, longest: int) -> str:
    match item:
        case Delivered():
            files = [f"[attached: {tool_path(part)}]" for part in item.message.attachments]
            heading = f"## Person (workspace {item.message.workspace})"
            return "\n".join([heading, shortened(item.message.text, longest), *files])
        case Replied():
            lines = ["## Agent"]
            lines += [shortened(item.reply.text, longest)] if item.reply.text else []
            for call in item.reply.calls:
                lines.append(f"called {call.tool} {shortened(call.arguments, longest)}")
                lines.append(
                    f"-> {shortened(text_of(result_parts(item.results[call.call_id])), longest)}"
                )
            return "\n".join(lines)
