"""The parts of a judgement: reasons, needs, and the patterns of consent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from keryx.tools.shell.rules.actions import Arguments, Level

_ORDER: tuple[Level, ...] = ("none", "low", "high")
MAX_REASONS = 3
"""The most reasons that are shown; people would not read more."""


def higher(first: Level, second: Level) -> Level:
    return first if _ORDER.index(first) > _ORDER.index(second) else second


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a confined command does not have by itself."""

    kind: Literal["network", "read", "write"]
    name: str = ""
    """The path; or the host, empty if it is unknown."""


@dataclass(slots=True)
class Findings:
    """Collects the findings of one judgement while a script is read."""

    level: Level = "none"
    changes: bool = False
    reasons: dict[tuple[Level, str], None] = field(default_factory=dict[tuple[Level, str], None])
    needs: set[Need] = field(default_factory=set[Need])
    downloads: set[str] = field(default_factory=set[str])
    patterns: dict[tuple[bool, str | None], None] = field(
        default_factory=dict[tuple[bool, str | None], None]
    )
    """The commands: whether it does more than read, and what consent to it would cover."""
    commands: dict[Arguments, bool] = field(default_factory=dict[Arguments, bool])
    """The words of every command that may run, also of wrappers and what they start; and whether
    its options may be in other positions."""
    opaque: bool = False
    """Whether other commands may run that are unknown before."""

    def add(self, level: Level, why: str, *, changes: bool = True) -> None:
        if level == "none":
            return
        self.level = higher(self.level, level)
        self.changes |= changes
        self.reasons[level, why] = None

    def add_opaque(self, why: str) -> None:
        """Add a high reason: unknown commands may run."""
        self.opaque = True
        self.add("high", why)

    def merge(self, findings: Findings) -> None:
        self.level = higher(self.level, findings.level)
        self.changes |= findings.changes
        self.reasons.update(findings.reasons)
        self.needs |= findings.needs
        if findings.downloads is not self.downloads:
            self.downloads |= findings.downloads
        self.patterns.update(findings.patterns)
        self.commands.update(findings.commands)
        self.opaque |= findings.opaque

    @property
    def uses_network(self) -> bool:
        return any(need.kind == "network" for need in self.needs)

    @property
    def high_reasons(self) -> set[str]:
        """The reasons for the level high."""
        return {why for level, why in self.reasons if level == "high"}

    @property
    def why(self) -> str:
        """The reasons for the level, as one sentence."""
        reasons = [why for level, why in self.reasons if level == self.level and why]
        return "; ".join(reasons[:MAX_REASONS])
