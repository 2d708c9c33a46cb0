"""Tables of usage as plain text, with bars where a person reads them. No colours."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Final, TextIO

from keryx.app.money.usage_report import ToolGroup, UsageGroup
from keryx.cli.chatting.pieces import printable

UNKNOWN: Final = "unknown"
EIGHTHS: Final = " ▏▎▍▌▋▊▉"
SHORTEST_BAR: Final = 8
LONGEST_BAR: Final = 40
NAME: Final = 32
"""Characters of a name, where there is room."""
SHORTEST_NAME: Final = 10


def usage_table(by: str, groups: Sequence[UsageGroup], out: TextIO) -> list[str]:
    """Return the lines of a table of tokens and costs. The bars show costs if all are known."""
    columns = [
        ("input", [f"{group.input_tokens:,}" for group in groups]),
        ("cached", [f"{group.cached_tokens:,}" for group in groups]),
        ("output", [f"{group.output_tokens:,}" for group in groups]),
        ("reasoning", [f"{group.reasoning_tokens:,}" for group in groups]),
        ("turns", [f"{group.turns:,}" for group in groups if group.turns is not None]),
        ("failed", [f"{group.failed_turns:,}" for group in groups if group.turns is not None]),
        ("cost", [_cost(group) for group in groups]),
    ]
    # A turn belongs to no model and to no purpose.
    columns = [column for column in columns if column[1]]
    are_priced = all(group.cost is not None for group in groups)
    is_free = not any(group.known_cost for group in groups)
    values = [
        group.known_cost if are_priced and not is_free else float(group.tokens) for group in groups
    ]
    # In a narrow terminal the parts of other columns are left out first.
    optional = ("reasoning", "cached", "turns", "failed")
    return _table(by, [group.name for group in groups], columns, values, out, optional)


def tool_table(groups: Sequence[ToolGroup], out: TextIO) -> list[str]:
    """Return the lines of a table of calls. The bars show their number."""
    columns = [
        ("calls", [f"{group.calls:,}" for group in groups]),
        ("failed", [f"{group.failed:,}" for group in groups]),
        ("seconds", [f"{group.seconds:,.1f}" for group in groups]),
    ]
    values = [float(group.calls) for group in groups]
    return _table("tool", [group.name for group in groups], columns, values, out, ())


def _cost(group: UsageGroup) -> str:
    return UNKNOWN if group.cost is None else f"${group.cost:.4f}"


Columns = Sequence[tuple[str, Sequence[str]]]


def _table(
    title: str,
    names: Sequence[str],
    columns: Columns,
    values: Sequence[float],
    out: TextIO,
    optional: Sequence[str],
) -> list[str]:
    if not out.isatty():
        return _lines(title, names, columns, NAME, [12] * (len(columns) - 1) + [10])
    room = shutil.get_terminal_size().columns - 1
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns}
    for least in optional:
        if SHORTEST_NAME + sum(widths[name] + 1 for name, _ in columns) > room:
            columns = [column for column in columns if column[0] != least]
    numbers = [widths[name] for name, _ in columns]
    left = room - sum(number + 1 for number in numbers)
    longest_name = max(len(title), *map(len, names))
    name_width = max(SHORTEST_NAME, min(longest_name, NAME, left))
    lines = _lines(title, names, columns, name_width, numbers)
    bar = min(LONGEST_BAR, left - name_width - 2)
    if bar < SHORTEST_BAR or not any(values):
        return lines
    head, *rows = lines
    most = max(values)
    return [
        head,
        *(
            f"{row}  {_bar(value / most, bar)}".rstrip()
            for row, value in zip(rows, values, strict=True)
        ),
    ]


def _lines(
    title: str, names: Sequence[str], columns: Columns, width: int, numbers: Sequence[int]
) -> list[str]:
    rows = [[name for name, _ in columns], *zip(*(cells for _, cells in columns), strict=True)]
    return [
        f"{_fitted(name, width)} "
        + " ".join(f"{cell:>{number}}" for cell, number in zip(row, numbers, strict=True))
        for name, row in zip((title, *names), rows, strict=True)
    ]


def _fitted(name: str, width: int) -> str:
    """Return the name in this width; a pipe gets it whole."""
    text = printable(name)
    return f"{text[: width - 1]}…" if len(text) > width != NAME else f"{text:<{width}}"


def _bar(share: float, width: int) -> str:
    """Return a bar of blocks; anything but nothing has a mark."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (EIGHTHS[rest] if rest else "")
