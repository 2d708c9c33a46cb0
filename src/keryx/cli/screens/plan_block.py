"""The plan of a session as a few lines, printed when it changes."""

from __future__ import annotations

from typing import Final

from keryx import events as ev
from keryx.ports.plan import PLAN_TOOL, Plan, PlanItem, plan_of

MOST_LINES: Final = 12
"""Items of a long plan that are shown: the last one that is done, and those after it."""
LONGEST: Final = 100
"""Characters of one item."""
MARKS: Final = {"done": "✓", "doing": "▶", "open": "·"}


class PlanBlock:
    """Turns events into the plan's lines, each plan once."""

    def __init__(self) -> None:
        self._last: Plan | None = None

    def covers(self, event: ev.Event) -> bool:
        """Return whether the block shows all that a line about this event would say."""
        return isinstance(event, ev.CallStarted) and event.tool == PLAN_TOOL

    def text(self, event: ev.Event) -> str:
        """Return the block if this event changed the plan, or an empty text."""
        plan = plan_of(event) if isinstance(event, ev.CallFinished) else None
        if plan is None or plan == self._last:
            return ""
        self._last = plan
        return plan_text(plan)


def plan_text(plan: Plan) -> str:
    items = plan.items
    done = sum(item.status == "done" for item in items)
    lines = [f"[plan: {done} of {len(items)} done]"]
    if len(items) <= MOST_LINES:
        return "\n".join([*lines, *map(_line, items)])
    first_left = next((n for n, item in enumerate(items) if item.status != "done"), len(items))
    start = min(max(first_left - 1, 0), len(items) - MOST_LINES)
    end = start + MOST_LINES
    before = [f"  … {start} before"] if start else []
    after = [f"  … {len(items) - end} more"] if end < len(items) else []
    return "\n".join([*lines, *before, *map(_line, items[start:end]), *after])


def _line(item: PlanItem) -> str:
    # A model writes the text: a terminal must not obey it.
    text = "".join(letter if letter.isprintable() else " " for letter in item.text)
    text = " ".join(text.split())
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return f"  {MARKS[item.status]} {shown}"
