"""Trials: one session whose host is killed and restarted again and again, checked each time.

This module decides when the host dies: at each labelled point, at random instants, during a
recovery. Each trial defines what must hold afterwards.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from keryx.app.host.homes.home import STORE
from tests.chaos.host_processes import Life, Zygote
from tests.chaos.state import Log, log_of
from tests.conftest import SOAK

KILLS: Final = 1000 if SOAK else 50
MOST_KILLS_IN_A_ROW: Final = 6

Point = tuple[str, int]
"""A label, and the how many-th passing of it."""


class Trial(ABC):
    """One home with one session."""

    scenario: ClassVar[str]

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        folder.mkdir()
        self.zygote = zygote
        self.folder = folder
        self.lives = 0
        self.seconds = 0.0
        """How long the last life took."""
        self.log: Log = []

    def live(self, *, die: Point | None = None, seconds: float | None = None) -> Life:
        """One more life: to its own end, or its death at that point or after that time."""
        before = self.log
        began = time.monotonic()
        life = self.zygote.start(self.scenario, self.folder, life=self.lives, die=die)
        if seconds is not None:
            life.live(seconds)
        life.end()
        self.seconds = time.monotonic() - began
        self.log = log_of(self.folder / "home" / STORE)
        assert self.log[: len(before)] == before, "what is logged stays as it is"
        assert [event.seq for event in self.log] == list(range(1, len(self.log) + 1))
        self.lives += 1
        self.check(before, life)
        return life

    @abstractmethod
    def check(self, before: Log, life: Life) -> None:
        """What must hold after each life; before it, the log was this."""

    @abstractmethod
    def check_end(self, *, parked: bool) -> None:
        """What must hold once all is done; turns may be parked if there were that many kills."""


MakeTrial = Callable[[Zygote, Path], Trial]


def points_of(life: Life) -> list[Point]:
    """All points that a life passed."""
    line = life.hear("passed ")
    passed = msgspec.json.decode(line.removeprefix("passed "), type=dict[str, int])
    return [(label, number) for label, times in passed.items() for number in range(1, times + 1)]


def at_every_point(
    make: MakeTrial, zygote: Zygote, folder: Path, *, only: str = "", first: Point | None = None
) -> None:
    """One trial for each point: its host dies there once, in a recovery if it died before."""
    dry = make(zygote, folder / "dry")
    if first is not None:
        dry.live(die=first)
    points = [point for point in points_of(dry.live()) if point[0].startswith(only)]
    dry.check_end(parked=False)
    died: set[str] = set()
    for number, point in enumerate(points):
        trial = make(zygote, folder / str(number))
        if first is not None:
            assert not trial.live(die=first).ended
        # Commits may come together in one life and apart in another: not every life gets so far.
        if not trial.live(die=point).ended:
            died.add(point[0])
            assert trial.live().ended
        trial.check_end(parked=False)
    assert died == {label for label, _ in points}


def time_of(trial: Trial) -> float:
    """How long a whole life takes."""
    trial.live()
    return trial.seconds


def at_random_instants(make: MakeTrial, zygote: Zygote, folder: Path) -> None:
    """Many trials whose hosts are killed from outside, whatever they do at that moment."""
    span = min(time_of(make(zygote, folder / f"dry {number}")) for number in range(3))
    dice = random.Random()
    kills = trials = 0
    while kills < KILLS:
        trials += 1
        trial = make(zygote, folder / str(trials))
        in_a_row = 0
        while not trial.live(seconds=dice.uniform(0, span)).ended:
            in_a_row += 1
            if in_a_row == MOST_KILLS_IN_A_ROW:
                assert trial.live().ended
                break
        trial.check_end(parked=in_a_row > 2)
        kills += in_a_row
