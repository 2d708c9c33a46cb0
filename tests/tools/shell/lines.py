"""How a line of the corpus is written. Commands run in the workspace `/home/ada/work`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

WORKSPACE = "/home/ada/work"
HOME = "/home/ada"


@dataclass(frozen=True, slots=True)
class Line:
    command: str
    level: Literal["none", "low", "high"]
    needs: tuple[str, ...] | None = None
    """Each as `kind name`; `None`: of no interest."""
    patterns: tuple[str, ...] | None = None
    why: str = ""


def none(command: str, *patterns: str) -> Line:
    return Line(command, "none", (), patterns or None)


def low(command: str, *patterns: str, needs: tuple[str, ...] | None = (), why: str = "") -> Line:
    return Line(command, "low", needs, patterns or None, why)


def high(command: str, why: str = "", *, needs: tuple[str, ...] | None = None) -> Line:
    return Line(command, "high", needs, None, why)


def halves(groups: Mapping[str, tuple[str, ...]]) -> tuple[list[str], list[str]]:
    """What rules may be written by, and what is set aside to measure them; half of each group."""
    working: list[str] = []
    aside: list[str] = []
    for name, lines in groups.items():
        shuffled = Random(f"14 {name}").sample(lines, len(lines))
        middle = len(shuffled) // 2
        working += shuffled[:middle]
        aside += shuffled[middle:]
    return working, aside
