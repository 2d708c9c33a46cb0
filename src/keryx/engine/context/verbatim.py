"""What stays word for word beside a summary, whatever the model that wrote it has left out. Pure.

That is what the person said, the plan, and the files that were changed. Each summary takes these
over from the one before it, so they survive any number of summaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from keryx import events as ev
from keryx.engine.context.window import BYTES_PER_TOKEN, item_tokens, text_tokens
from keryx.engine.log.fold import Fold
from keryx.engine.log.state import Delivered, HistoryItem, Replied
from keryx.messages import text_of

MOST_TOKENS: Final = 6_000
"""Of all that a person said; a window that is small gets less."""
WINDOW_SHARE: Final = 0.1
REPLACED_SHARE: Final = 0.25
LONGEST_MESSAGE: Final = 2_000
"""Characters of one message."""
MOST_FILES: Final = 60
PLAN_TOOL: Final = "todo"


def verbatim_limit(
    window: int | None, items: Iterable[HistoryItem], earlier: ev.ContextCompacted | None
) -> int:
    """Return how many characters there may be beside a summary of the items, for such a window.

    What an earlier summary has is not cut because little was added since.
    """
    before = 0 if earlier is None else text_tokens(verbatim_text(earlier.verbatim))
    tokens = min(MOST_TOKENS, int(sum(map(item_tokens, items)) * REPLACED_SHARE) + before)
    if window is not None:
        tokens = min(tokens, int(window * WINDOW_SHARE))
    return tokens * BYTES_PER_TOKEN


def collect(fold: Fold, up_to: int, limit: int) -> ev.Verbatim:
    """Return what stays of the history up to `up_to`, in about so many characters."""
    earlier = ev.Verbatim() if fold.compacted is None else fold.compacted.verbatim
    turn_id = None if fold.turn is None else fold.turn.turn_id
    words = {said.message_id: said for said in earlier.said}
    plan = earlier.plan
    for item in fold.history:
        if item.seq > up_to or item.turn_id in fold.undone:
            continue
        if isinstance(item, Replied):
            plan = _plan_of(item) or plan
        elif item.turn_id != turn_id:  # the messages of the current turn are sent anyway
            words[item.message.message_id] = _said(item)
    said, left_out = _within(list(words.values()), limit)
    return ev.Verbatim(
        said=said,
        left_out=earlier.left_out + left_out,
        plan=shortened(plan, limit // 4),
        files=tuple(fold.changed_files)[-MOST_FILES:],
    )


def verbatim_text(verbatim: ev.Verbatim) -> str:
    """Return it as text for a model; empty if there is nothing."""
    parts: list[str] = []
    if verbatim.said:
        lines = [f"- {said.text}" for said in verbatim.said]
        if verbatim.left_out:
            lines.insert(1, f"[… {verbatim.left_out} messages left out …]")
        parts.append("\n".join(["[what the person said before, word for word]", *lines]))
    if verbatim.plan:
        parts.append(f"[the plan]\n{verbatim.plan}")
    if verbatim.files:
        parts.append("\n".join(["[files that were changed]", *verbatim.files]))
    return "\n\n".join(parts)


def shortened(text: str, most: int) -> str:
    """Return the beginning and the end of a long text."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _said(item: Delivered) -> ev.Said:
    return ev.Said(item.message.message_id, shortened(item.message.text, LONGEST_MESSAGE))


def _plan_of(item: Replied) -> str:
    """Return the plan that the reply wrote; empty if it wrote none."""
    for call in reversed(item.reply.calls):
        result = item.results.get(call.call_id)
        if call.tool == PLAN_TOOL and result is not None and result.outcome == "completed":
            return text_of(result.result)
    return ""


def _within(words: Sequence[ev.Said], limit: int) -> tuple[tuple[ev.Said, ...], int]:
    """Return the first message, which tells what all of it is about, and the last ones."""
    if not words:
        return (), 0
    first, rest = words[0], list(words[1:])
    room = limit - len(first.text)
    latest: list[ev.Said] = []
    while rest and len(rest[-1].text) <= room:
        room -= len(rest[-1].text)
        latest.append(rest.pop())
    first = ev.Said(first.message_id, shortened(first.text, limit))
    return (first, *reversed(latest)), len(rest)
