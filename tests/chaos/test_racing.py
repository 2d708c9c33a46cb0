"""Several processes want the same: exactly one gets it, and the others write nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.loops import run_loop
from keryx.aio.scope import Scope
from keryx.app.host.homes.home import STORE
from keryx.ports.store import InboxRow
from keryx.store.sqlite import SqliteStore
from tests.chaos.host_processes import Gate, Life, Zygote
from tests.chaos.state import Log, log_of
from tests.conftest import SOAK

pytestmark = pytest.mark.promise("sessions.1", "sessions.2")

RACERS = 4
ROUNDS = 100 if SOAK else 10

REFUSED = {"FencedError", "AlreadyTakenError"}


def race(
    zygote: Zygote, scenario: str, folder: Path, *, subject: str = "", epoch: int = 0
) -> list[str]:
    """Let them start together; the last word of each."""
    with closing(Gate()) as gate:
        racers: list[Life] = []
        for life in range(1, RACERS + 1):
            racer = zygote.start(
                scenario, folder, life=life, subject=subject, epoch=epoch, gate=gate.entrance
            )
            racers.append(racer)
        for racer in racers:
            racer.hear("ready")
        gate.open()
        assert [racer.end() for racer in racers] == [0] * RACERS
    return [racer.said[-1] for racer in racers]


def rounds(folder: Path) -> list[Path]:
    folders = [folder / str(number) for number in range(ROUNDS)]
    for round_folder in folders:
        round_folder.mkdir()
    return folders


def ask_and_die(zygote: Zygote, folder: Path) -> str:
    """A host asks for an approval and dies; the id of that approval."""
    host = zygote.start("ask", folder)
    approval_id = host.hear("asked ").split()[1]
    host.kill()
    return approval_id


def check_one_taken(said: list[str], refused: set[str]) -> None:
    assert said.count("taken") == 1
    assert set(said) - {"taken"} <= refused


def answers(log: Log, approval_id: str) -> list[ev.ApprovalAnswered]:
    answered = (event for event in log if isinstance(event, ev.ApprovalAnswered))
    return [event for event in answered if event.approval_id == approval_id]


@pytest.mark.parametrize("scenario", ["answer", "answer_as_owner"])
@pytest.mark.timeout(60 + ROUNDS)
def test_one_of_several_processes_answers_an_approval(
    zygote: Zygote, tmp_path: Path, scenario: str
) -> None:
    for folder in rounds(tmp_path):
        approval_id = ask_and_die(zygote, folder)
        said = race(zygote, scenario, folder, subject=approval_id)
        check_one_taken(said, REFUSED)
        (answer,) = answers(log_of(folder / "home" / STORE), approval_id)
        assert answer.by == f"racer {said.index('taken') + 1}"


@pytest.mark.timeout(60 + ROUNDS)
def test_one_of_several_owners_resumes_a_turn(zygote: Zygote, tmp_path: Path) -> None:
    for folder in rounds(tmp_path):
        leave(zygote, folder)
        said = race(zygote, "resume", folder)
        check_one_taken(said, {"FencedError"})
        log = log_of(folder / "home" / STORE)
        assert len([event for event in log if isinstance(event, ev.TurnResumed)]) == 1
        winner = said.index("taken") + 1
        assert traces(folder) == [("0", "act_never"), ("0", "act_safe"), (str(winner), "act_safe")]
        check_ends(log, outcomes={"completed"})


@pytest.mark.timeout(60 + ROUNDS)
def test_a_turn_that_several_processes_grab_from_each_other_ends_once(
    zygote: Zygote, tmp_path: Path
) -> None:
    for folder in rounds(tmp_path):
        leave(zygote, folder)
        race(zygote, "resume_at_once", folder)
        log = log_of(folder / "home" / STORE)
        acted = [tool for _, tool in traces(folder)]
        assert acted.count("act_never") == 1
        # Each that grabs it counts as one more attempt.
        check_ends(log, outcomes={"completed", "parked"})


def leave(zygote: Zygote, folder: Path) -> None:
    """A host dies in the middle of two calls."""
    host = zygote.start("leave", folder)
    host.hear("acting")
    host.hear("acting")
    host.kill()


def traces(folder: Path) -> list[tuple[str, str]]:
    """Who acted: the life and the tool."""
    tools = {
        event.call_id: event.tool
        for event in log_of(folder / "home" / STORE)
        if isinstance(event, ev.CallStarted)
    }
    lines = [line.split() for line in (folder / "traces").read_text().splitlines()]
    return sorted((life, tools[call_id]) for life, call_id in lines)


def check_ends(log: Log, *, outcomes: set[str]) -> None:
    """The turn that was left has one end, and so has each of its calls."""
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    (first, *_) = (event.turn_id for event in log if isinstance(event, ev.TurnStarted))
    ends = [event for event in log if isinstance(event, ev.TurnFinished)]
    (end,) = (end for end in ends if end.turn_id == first)
    assert end.outcome in outcomes
    calls = [event.call_id for event in log if isinstance(event, ev.CallFinished)]
    assert len(calls) == len(set(calls)) == 2


@pytest.mark.timeout(60 + ROUNDS)
def test_one_of_several_processes_consumes_a_command(zygote: Zygote, tmp_path: Path) -> None:
    for folder in rounds(tmp_path):
        (folder / "home").mkdir()
        epoch = run_loop(enter(folder / "home" / STORE, "c1"))
        said = race(zygote, "consume", folder, subject="c1", epoch=epoch)
        check_one_taken(said, {"AlreadyTakenError"})
        assert run_loop(consumers(folder / "home" / STORE)) == [str(said.index("taken") + 1)]


async def enter(path: Path, key: str) -> int:
    """Leave a command for the session; the epoch that all its owners will write with."""
    bridge = Bridge(Scope("test"))
    store = await SqliteStore.open(path, bridge)
    epoch = await store.claim("s1")
    await store.enter("s1", InboxRow(key, b"{}"))
    await store.close()
    await bridge.close()
    return epoch


async def consumers(path: Path) -> list[str]:
    """Who wrote that it consumed a command."""
    bridge = Bridge(Scope("test"))
    store = await SqliteStore.open(path, bridge, read_only=True)
    assert await store.pending("s1") == []
    row_ids = [row.id for row in await store.outbox("taken")]
    await store.close()
    await bridge.close()
    return row_ids


def test_an_owner_that_was_frozen_and_replaced_writes_nothing(
    zygote: Zygote, tmp_path: Path
) -> None:
    with closing(Gate()) as gate:
        frozen = zygote.start("own", tmp_path, gate=gate.entrance)
        frozen.hear("acting")
        frozen.hear("acting")
        frozen.stop()
        before = log_of(tmp_path / "home" / STORE)
        other = zygote.start("take_over", tmp_path, life=1, subject=before[0].session_id)
        assert other.end() == 0
        log = log_of(tmp_path / "home" / STORE)
        assert isinstance(log[-1], ev.TurnFinished)
        gate.open()
        frozen.wake()
        frozen.hear("refused FencedError")
        frozen.hear("fenced")
        assert frozen.end() == 0
    after = log_of(tmp_path / "home" / STORE)
    assert after == log
    assert [life for life, tool in traces(tmp_path) if tool == "act_never"] == ["0"]
