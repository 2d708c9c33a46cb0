"""SIGKILL at random instants, again and again, until the turn is done: nothing lost or repeated."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.app.home import STORE
from keryx.store.sqlite import SqliteStore
from tests.conftest import SOAK

pytestmark = pytest.mark.promise("sessions.1")

KILLS = 1000 if SOAK else 50
ROOT = Path(__file__).parent.parent.parent


def read_log(home: Path) -> list[ev.LoggedEvent]:
    """The whole log, as another process reads it."""

    async def read() -> list[ev.LoggedEvent]:
        bridge = Bridge(Scope("reader"))
        store = await SqliteStore.open(home / STORE, bridge, read_only=True)
        rows = await store.sessions()
        log = await store.events(rows[0].session_id) if rows else []
        await store.close()
        await bridge.close()
        return log

    return asyncio.run(read()) if (home / STORE).exists() else []


class Run:
    """One life of the host."""

    def __init__(self, home: Path, traces: Path, number: int) -> None:
        command = [sys.executable, "-m", "tests.chaos.program", str(home), str(traces), str(number)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        self._said = b""

    def live(self, seconds: float | None) -> bool:
        """Let it live that long after it is accepted, then kill it; True if it ended by itself."""
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        while True:
            patience = None if b"accepted" not in self._said else seconds
            if not select.select([output], [], [], patience)[0]:
                break
            data = os.read(output, 4096)
            self._said += data
            if not data:
                break
        self._process.send_signal(signal.SIGKILL)
        self._process.stdout.close()
        self._process.wait()
        return b"finished" in self._said

    @property
    def accepted(self) -> str:
        return next(
            (line.split()[1] for line in self._said.decode().splitlines() if "accepted" in line), ""
        )


@pytest.mark.timeout(3000)
def test_nothing_is_lost_or_repeated_however_often_the_host_is_killed(tmp_path: Path) -> None:
    dice = random.Random()
    kills = rounds = 0
    while kills < KILLS:
        rounds += 1
        kills += one_turn(tmp_path / str(rounds), dice, KILLS - kills)
    assert kills >= KILLS


def one_turn(folder: Path, dice: random.Random, most: int) -> int:
    """Kill the host of one turn until it is done; the number of kills."""
    folder.mkdir()
    home, traces = folder / "home", folder / "traces"
    traces.touch()
    accepted: set[str] = set()
    for number in range(most + 1):
        before = finished(read_log(home))
        run = Run(home, traces, number)
        # The last life is as long as it needs.
        done = run.live(dice.uniform(0, 0.03) if number < most else None)
        if run.accepted:
            accepted.add(run.accepted)
        acted = acted_in(traces, number)
        assert not acted & before, "a finished call ran again"
        log = read_log(home)
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        if accepted:
            check_accepted(log, accepted)
        if done:
            check_end(log, traces)
            return number
    return most


def finished(log: list[ev.LoggedEvent]) -> set[str]:
    return {event.call_id for event in log if isinstance(event, ev.CallFinished)}


def acted_in(traces: Path, number: int) -> set[str]:
    lines = (line.split() for line in traces.read_text().splitlines())
    return {call_id for run, call_id in lines if run == str(number)}


def check_accepted(log: list[ev.LoggedEvent], accepted: set[str]) -> None:
    messages = [event for event in log if isinstance(event, ev.MessageAccepted)]
    assert len(messages) == 1, "one message, however often it was sent"
    assert accepted == {messages[0].turn_id}


def check_end(log: list[ev.LoggedEvent], traces: Path) -> None:
    ends = [event for event in log if isinstance(event, ev.TurnFinished)]
    assert len(ends) == 1
    assert ends[0].outcome in ("completed", "parked")
    facts = [event for event in log if isinstance(event, ev.CallFinished)]
    assert len({fact.call_id for fact in facts}) == len(facts), "one end for each call"
    times: dict[str, int] = {}
    for line in traces.read_text().splitlines():
        call_id = line.split()[1]
        times[call_id] = times.get(call_id, 0) + 1
    for fact in facts:
        if fact.tool == "act_never":
            assert times.get(fact.call_id, 0) <= 1
            if fact.outcome == "completed":
                assert times[fact.call_id] == 1
        elif fact.outcome == "completed":
            assert times[fact.call_id] >= 1
