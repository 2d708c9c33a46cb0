"""`todo`: the plan of a session. The log has it, and screens show the latest one."""

from __future__ import annotations

from typing import Any, Final

from keryx.errors import ToolFailedError
from keryx.ports.effects import uses
from keryx.ports.plan import PlanItem
from keryx.tools.function import tool

MOST_ITEMS: Final = 100
LONGEST_ITEM: Final = 500


def _items_preview(args: Any) -> str:
    return ", ".join(item.text for item in args.items)


@tool(effects=uses("plan"), replay="safe", preview=_items_preview)
async def todo(items: list[PlanItem]) -> Any:
    """Write down the plan for a task of several steps, and keep it up to date.

    Pass the whole plan each time; it replaces the last one. People see it while you work. Mark one
    item as "doing" before you begin with it, and as "done" as soon as it is.

    Args:
        items: The steps in order.
    """
    if len(items) > MOST_ITEMS:
        raise ToolFailedError(f"a plan has at most {MOST_ITEMS} items, not {len(items)}")
    if any(len(item.text) > LONGEST_ITEM for item in items):
        raise ToolFailedError(f"an item of a plan has at most {LONGEST_ITEM} characters")
    done = sum(item.status == "done" for item in items)
    return {"items": items, "done": done, "total": len(items)}
