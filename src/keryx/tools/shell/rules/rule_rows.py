"""The rows of the rule tables, and how a row becomes an action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, Level, Split, names, split

Role = Literal["text", "reads", "writes", "deletes", "copies", "moves", "links"]
"""The role of the operands. For copies, moves and links the last operand is the target."""

ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class RuleRow:
    """The rules of one command. Options are in one text, separated by spaces."""

    role: Role = "text"
    level: Level = "none"
    why: str = ""
    skip: int = 0
    """How many of the first operands are not paths: a pattern, a mode."""
    takes: str = ""
    """Options with a value that is not a path."""
    reading: str = ""
    """Options whose value is a path that is read. Any of them replaces the skipped operands."""
    writing: str = ""
    deep: str = ""
    """Options that make it read whole trees; "always" if it does so without an option."""
    shallow: bool = False
    """Whether it only lists, if it does not read whole trees."""
    empties: bool = False
    """Whether the files that it writes lose their content."""
    risky: Mapping[str, str] = field(default_factory=dict[str, str])
    """Options that make it high, and why."""
    network: bool = False
    here: bool = False
    """Whether it uses the current directory if it has no path."""


def action_of(row: RuleRow, arguments: Arguments) -> Action:
    """Return the action of the command with these arguments."""
    reading, writing = names(row.reading), names(row.writing)
    # An option for the pattern replaces the operand for it: `grep -e x file`.
    parts = split(arguments, names(row.takes) | reading | writing)
    operands = parts.operands
    skip = 0 if parts.has(*reading, "-e", "--regexp", "--reference") else row.skip
    reads, writes, deletes, links = _operands(row, operands[skip:], parts)
    level, why = row.level, row.why
    deep = row.deep == ALWAYS or parts.has(*names(row.deep))
    for option, reason in row.risky.items():
        if parts.has(option):
            level, why = "high", reason
    # A value that may be an option is not known to be harmless.
    loose = any(not argument.is_literal for argument in operands) and bool(row.risky or writing)
    if level == "none" and loose and row.role == "text":
        level, why = "low", "depends on a value that only the shell knows"
    return Action(
        level,
        why,
        changes=level != "none" and row.role != "reads",
        reads=(*reads, *parts.values(reading)),
        deep=deep,
        shallow=row.shallow and not deep,
        writes=(*writes, *parts.values(writing)),
        empties=row.empties and not parts.has("-a", "--append"),
        deletes=deletes,
        moves=row.role == "moves",
        links=links,
        network=row.network,
    )


def _operands(
    row: RuleRow, operands: Arguments, parts: Split
) -> tuple[Arguments, Arguments, Arguments, Arguments]:
    """Return the operands that are read, written, deleted, linked to."""
    paths: Arguments = tuple(argument for argument in operands if argument.text != "-")
    if row.here and not operands:
        paths = (Argument("."),)
    target: Arguments = ()
    if row.role in ("copies", "moves", "links") and not parts.values(names(row.writing)):
        # With one operand only, the target is the current directory.
        paths, target = (paths[:-1], paths[-1:]) if len(paths) > 1 else (paths, (Argument("."),))
    reads = paths if row.role in ("reads", "copies") else ()
    writes = paths if row.role == "writes" else target
    deletes = paths if row.role in ("deletes", "moves") else ()
    links = paths if row.role == "links" else ()
    return reads, writes, deletes, links
