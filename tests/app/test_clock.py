"""A wall clock that is set back, or forward, by hours in the middle of a session.

`at` is for people. What is ordered is ordered by sequence and commit, and deadlines count in
monotonic time.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.aio.clock import RealClock
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from tests.app.hosts import PATIENCE, check_log, keryx

pytestmark = pytest.mark.promise("sessions.6")

HOUR: Final = 3600.0
DEMO: Final = "scripted:demo"


class Wall:
    """What the clock on the wall shows: what a test sets it to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def move(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    new_wall = Wall()

    def shown(clock: RealClock) -> float:
        return new_wall.now

    monkeypatch.setattr(RealClock, "wall", shown)
    return new_wall


def limit(home: Path, seconds: float) -> None:
    (home / "config.toml").write_text(f"[limits]\nseconds = {seconds}\n")


async def test_a_log_keeps_its_order_when_the_clock_goes_back(tmp_path: Path, wall: Wall) -> None:
    @tool(effects=NO_EFFECTS)
    async def set_back() -> str:
        """Set the clock back."""
        wall.move(-5 * HOUR)
        return "done"

    script = [
        ScriptedReply(text="Now.", calls=[ScriptedCall("set_back")]),
        ScriptedReply(text="Done."),
        ScriptedReply(text="Still here."),
    ]
    model = ScriptedModel(script, name=DEMO)
    async with Keryx(model=model, tools=[set_back], home=tmp_path) as app:
        session = await app.open()
        turn = await session.send("first")
        events = [event async for event in turn.events()]
        wall.move(-5 * HOUR)
        assert (await (await session.send("second")).result()).text == "Still here."
        log = await app.store.events(session.session_id)
    check_log(log)
    times = [event.at for event in log]
    assert times != sorted(times), "the clock did go back"
    shown = [event.seq for event in events if not isinstance(event, ev.LiveEvent)]
    assert shown == sorted(shown)
    texts = [event.text for event in log if isinstance(event, ev.MessageAccepted | ev.StepReplied)]
    assert texts == ["first", "Now.", "Done.", "second", "Still here."]


async def test_sessions_are_listed_by_their_last_commit_and_not_by_their_time(
    tmp_path: Path, wall: Wall
) -> None:
    async with Keryx(model=DEMO, home=tmp_path) as app:
        names: list[str] = []
        for number in range(4):
            session = await app.open()
            await (await session.send(f"number {number}")).result()
            names.append(session.session_id)
            wall.move(-3 * HOUR)
        again = await app.open(names[1])
        await (await again.send("once more")).result()
        rows = await app.store.sessions()
    expected = [names[1], names[3], names[2], names[0]]
    assert [row.session_id for row in rows] == expected
    listed = keryx(tmp_path, "sessions", "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == expected


async def test_a_turn_is_taken_up_by_a_host_that_lives_before_it_began(
    tmp_path: Path, wall: Wall
) -> None:
    reached = asyncio.Event()

    async def think_for_ever() -> None:
        reached.set()
        await asyncio.Event().wait()

    hanging = ScriptedModel([ScriptedReply(text="Hm.", hold=think_for_ever)], name=DEMO)
    async with Keryx(model=hanging, home=tmp_path) as app:
        session = await app.open()
        await session.send("first")
        await session.send("second")
        await reached.wait()
        wall.move(-100 * HOUR)
    wall.move(-100 * HOUR)
    answering = ScriptedModel(lambda _: ScriptedReply(text="Fine."), name=DEMO)
    async with Keryx(model=answering, home=tmp_path) as app, asyncio.timeout(PATIENCE):
        session = await app.open(session.session_id)
        assert (await (await session.send("third")).result()).outcome == "completed"
        log = await app.store.events(session.session_id)
    check_log(log)
    finished = [event for event in log if isinstance(event, ev.TurnFinished)]
    assert [event.outcome for event in finished] == ["completed"] * 3
    delivered = [event for event in log if isinstance(event, ev.MessageDelivered)]
    assert len(delivered) == 3, "each message is delivered once"


async def test_a_time_limit_ends_a_turn_though_the_clock_goes_back(
    tmp_path: Path, wall: Wall
) -> None:
    limit(tmp_path, 0.2)
    model = ScriptedModel([ScriptedReply(text="Hm.", hold=asyncio.Event().wait)])
    async with Keryx(model=model, home=tmp_path) as app, asyncio.timeout(PATIENCE):
        session = await app.open()
        turn = await session.send("first")
        wall.move(-10 * HOUR)
        result = await turn.result()
    assert result.outcome == "failed"
    assert result.error is not None
    assert (result.error.kind, result.reason) == ("limit", "timeout")


@pytest.mark.parametrize("hours", [-10, 10])
async def test_a_time_limit_does_not_fire_because_the_clock_was_set(
    tmp_path: Path, wall: Wall, hours: int
) -> None:
    limit(tmp_path, HOUR)

    @tool(effects=NO_EFFECTS, timeout=HOUR)
    async def set_clock() -> str:
        """Set the clock."""
        wall.move(hours * HOUR)
        return "done"

    script = [
        ScriptedReply(text="Now.", calls=[ScriptedCall("set_clock")]),
        ScriptedReply(text="Done."),
    ]
    async with Keryx(model=ScriptedModel(script), tools=[set_clock], home=tmp_path) as app:
        session = await app.open()
        result = await (await session.send("first")).result()
    assert (result.outcome, result.text) == ("completed", "Done.")
    assert [call.outcome for call in result.calls] == ["completed"]
    assert 0 <= result.calls[0].duration < HOUR


async def test_a_call_s_time_limit_ends_it_though_the_clock_goes_back(
    tmp_path: Path, wall: Wall
) -> None:
    @tool(effects=NO_EFFECTS, timeout=0.1)
    async def wait_for_ever() -> None:
        """Wait."""
        wall.move(-10 * HOUR)
        await asyncio.Event().wait()

    script = [ScriptedReply(calls=[ScriptedCall("wait_for_ever")]), ScriptedReply(text="So.")]
    async with (
        Keryx(model=ScriptedModel(script), tools=[wait_for_ever], home=tmp_path) as app,
        asyncio.timeout(PATIENCE),
    ):
        session = await app.open()
        result = await (await session.send("first")).result()
    assert (result.outcome, result.text) == ("completed", "So.")
    assert [(call.outcome, call.reason) for call in result.calls] == [("cancelled", "timeout")]
    assert result.calls[0].duration >= 0
