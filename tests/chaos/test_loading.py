"""A restored session always loads, and the same log gives the same state."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx.app.host.homes.home import STORE
from keryx.engine.log.fold import Fold
from keryx.engine.log.resume_plan import plan
from tests.chaos.host_processes import Life, Zygote
from tests.chaos.kill_trials import KILLS, Trial, at_every_point, at_random_instants
from tests.chaos.state import Log, logs_of, state_of

pytestmark = pytest.mark.promise("sessions.1")


class Loading(Trial):
    """Messages, cancels and an interrupt; what they left is loaded by two processes."""

    scenario = "talk"

    def check(self, before: Log, life: Life) -> None:
        if not self.log:
            return
        reader = self.zygote.start("state", self.folder)
        assert reader.end() == 0
        theirs = dict(line.split(" ", 1) for line in reader.said)
        ours = state_of(self.log)
        for field, value in ours.items():
            assert value == theirs[field], field
        assert ours.keys() == theirs.keys()
        ((row, _),) = logs_of(self.folder / "home" / STORE)
        assert row.last_seq == len(self.log)
        assert row.state == ("idle" if ours["turn"] == "null" else "running")

    def check_end(self, *, parked: bool) -> None:
        """A log that ends anywhere gives a state, from which its turn could go on."""
        fold = Fold(self.log[0].session_id)
        for event in self.log:
            fold.apply(event)
            if fold.turn is not None:
                plan(fold)
        assert fold.turn is None
        assert not fold.queue
        assert not fold.steers


def test_a_session_loads_the_same_after_its_host_died_at_any_commit(
    zygote: Zygote, tmp_path: Path
) -> None:
    # Between commits the log does not change.
    at_every_point(Loading, zygote, tmp_path, only="after commit")


def test_a_commit_that_is_cut_leaves_nothing(zygote: Zygote, tmp_path: Path) -> None:
    at_every_point(Loading, zygote, tmp_path, only="in the transaction")


@pytest.mark.timeout(60 + KILLS)
def test_a_session_loads_the_same_whenever_its_host_is_killed(
    zygote: Zygote, tmp_path: Path
) -> None:
    at_random_instants(Loading, zygote, tmp_path)
