"""Groups what was used: by day, model, purpose, session or tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Literal, get_args

import msgspec

from keryx.ports.usage import ToolUse, UsageCell

Grouping = Literal["day", "model", "purpose", "session"]
"""How tokens and costs can be grouped; calls are grouped by tool."""
GROUPINGS: Final[tuple[Grouping, ...]] = get_args(Grouping)

DELETED: Final = "(deleted)"
"""The name of the sessions that are no more."""


class UsageGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of one group."""

    name: str
    requests: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: float | None
    """US dollars; None: at least one request has no known cost."""
    known_cost: float
    """The costs that are known."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class ToolGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of the calls of one tool."""

    name: str
    calls: int
    failed: int
    seconds: float


def day_of(at: float) -> str:
    """Return the day of a time in the local time zone, as YYYY-MM-DD."""
    return datetime.fromtimestamp(at).astimezone().date().isoformat()


_NAME: Final[dict[Grouping, Callable[[UsageCell], str]]] = {
    "day": lambda cell: day_of(cell.at),
    "model": lambda cell: cell.model,
    "purpose": lambda cell: cell.purpose,
    "session": lambda cell: cell.session_id or DELETED,
}


def group_usage(cells: Iterable[UsageCell], by: Grouping) -> list[UsageGroup]:
    """Return the sums of the groups, in the order of their names."""
    groups: dict[str, list[UsageCell]] = {}
    for cell in cells:
        groups.setdefault(_NAME[by](cell), []).append(cell)
    return [_sum(name, groups[name]) for name in sorted(groups)]


def group_tools(uses: Iterable[ToolUse]) -> list[ToolGroup]:
    """Return the sums of the tools, in the order of their names."""
    groups: dict[str, list[ToolUse]] = {}
    for use in uses:
        groups.setdefault(use.tool, []).append(use)
    return [
        ToolGroup(
            name=name,
            calls=sum(use.calls for use in groups[name]),
            failed=sum(use.failed for use in groups[name]),
            seconds=round(sum(use.seconds for use in groups[name]), 3),
        )
        for name in sorted(groups)
    ]


def _sum(name: str, cells: list[UsageCell]) -> UsageGroup:
    known_cost = sum(cell.cost for cell in cells)
    return UsageGroup(
        name=name,
        requests=sum(cell.requests for cell in cells),
        input_tokens=sum(cell.input_tokens for cell in cells),
        cached_tokens=sum(cell.cached_tokens for cell in cells),
        output_tokens=sum(cell.output_tokens for cell in cells),
        reasoning_tokens=sum(cell.reasoning_tokens for cell in cells),
        # If one cost is unknown, the sum is unknown; it must not look smaller than it is.
        cost=None if any(cell.unpriced for cell in cells) else known_cost,
        known_cost=known_cost,
    )
