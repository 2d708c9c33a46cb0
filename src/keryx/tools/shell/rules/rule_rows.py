"""How a table says what a command does, and how a line of it becomes a deed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, Level, Split, names, split

Role = Literal["text", "reads", "writes", "deletes", "copies", "moves", "links"]
"""What the operands are. The last operand of those that copy, move and link is where to."""

ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class RuleRow:
    """What is known of one command. Options are named in one text, with spaces between."""

    role: Role = "text"
    level: Level = "none"
    why: str = ""
    skip: int = 0
    """How many operands come first that are no paths: a pattern, a mode."""
    takes: str = ""
    """Options that a value follows which is no path."""
    reading: str = ""
    """Options whose value is a path that is read. Any of them stands in for the skipped ones."""
    writing: str = ""
    deep: str = ""
    """Options that make it read whole trees; "always" if none is needed."""
    shallow: bool = False
    """Whether it only lists, unless it reads whole trees."""
    empties: bool = False
    """Whether what it writes to loses what it held."""
    risky: Mapping[str, str] = field(default_factory=dict[str, str])
    """Options that make it high, and why."""
    network: bool = False
    here: bool = False
    """Whether it works on the directory that it runs in, if it is given no path."""


def action_of(fact: RuleRow, arguments: Arguments) -> Action:
    """What the command does when it gets these arguments."""
    reading, writing = names(fact.reading), names(fact.writing)
    # The bare options that take a pattern stand in for it: `grep -e x file`.
    parts = split(arguments, names(fact.takes) | reading | writing)
    operands = parts.operands
    skip = 0 if parts.has(*reading, "-e", "--regexp", "--reference") else fact.skip
    reads, writes, deletes, links = _operands(fact, operands[skip:], parts)
    level, why = fact.level, fact.why
    deep = fact.deep == ALWAYS or parts.has(*names(fact.deep))
    for option, reason in fact.risky.items():
        if parts.has(option):
            level, why = "high", reason
    # A value that may turn out to be an option is not known to be harmless.
    loose = any(not one.known for one in operands) and bool(fact.risky or writing)
    if level == "none" and loose and fact.role == "text":
        level, why = "low", "depends on a value that only the shell knows"
    return Action(
        level,
        why,
        changes=level != "none" and fact.role != "reads",
        reads=(*reads, *parts.values(reading)),
        deep=deep,
        shallow=fact.shallow and not deep,
        writes=(*writes, *parts.values(writing)),
        empties=fact.empties and not parts.has("-a", "--append"),
        deletes=deletes,
        moves=fact.role == "moves",
        links=links,
        network=fact.network,
    )


def _operands(
    fact: RuleRow, operands: Arguments, parts: Split
) -> tuple[Arguments, Arguments, Arguments, Arguments]:
    """What of the operands is read, written, deleted, linked to."""
    paths: Arguments = tuple(one for one in operands if one.text != "-")
    if fact.here and not operands:
        paths = (Argument("."),)
    target: Arguments = ()
    if fact.role in ("copies", "moves", "links") and not parts.values(names(fact.writing)):
        # With one operand only, the target is the directory that the command runs in.
        paths, target = (paths[:-1], paths[-1:]) if len(paths) > 1 else (paths, (Argument("."),))
    reads = paths if fact.role in ("reads", "copies") else ()
    writes = paths if fact.role == "writes" else target
    deletes = paths if fact.role in ("deletes", "moves") else ()
    links = paths if fact.role == "links" else ()
    return reads, writes, deletes, links
