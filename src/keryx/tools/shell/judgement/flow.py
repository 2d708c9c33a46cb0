"""What passes through a script: directories from command to command, text through pipes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from keryx.tools.shell.rules.actions import Argument

MAX_BASES = 6
"""The most directories that are tracked; with more of them, a command may run anywhere."""

Bases: TypeAlias = tuple[str | None, ...]
"""Directories that a command may run in, the likeliest first; `None` stands for anywhere."""


def merged(*several: Bases) -> Bases:
    """Return all directories in order, without duplicates."""
    unique = tuple(dict.fromkeys(base for bases in several for base in bases))
    return unique if len(unique) <= MAX_BASES else (*unique[: MAX_BASES - 1], None)


@dataclass(frozen=True, slots=True)
class After:
    """The directories after a command, if it succeeded and if it failed."""

    success: Bases
    failure: Bases

    @classmethod
    def unchanged(cls, bases: Bases) -> After:
        return cls(bases, bases)

    @property
    def either(self) -> Bases:
        return merged(self.success, self.failure)


@dataclass(frozen=True, slots=True)
class Input:
    """The standard input of a command."""

    piped: bool = False
    doubtful: bool = False
    """Whether it came over the network, or was encoded."""
    text: Argument | None = None
    file: Argument | None = None


NO_INPUT = Input()
