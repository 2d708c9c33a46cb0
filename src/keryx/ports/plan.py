"""The plan of a session, as the tool `todo` writes it and as screens show it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from keryx.decoding import decode_json
from keryx.events import CallFinished, LoggedEvent
from keryx.messages import Json

PLAN_TOOL: Final = "todo"
"""The tool whose last completed call holds the plan."""


class PlanItem(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the plan.

    Attributes:
        text: What is to be done.
        status: open, doing or done.
    """

    text: str
    status: Literal["open", "doing", "done"] = "open"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a plan in order."""

    items: tuple[PlanItem, ...]


class NewestPlan(msgspec.Struct, frozen=True):
    """The plan that a session's last call of `todo` wrote; no items: there is none."""

    items: tuple[PlanItem, ...] = ()
    seq: int = 0
    """The event that the plan comes from."""


def plan_of(event: LoggedEvent) -> Plan | None:
    """Return the plan that this event holds; None if it is not the end of a call that wrote one."""
    if not isinstance(event, CallFinished) or event.tool != PLAN_TOOL:
        return None
    if event.outcome != "completed":
        return None
    for part in event.result:
        if isinstance(part, Json):
            try:
                return decode_json(part.value, Plan)
            except msgspec.ValidationError:
                return None  # another tool of that name, in a log of another program
    return None
