"""What is to be summed up, chosen from the log and written out for a model to read. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from keryx import events as ev
from keryx.engine.context.prompt import shown
from keryx.engine.context.window import recent, weight
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import text_of
from keryx.ports.files import tool_path

LONGEST_PIECE: Final = 8_000
"""Characters of one message, argument or result that are told, if all fits so."""
SHORTEST_PIECE: Final = 250


class SummaryInput(msgspec.Struct, frozen=True):
    """The part of a history that a summary will stand for."""

    up_to: int
    items: tuple[HistoryItem, ...]
    earlier: ev.ContextCompacted | None
    """What stood for the part before it."""


def cut(fold: Fold, keep: float) -> SummaryInput | None:
    """All but this part of it, from its end; None if nothing is left to be summed up."""
    first = recent(fold, 0 if fold.compacted is None else fold.compacted.up_to)
    weights = [0 if i.turn_id in fold.undone else weight(i) for i in fold.history[first:]]
    left = keep * sum(weights)
    at = len(fold.history)
    while at > first:
        item = fold.history[at - 1]
        left -= weights.pop()
        # What is not over cannot be told.
        if left < 0 and not (isinstance(item, Replied) and not item.complete):
            break
        at -= 1
    items = tuple(item for item in fold.history[first:at] if item.turn_id not in fold.undone)
    turn_id = None if fold.turn is None else fold.turn.turn_id
    if all(isinstance(item, Delivered) and item.turn_id == turn_id for item in items):
        return None  # these stay word for word
    up_to = fold.last_seq if at == len(fold.history) else fold.history[at].seq - 1
    return SummaryInput(up_to, items, fold.compacted)


def told(cut: SummaryInput, room: int) -> str:
    """The part as a model reads it, in so many characters at most."""
    longest = LONGEST_PIECE
    text = _told(cut, longest)
    while len(text) > room and longest > SHORTEST_PIECE:
        longest //= 2
        text = _told(cut, longest)
    return _bounded(text, room)


def _told(cut: SummaryInput, longest: int) -> str:
    earlier = [] if cut.earlier is None else [f"## Summed up before\n{cut.earlier.summary}"]
    return "\n\n".join([*earlier, *(_item(item, longest) for item in cut.items)])


def _item(item: HistoryItem, longest: int) -> str:
    match item:
        case Delivered():
            files = [f"[attached: {tool_path(part)}]" for part in item.message.attachments]
            where = f"## Person (workspace {item.message.workspace})"
            return "\n".join([where, _bounded(item.message.text, longest), *files])
        case Replied():
            lines = ["## Agent"]
            lines += [_bounded(item.reply.text, longest)] if item.reply.text else []
            for call in item.reply.calls:
                lines.append(f"called {call.tool} {_bounded(call.arguments, longest)}")
                lines.append(f"-> {_bounded(text_of(shown(item.results[call.call_id])), longest)}")
            return "\n".join(lines)


def _bounded(text: str, most: int) -> str:
    """Its beginning and its end, which tells more than either."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
