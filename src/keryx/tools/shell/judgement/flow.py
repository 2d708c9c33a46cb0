"""What flows through a script: directories from command to command, text from pipe to pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from keryx.tools.shell.rules.actions import Argument

MOST_BASES = 6
"""Directories that are kept apart; with more of them, a command may run anywhere."""

Bases: TypeAlias = tuple[str | None, ...]
"""Directories that a command may run in, the likeliest first; `None` stands for anywhere."""


def merged(*several: Bases) -> Bases:
    """All of them, in order, each once."""
    found = tuple(dict.fromkeys(base for bases in several for base in bases))
    return found if len(found) <= MOST_BASES else (*found[: MOST_BASES - 1], None)


@dataclass(frozen=True, slots=True)
class After:
    """Where the shell may be after a command, by how that ended."""

    success: Bases
    failure: Bases

    @classmethod
    def staying(cls, bases: Bases) -> After:
        return cls(bases, bases)

    @property
    def either(self) -> Bases:
        return merged(self.success, self.failure)


@dataclass(frozen=True, slots=True)
class Feed:
    """What a command gets on its standard input."""

    piped: bool = False
    doubtful: bool = False
    """Whether it came over the network, or was made unreadable on purpose."""
    text: Argument | None = None
    file: Argument | None = None


NOTHING = Feed()
