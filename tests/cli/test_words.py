"""Every option and argument of every command with values that it cannot have, from the parsers.

pytest counts the cases.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import pytest

from keryx.cli.values import day, dollars, folder, port, rows, seconds, speed, tokens
from tests.cli.command_runs import AT_ONCE, Around, Ended, World
from tests.cli.generated import LEAVES, Leaf

pytestmark = pytest.mark.promise("mended.16")

LONG = "x" * 5000
USAGE = 2
NUMBERS = ("", "-1", "nan", "1e999", "9" * 30)
FOLDERS = ("", "/proc/nowhere", "/dev/null", LONG, "~nobody-of-that-name/x")
HOMES = ("/dev/null", "/proc/nowhere/x", f"/tmp/{LONG}", "~nobody-of-that-name/x")
TEXTS = ("", LONG)
OF_TYPE: dict[Any, tuple[str, ...]] = {
    port: NUMBERS,
    rows: NUMBERS,
    seconds: NUMBERS,
    tokens: ("", "-1", "1.5", "many", "9" * 40),
    dollars: ("", "-1", "nan", "1e999", "much"),
    folder: FOLDERS,
    day: (*NUMBERS, "2026-13-01", "yesterday"),
    speed: ("", "-1", "nan", "1e999", "fast"),
}


class Case(NamedTuple):
    """A command with one word that is wrong."""

    leaf: str
    words: tuple[str, ...]
    is_refused: bool
    """Whether the words alone are wrong, so that nothing is done."""

    @property
    def name(self) -> str:
        return " ".join(word if len(word) < 50 else f"{word[:9]}..." for word in self.words)


def cases() -> list[Case]:
    all_cases: list[Case] = []
    for number, leaf in enumerate(LEAVES.values()):
        for position, option in leaf.options:
            values, is_refused = _values(option, number)
            all_cases += [
                _with_option(leaf, position, option, value, is_refused) for value in values
            ]
        for action in leaf.positionals:
            all_cases += [
                Case(leaf.name, _with_positional(leaf, action, value), False) for value in TEXTS
            ]
    return all_cases


def _values(option: argparse.Action, number: int) -> tuple[tuple[str, ...], bool]:
    if option.choices is not None:
        return ("nonsense",), True
    if option.type in OF_TYPE:
        return OF_TYPE[option.type], True
    if option.dest == "home":
        # All commands read it in the same way, so each is given another bad one.
        return (HOMES[number % len(HOMES)],), False
    assert option.type is None, f"say in OF_TYPE which values {option.dest} cannot have"
    return TEXTS, False


def _with_option(
    leaf: Leaf, position: int, option: argparse.Action, value: str, is_refused: bool
) -> Case:
    words = leaf.arguments()
    words.insert(position, f"{option.option_strings[-1]}={value}")
    return Case(leaf.name, tuple(words), is_refused)


def _with_positional(leaf: Leaf, action: argparse.Action, value: str) -> tuple[str, ...]:
    words = leaf.arguments(replaced={action.dest: value})
    return tuple(words)


CASES = {case.name: case for case in cases()}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ended]:
    """How a command ended; all cases of one are run at once when the first is asked for."""
    world = World(tmp_path_factory.mktemp("world"))
    results: dict[str, Ended] = {}

    def find(name: str) -> Ended:
        if name not in results:
            command = LEAVES[CASES[name].leaf].words[0]
            cases = {
                other: case
                for other, case in CASES.items()
                if LEAVES[case.leaf].words[0] == command
            }
            with ThreadPoolExecutor(AT_ONCE) as pool:
                results.update(
                    zip(cases, pool.map(partial(_run, world), cases.values()), strict=True)
                )
        return results[name]

    return find


def _run(world: World, case: Case) -> Ended:
    return world.run(LEAVES[case.leaf], Around(words=case.words))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.timeout(180)
def test_a_word_that_cannot_be_is_refused_with_a_reason(
    name: str, ended: Callable[[str], Ended]
) -> None:
    end = ended(name)
    end.check()
    if CASES[name].is_refused:
        assert end.code == USAGE, str(end)
    if end.code:
        assert "keryx" in end.err or "nothing was found" in end.err or end.out, str(end)
