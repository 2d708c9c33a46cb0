"""A finished call never runs again; a started one is `unknown`, or runs again if that is safe."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx import events as ev
from tests.chaos.host_processes import Life, Zygote
from tests.chaos.kill_trials import KILLS, Point, Trial, at_every_point, at_random_instants
from tests.chaos.state import Log
from tests.conftest import SOAK

pytestmark = pytest.mark.promise("sessions.1")

# One of a batch has ended and the others have not; none has; all have.
FIRST_DEATHS: list[Point] = [
    ("shown call.finished", 4),
    ("shown call.started", 3),
    ("shown call.finished", 6),
]


class Calls(Trial):
    """Two batches of three parallel calls: `never`, `safe` and `keyed`."""

    scenario = "calls"

    def __init__(self, zygote: Zygote, folder: Path) -> None:
        super().__init__(zygote, folder)
        self.lost: set[str] = set()

    def check(self, before: Log, life: Life) -> None:
        finished = ends(before)
        open_ = {key: fact for key, fact in starts(before).items() if key not in finished}
        never = {key for key, fact in open_.items() if fact.replay == "never"}
        self.lost |= never
        acted = self.acted(self.lives - 1)
        assert len(set(acted)) == len(acted), "no call acts twice in one life"
        assert not finished.keys() & set(acted), "a finished call ran again"
        assert not never & set(acted), "a call that must not be replayed ran again"
        assert set(acted) <= starts(self.log).keys(), "a call acted before the log knew of it"
        if life.ended:
            assert open_.keys() - never <= set(acted) | self.parked(), "a safe call runs again"

    def check_end(self, *, parked: bool) -> None:
        (end,) = (event for event in self.log if isinstance(event, ev.TurnFinished))
        assert end.outcome == "completed" or (parked and end.outcome == "parked")
        finished = ends(self.log)
        requested = [call.call_id for fact in replies(self.log) for call in fact.calls]
        assert sorted(finished) == sorted(requested), "each call that was asked for has one end"
        acted = [call for life in range(self.lives) for call in self.acted(life)]
        for call_id, fact in finished.items():
            times = acted.count(call_id)
            if fact.tool == "act_never":
                assert times <= 1
            if call_id in self.lost:
                assert (fact.outcome, fact.reason, fact.started) == ("unknown", "crash", True)
            elif end.outcome == "completed":
                assert fact.outcome == "completed"
                assert times >= 1

    def acted(self, life: int) -> list[str]:
        """The calls that left a trace in that life."""
        traces = self.folder / "traces"
        lines = traces.read_text().splitlines() if traces.exists() else []
        return [line.split()[1] for line in lines if line.split()[0] == str(life)]

    def parked(self) -> set[str]:
        """The calls of a turn that was parked: nothing of it is run any more."""
        is_parked = any(e.outcome == "parked" for e in self.log if isinstance(e, ev.TurnFinished))
        return set(starts(self.log)) if is_parked else set()


def starts(log: Log) -> dict[str, ev.CallStarted]:
    return {event.call_id: event for event in log if isinstance(event, ev.CallStarted)}


def ends(log: Log) -> dict[str, ev.CallFinished]:
    facts = [event for event in log if isinstance(event, ev.CallFinished)]
    by_call = {fact.call_id: fact for fact in facts}
    assert len(by_call) == len(facts), "a call ends once"
    return by_call


def replies(log: Log) -> list[ev.StepReplied]:
    return [event for event in log if isinstance(event, ev.StepReplied)]


def test_no_call_is_repeated_or_lost_wherever_the_host_dies(zygote: Zygote, tmp_path: Path) -> None:
    at_every_point(Calls, zygote, tmp_path)


@pytest.mark.parametrize("first", FIRST_DEATHS if SOAK else FIRST_DEATHS[:1], ids=str)
def test_no_call_is_repeated_or_lost_wherever_the_host_dies_again_while_it_recovers(
    zygote: Zygote, tmp_path: Path, first: Point
) -> None:
    at_every_point(Calls, zygote, tmp_path, first=first)


@pytest.mark.timeout(60 + KILLS)
def test_no_call_is_repeated_or_lost_whenever_the_host_is_killed(
    zygote: Zygote, tmp_path: Path
) -> None:
    at_random_instants(Calls, zygote, tmp_path)
