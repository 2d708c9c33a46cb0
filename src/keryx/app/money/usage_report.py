"""Groups what was used: by day, model, purpose, session or tool; writes the groups as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from typing import Final, Literal, TypeVar, get_args

import msgspec

from keryx.ports.usage import ToolUse, TurnCount, UsageCell

Grouping = Literal["day", "model", "purpose", "session", "tool"]
"""Tokens and costs belong to no tool; calls belong to no model and to no purpose."""
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
    turns: int | None
    """Turns that ended; None by model and by purpose, because a turn belongs to none of them."""
    failed_turns: int | None
    """Those of them that failed."""
    first_token: float | None
    """The mean of the seconds until the first token; None: it is not known of any request."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class ToolGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of the calls of one tool."""

    name: str
    calls: int
    failed: int
    seconds: float


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was used in a period, in groups and in all."""

    by: Grouping
    usage: tuple[UsageGroup, ...]
    """Empty by tool."""
    tools: tuple[ToolGroup, ...]
    """The calls of each group; empty by model and by purpose."""
    total: UsageGroup
    all_tools: ToolGroup


Cell = TypeVar("Cell", UsageCell, ToolUse, TurnCount)


def report(
    by: Grouping,
    cells: Sequence[UsageCell],
    uses: Sequence[ToolUse],
    turns: Sequence[TurnCount],
    zone: tzinfo | None = None,
) -> UsageReport:
    """Return the groups in the order of their names. Days are those of `zone`; None: of here."""

    def day(cell: UsageCell | ToolUse | TurnCount) -> str:
        return day_of(cell.at, zone)

    def session(cell: UsageCell | ToolUse | TurnCount) -> str:
        return cell.session_id or DELETED

    names_of_usage: dict[Grouping, Callable[[UsageCell], str]] = {
        "day": day,
        "session": session,
        "model": lambda cell: cell.model,
        "purpose": lambda cell: cell.purpose,
    }
    names_of_calls: dict[Grouping, Callable[[ToolUse], str]] = {
        "day": day,
        "session": session,
        "tool": lambda use: use.tool,
    }
    names_of_turns: dict[Grouping, Callable[[TurnCount], str]] = {"day": day, "session": session}
    usage = dict(_grouped(cells, names_of_usage.get(by)))
    ended = dict(_grouped(turns, names_of_turns.get(by)))
    tools = _grouped(uses, names_of_calls.get(by))
    return UsageReport(
        by=by,
        usage=tuple(
            _sum(name, usage.get(name, ()), ended.get(name, ()) if by in names_of_turns else None)
            for name in sorted({*usage, *ended})
        ),
        tools=tuple(_sum_calls(name, group) for name, group in tools),
        total=_sum("", cells, turns),
        all_tools=_sum_calls("", uses),
    )


def day_of(at: float, zone: tzinfo | None = None) -> str:
    """Return the day of a time, as YYYY-MM-DD; without `zone` in the local time zone."""
    return datetime.fromtimestamp(at).astimezone(zone).date().isoformat()


def csv_of(groups: Sequence[UsageGroup] | Sequence[ToolGroup], by: Grouping) -> str:
    """Return the groups as CSV. An unknown cost is empty."""
    kind = ToolGroup if by == "tool" else UsageGroup
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([by, *kind.__struct_fields__[1:]])
    for group in groups:
        name, *values = msgspec.structs.astuple(group)
        # A spreadsheet would run a text that begins like a formula.
        is_formula = str(name).startswith(("=", "+", "-", "@", "\t", "\r"))
        writer.writerow([f"'{name}" if is_formula else name, *values])
    return text.getvalue()


def _grouped(
    cells: Iterable[Cell], name_of: Callable[[Cell], str] | None
) -> list[tuple[str, list[Cell]]]:
    """Return the cells by their names; nothing if they have none."""
    groups: dict[str, list[Cell]] = {}
    if name_of is not None:
        for cell in cells:
            groups.setdefault(name_of(cell), []).append(cell)
    return sorted(groups.items())


def _sum_calls(name: str, uses: Sequence[ToolUse]) -> ToolGroup:
    return ToolGroup(
        name=name,
        calls=sum(use.calls for use in uses),
        failed=sum(use.failed for use in uses),
        seconds=round(sum(use.seconds for use in uses), 3),
    )


def _sum(name: str, cells: Sequence[UsageCell], turns: Sequence[TurnCount] | None) -> UsageGroup:
    known_cost = sum(cell.cost for cell in cells)
    timed = sum(cell.timed for cell in cells)
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
        turns=None if turns is None else sum(count.turns for count in turns),
        failed_turns=None if turns is None else sum(count.failed for count in turns),
        first_token=sum(cell.first_seconds for cell in cells) / timed if timed else None,
    )
