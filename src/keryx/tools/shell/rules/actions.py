"""What a command does, as far as its words tell: the common language of all rules.

Rules say what is read, written, deleted and started. Whether that is bad depends on where, and
is not theirs to say, unless it is bad anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["none", "low", "high"]


@dataclass(frozen=True, slots=True)
class Argument:
    """A word as the command gets it."""

    text: str
    known: bool = True
    """Whether the text is the value; else it is what was written."""
    pattern: bool = False
    """Whether it stands for the files that match."""
    found: bool = False
    """Whether it stands for whatever a search or another command comes up with."""
    piped: bool = False
    """Whether it names a pipe to another command, `<(...)` or `>(...)`."""
    fetched: bool = False
    """Whether a command that uses the network makes its value."""
    splits: bool = False
    """Whether it may become any number of words, or none."""

    def after(self, start: int) -> Argument:
        """The same without its first characters: the value inside of `--option=value`."""
        return replace(self, text=self.text[start:])


Arguments: TypeAlias = tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Action:
    """What a command does."""

    level: Level = "none"
    why: str = ""
    changes: bool = False
    """Whether it may change anything, in ways that the fields below do not tell."""
    reads: Arguments = ()
    deep: bool = False
    """Whether it reads all that lies below the paths."""
    shallow: bool = False
    """Whether it reads no more than the names and sizes of what lies right below the paths."""
    writes: Arguments = ()
    empties: bool = False
    """Whether what it writes to loses what it held."""
    deletes: Arguments = ()
    moves: bool = False
    """Whether what it deletes is kept elsewhere."""
    links: Arguments = ()
    """What a new link would lead to."""
    network: bool = False
    hosts: tuple[str, ...] = ()
    signals: bool = False
    """Whether it ends processes by their numbers; behind walls those are its session's."""
    downloads: Arguments = ()
    """Files that hold what came over the network."""
    commands: tuple[Arguments, ...] = ()
    """Commands that it starts."""
    doubtful: tuple[Arguments, ...] = ()
    """Commands that it starts if its words mean other things than the rules think."""
    texts: Arguments = ()
    """Shell scripts, given as text, that it runs."""
    programs: Arguments = ()
    """Files that it runs."""
    code: Arguments = ()
    """Programs in other languages, given as text."""
    stdin: Literal["", "shell", "code", "statements"] = ""
    """What it takes its standard input for, if it is a program; statements are judged as if they
    were arguments."""
    assigns: tuple[tuple[str, Argument], ...] = ()
    """Variables that it sets for what it starts, or for the shell."""
    directory: Argument | None = None
    """Where it does all that."""
    enters: Argument | None = None
    """Where commands that follow are run."""
    pattern: str | None = ""
    """What consent to this command would cover; `None`: only itself, never its like."""
    opaque: bool = False
    """Whether it may start commands that nobody can name before it runs."""
    plain: Arguments = ()
    """Its words without the options that stand before its subcommand; empty: as they are."""


def low(why: str) -> Action:
    return Action("low", why, changes=True)


def high(why: str) -> Action:
    return Action("high", why, changes=True)


def opaque(why: str) -> Action:
    """A deed that is high because nobody can name what it starts."""
    return Action("high", why, changes=True, opaque=True)


Option: TypeAlias = tuple[str, Argument | None]


@dataclass(frozen=True, slots=True)
class Split:
    """Arguments, told apart."""

    options: tuple[Option, ...]
    operands: Arguments

    def has(self, *names: str) -> bool:
        return any(matches(given, name) for given, _ in self.options for name in names)

    def values(self, names: Collection[str]) -> Arguments:
        """The values of the options with these names."""
        return tuple(
            value
            for given, value in self.options
            if value is not None and any(matches(given, name) for name in names)
        )


def matches(given: str, name: str) -> bool:
    """Whether an option is meant: long ones may be cut short."""
    return given == name or (len(given) > len("--x") and name.startswith(given))


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def split(
    arguments: Sequence[Argument], takes: Collection[str] = (), *, until_operand: bool = False
) -> Split:
    """Tell options from operands; `takes` names the options that a value follows."""
    options: list[Option] = []
    operands: list[Argument] = []
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        text = argument.text
        if text == "--":
            operands.extend(reversed(rest))
            break
        if not text.startswith("-") or text == "-":
            operands.append(argument)
            if until_operand:
                operands.extend(reversed(rest))
                break
        elif text.startswith("--") or text in takes:
            name, equals, _ = text.partition("=")
            value = argument.after(len(name) + 1) if equals else None
            if not equals and rest and any(matches(name, one) for one in takes):
                value = rest.pop()
            options.append((name, value))
        else:
            options.extend(_cluster(argument, takes, rest))
    return Split(tuple(options), tuple(operands))


def _cluster(argument: Argument, takes: Collection[str], rest: list[Argument]) -> list[Option]:
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
            options.append((name, rest.pop() if rest else None))
        break
    return options
