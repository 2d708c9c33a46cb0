"""What a judgement is gathered from: reasons, needs, and what consent would cover."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from keryx.tools.shell.rules.actions import Arguments, Level

_ORDER: tuple[Level, ...] = ("none", "low", "high")
MOST_REASONS = 3
"""Reasons that a person is told; more would not be read."""


def higher(one: Level, other: Level) -> Level:
    return one if _ORDER.index(one) > _ORDER.index(other) else other


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a confined command does not have by itself."""

    kind: Literal["network", "read", "write"]
    name: str = ""
    """The path; or the host, empty if it cannot be told."""


@dataclass(slots=True)
class Findings:
    """Grows while a script is read; belongs to one judgement."""

    level: Level = "none"
    changes: bool = False
    reasons: dict[tuple[Level, str], None] = field(default_factory=dict[tuple[Level, str], None])
    needs: set[Need] = field(default_factory=set[Need])
    downloads: set[str] = field(default_factory=set[str])
    patterns: dict[tuple[bool, str | None], None] = field(
        default_factory=dict[tuple[bool, str | None], None]
    )
    """What was run: whether it is more than reading, and what consent to it would cover."""
    commands: dict[Arguments, bool] = field(default_factory=dict[Arguments, bool])
    """The words of every command that may run, wrappers and what they start included; and whether
    their options may as well stand elsewhere."""
    opaque: bool = False
    """Whether other commands may run that nobody can name."""

    def add(self, level: Level, why: str, *, changes: bool = True) -> None:
        if level == "none":
            return
        self.level = higher(self.level, level)
        self.changes |= changes
        self.reasons[level, why] = None

    def hide(self, why: str) -> None:
        """Commands run that cannot be named."""
        self.opaque = True
        self.add("high", why)

    def merge(self, other: Findings) -> None:
        self.level = higher(self.level, other.level)
        self.changes |= other.changes
        self.reasons.update(other.reasons)
        self.needs |= other.needs
        if other.downloads is not self.downloads:
            self.downloads |= other.downloads
        self.patterns.update(other.patterns)
        self.commands.update(other.commands)
        self.opaque |= other.opaque

    @property
    def uses_network(self) -> bool:
        return any(need.kind == "network" for need in self.needs)

    @property
    def dangers(self) -> set[str]:
        """The reasons why it is high."""
        return {why for level, why in self.reasons if level == "high"}

    @property
    def why(self) -> str:
        """The reasons for the level, as one sentence."""
        reasons = [why for level, why in self.reasons if level == self.level and why]
        return "; ".join(reasons[:MOST_REASONS])
