"""Prints a figure: the floor, Keryx, their ratio, the limit, and the figures of peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .peers import Peer

_SCALES: Final = {"s": 1.0, "ms": 1e3, "us": 1e6, "tokens/s": 1.0}


@dataclass(frozen=True, slots=True)
class Figure:
    """One row of the report: its name, its unit, and whether more is better."""

    name: str
    unit: str
    digits: int = 3
    at_least: bool = False
    """Whether more is better, as with a rate."""

    def say(self, bare: float, ours: float, limit: float, note: str = "") -> None:
        is_met = ours >= limit if self.at_least else ours <= limit
        sign = ">=" if self.at_least else "<="
        print(
            f"{self.name:<34} floor {self._formatted(bare)}  keryx {self._formatted(ours)}  "
            f"ratio {ours / bare:5.2f}  limit {sign} {self._formatted(limit).strip()}: "
            f"{'met' if is_met else 'MISSED'}{note}"
        )

    def say_peers(self, peers: Sequence[Peer], what: str, url: str) -> None:
        """Print the figure of each peer. None of them keeps a log."""
        for peer in peers:
            print(f"{f'  {peer.name}':<34} {self._formatted(peer.measure(what, url))}")

    def _formatted(self, value: float) -> str:
        return f"{value * _SCALES[self.unit]:8.{self.digits}f} {self.unit}"
