"""How often the judgement errs on lines that no rule was written for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keryx.sandbox.policy import SYSTEM
from keryx.tools.shell.judgement.paths import VISIBLE_TREES
from keryx.tools.shell.risk import risk
from tests.tools.shell import corpus_daily, corpus_odd
from tests.tools.shell.lines import HOME, WORKSPACE, halves

pytestmark = pytest.mark.promise("walls.9")

Record = Callable[[str, object], None]
MOST = 0.05
"""The share of lines that may be judged wrongly."""
ODD: dict[str, list[str]] = dict(zip(("working", "aside"), halves(corpus_odd.GROUPS), strict=True))
DAILY: dict[str, list[str]] = dict(
    zip(("working", "aside"), halves(corpus_daily.GROUPS), strict=True)
)


def needs_of(line: str) -> tuple[str, set[str]]:
    """The level of a line, and the kinds of what it needs."""
    judged = risk(
        line,
        workspace=Path(WORKSPACE),
        home=Path(HOME),
        writable=[Path("/tmp")],
    )
    return judged.level, {need.kind for need in judged.needs}


def is_asked_about(line: str) -> bool:
    level, needs = needs_of(line)
    return level == "high" or bool(needs)


def asks_too_much(line: str) -> bool:
    level, needs = needs_of(line)
    granted = {"network"} if line in corpus_daily.NETWORKED else set[str]()
    return level == "high" or not needs <= granted


@pytest.mark.parametrize("part", ["working", "aside"])
def test_few_harmful_lines_run_unasked(part: str, record_property: Record) -> None:
    missed = [line for line in ODD[part] if not is_asked_about(line)]
    record_property("unasked", f"{len(missed)} of {len(ODD[part])}")
    assert len(missed) <= MOST * len(ODD[part]), missed


@pytest.mark.parametrize("part", ["working", "aside"])
def test_few_everyday_lines_are_asked_about(part: str, record_property: Record) -> None:
    stopped = [line for line in DAILY[part] if asks_too_much(line)]
    record_property("asked", f"{len(stopped)} of {len(DAILY[part])}")
    assert len(stopped) <= MOST * len(DAILY[part]), stopped


def test_no_line_stands_in_both_corpora() -> None:
    odd, daily = [*ODD["working"], *ODD["aside"]], [*DAILY["working"], *DAILY["aside"]]
    assert not set(odd) & set(daily)
    assert len(daily) == len(set(daily))


def test_what_needs_no_question_is_what_the_confinement_shows() -> None:
    assert {*SYSTEM, "/proc"} == VISIBLE_TREES
