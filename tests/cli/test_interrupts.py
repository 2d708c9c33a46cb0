"""Ctrl+C at every stage of every command: while it loads, works and ends, once and twice.

The signal is sent by the process to itself, when Python reports that it does something: a module
is being loaded, the store opened, a socket bound, the home let go. pytest counts the cases.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.command_runs import Around, Ended, World
from tests.cli.generated import LEAVES, Leaf

pytestmark = pytest.mark.promise("mended.16")

INTERRUPTER = str(Path(__file__).with_name("interrupter"))
FIRST = ("keryx", "keryx.cli", "keryx.cli.entry")
"""The first module of a command and the packages around it. What comes before is Python's own."""
DONE, FAILED, CANCELLED = 0, 1, 130
BY_SIGINT, BY_SIGTERM = -signal.SIGINT, -signal.SIGTERM


class Stage(NamedTuple):
    """Where the signal comes."""

    event: str
    text: str
    times: int = 1
    number: int = signal.SIGINT


LOADING = {"at the first import": 0.0, "in the middle": 0.5, "at the last import": 1.0}
WORKING = {
    "the store is opened": Stage("sqlite3.connect", "*keryx.db"),
    "the store is opened, twice": Stage("sqlite3.connect", "*keryx.db", 2),
    "the home is let go": Stage("os.remove", "*host.json"),
    "SIGTERM": Stage("sqlite3.connect", "*keryx.db", number=signal.SIGTERM),
}
CASES = [(stage, leaf) for stage in (*LOADING, *WORKING) for leaf in LEAVES]


class Imports:
    """What each command loads, in its main thread and in order; written down by a first run."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._folder = folder
        self._lists: dict[str, list[str]] = {}

    def record(self) -> None:
        if not self._lists:
            self._world.all(self._recording, LEAVES.values())
            for name in LEAVES:
                lines = self._file(LEAVES[name]).read_text().splitlines()
                self._lists[name] = lines[max(map(lines.index, FIRST)) + 1 :]

    def stage(self, leaf: str, part: float) -> Stage:
        names = self._lists[leaf]
        return Stage("import", names[round((len(names) - 1) * part)])

    def _recording(self, leaf: Leaf) -> Around:
        orders = f"record {self._file(leaf)}"
        return Around(variables={"PYTHONPATH": INTERRUPTER, "TEST_ORDERS": orders})

    def _file(self, leaf: Leaf) -> Path:
        return self._folder / leaf.name.replace(" ", "-")


class Interrupted(NamedTuple):
    end: Ended
    was_sent: bool


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Interrupted]:
    """How a command ended that got the signal at one stage; all commands are run at once."""
    folder = tmp_path_factory.mktemp("signals")
    world = World(tmp_path_factory.mktemp("world"))
    imports = Imports(world, tmp_path_factory.mktemp("imports"))
    batches: dict[str, dict[str, Ended]] = {}

    def sent(name: str, leaf: str) -> Path:
        return folder / f"{name} {leaf}".replace(" ", "-")

    def find(name: str, leaf: str) -> Interrupted:
        def around(leaf: Leaf) -> Around:
            stage = WORKING.get(name) or imports.stage(leaf.name, LOADING[name])
            orders = f"{stage.number:d} {stage.event} {stage.text} {stage.times}"
            orders += f" {sent(name, leaf.name)}"
            return Around(variables={"PYTHONPATH": INTERRUPTER, "TEST_ORDERS": orders})

        if name in LOADING:
            imports.record()
        if name not in batches:
            batches[name] = world.all(around, LEAVES.values())
        return Interrupted(batches[name][leaf], sent(name, leaf).exists())

    return find


@pytest.mark.parametrize(("stage", "leaf"), CASES)
@pytest.mark.timeout(120)
def test_it_ends_as_interrupted_and_says_no_more_than_that(
    stage: str, leaf: str, interrupted: Callable[[str, str], Interrupted]
) -> None:
    end, was_sent = interrupted(stage, leaf)
    if stage in LOADING:
        assert was_sent, str(end)
        end.check(codes=(BY_SIGINT, CANCELLED))
    elif was_sent and stage == "SIGTERM":
        end.check(codes=(BY_SIGTERM,))
    elif was_sent:
        # Whoever has nothing left to do when it comes may be done, or have failed, already.
        end.check(codes=(BY_SIGINT, CANCELLED, DONE, FAILED))
    if was_sent and end.code == CANCELLED:
        assert end.err.endswith("interrupted\n"), str(end)


def test_the_stages_are_reached(interrupted: Callable[[str, str], Interrupted]) -> None:
    """Every command that has a store opens it; what the stages are called is not made up."""
    for stage in WORKING:
        reached = {leaf for leaf in LEAVES if interrupted(stage, leaf).was_sent}
        assert {"run", "serve", "exec", "sessions list", "usage"} <= reached, stage
