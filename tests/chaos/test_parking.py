"""A turn that kills its host again and again is parked, and its neighbours go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx import events as ev
from keryx.app.host.homes.home import STORE
from tests.chaos.host_processes import Zygote
from tests.chaos.resume_guard import NEIGHBOURS, STEPS
from tests.chaos.state import Log, logs_of

pytestmark = pytest.mark.promise("sessions.1")

# It kills once as a turn that crashed like any other, once more alone; then it is parked.
MOST_LIVES = 3


@pytest.mark.parametrize("place", range(NEIGHBOURS + 1), ids=lambda place: f"the killer is {place}")
def test_a_turn_that_kills_its_host_is_parked_and_its_neighbours_go_on(
    zygote: Zygote, tmp_path: Path, place: int
) -> None:
    begun = zygote.start("begin_neighbours", tmp_path, subject=str(place))
    begun.end()
    assert not begun.ended
    lives = 1
    while True:
        host = zygote.start("go_on_with_neighbours", tmp_path, life=lives)
        host.end()
        if host.ended:
            break
        lives += 1
        assert lives <= MOST_LIVES, "the killer is never parked"
    logs = {row.session_id: log for row, log in logs_of(tmp_path / "home" / STORE)}
    ((killer,),) = begun.words("kill")
    end = end_of(logs.pop(killer))
    assert (end.outcome, end.reason) == ("parked", "no_progress")
    assert sorted(logs) == sorted(session_id for (session_id,) in begun.words("work"))
    for log in logs.values():
        assert end_of(log).outcome == "completed"
        assert len([event for event in log if isinstance(event, ev.CallFinished)]) == STEPS


def end_of(log: Log) -> ev.TurnFinished:
    (end,) = (event for event in log if isinstance(event, ev.TurnFinished))
    return end
