"""What a command does according to its words: the data that all rules return.

Rules say what is read, written, deleted and started. They do not judge where it happens, unless it
is bad anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["none", "low", "high"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a command."""

    text: str
    is_literal: bool = True
    """Whether the text is the value; else it is the source, and only the shell knows the value."""
    pattern: bool = False
    """Whether it is a pattern for files."""
    from_search: bool = False
    """Whether its value is the result of a search or of another command."""
    piped: bool = False
    """Whether it is a pipe to another command, `<(...)` or `>(...)`."""
    fetched: bool = False
    """Whether its value comes from a command that uses the network."""
    splits: bool = False
    """Whether it may become any number of words, or none."""

    def after(self, start: int) -> Argument:
        """Return the argument without its first characters: the value in `--option=value`."""
        return replace(self, text=self.text[start:])


Arguments: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Action:
    """What a command does."""

    level: Level = "none"
    why: str = ""
    changes: bool = False
    """Whether it may change anything in ways that the fields below do not describe."""
    reads: Arguments = ()
    deep: bool = False
    """Whether it reads everything below the paths."""
    shallow: bool = False
    """Whether it only lists names and sizes directly below the paths."""
    writes: Arguments = ()
    empties: bool = False
    """Whether the files that it writes lose their content."""
    deletes: Arguments = ()
    moves: bool = False
    """Whether the deleted files are moved to another place."""
    links: Arguments = ()
    """The targets of new links."""
    network: bool = False
    hosts: tuple[str, ...] = ()
    signals: bool = False
    """Whether it ends processes by number; a confined command reaches those of its session only."""
    downloads: Arguments = ()
    """Files that get data from the network."""
    commands: tuple[Arguments, ...] = ()
    """Commands that it starts."""
    doubtful: tuple[Arguments, ...] = ()
    """Commands that it may start, if its words mean something that the rules do not know."""
    texts: Arguments = ()
    """Shell scripts that it runs, given as text."""
    programs: Arguments = ()
    """Files that it runs."""
    code: Arguments = ()
    """Programs in other languages, given as text."""
    stdin: Literal["", "shell", "code", "statements"] = ""
    """How it runs its standard input, if it does; statements are judged like arguments."""
    assigns: tuple[tuple[str, Argument], ...] = ()
    """Variables that it sets for the commands that it starts, or for the shell."""
    directory: Argument | None = None
    """The directory in which it does all that."""
    enters: Argument | None = None
    """The directory in which the following commands run."""
    pattern: str | None = ""
    """What consent to this command would cover; None: only this single call."""
    opaque: bool = False
    """Whether it may start commands that are unknown before it runs."""
    plain: Arguments = ()
    """Its words without the options before its subcommand; empty: the same words."""


def low(why: str) -> Action:
    return Action("low", why, changes=True)


def high(why: str) -> Action:
    return Action("high", why, changes=True)


def opaque(why: str) -> Action:
    """Return an action that is high because it starts unknown commands."""
    return Action("high", why, changes=True, opaque=True)


Option: TypeAlias = tuple[str, Argument | None]


@dataclass(frozen=True, slots=True)
class Split:
    """Arguments, split into options and operands."""

    options: tuple[Option, ...]
    operands: Arguments

    def has(self, *names: str) -> bool:
        return any(matches(option, name) for option, _ in self.options for name in names)

    def values(self, names: Collection[str]) -> Arguments:
        """Return the values of the options with these names."""
        return tuple(
            value
            for option, value in self.options
            if value is not None and any(matches(option, name) for name in names)
        )


def matches(option: str, name: str) -> bool:
    """Return whether the option has this name; long options may be abbreviated."""
    return option == name or (len(option) > len("--x") and name.startswith(option))


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def split(
    arguments: Sequence[Argument], takes: Collection[str] = (), *, until_operand: bool = False
) -> Split:
    """Separate options from operands; `takes` names the options that have a value."""
    options: list[Option] = []
    operands: list[Argument] = []
    remaining = list(reversed(arguments))
    while remaining:
        argument = remaining.pop()
        text = argument.text
        if text == "--":
            operands.extend(reversed(remaining))
            break
        if not text.startswith("-") or text == "-":
            operands.append(argument)
            if until_operand:
                operands.extend(reversed(remaining))
                break
        elif text.startswith("--") or text in takes:
            name, equals, _ = text.partition("=")
            value = argument.after(len(name) + 1) if equals else None
            if not equals and remaining and any(matches(name, option) for option in takes):
                value = remaining.pop()
            options.append((name, value))
        else:
            options.extend(_cluster(argument, takes, remaining))
    return Split(tuple(options), tuple(operands))


def _cluster(argument: Argument, takes: Collection[str], remaining: list[Argument]) -> list[Option]:
    options: list[Option] = []
    for index, letter in enumerate(argument.text[1:], 1):
        name = "-" + letter
        if name not in takes:
            options.append((name, None))
            continue
        value = argument.after(index + 1)
        if value.text:
            options.append((name, value))
        else:
            options.append((name, remaining.pop() if remaining else None))
        break
    return options
