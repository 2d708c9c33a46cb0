"""A recorded turn is run again: as a regression test, on the screen, and with another model."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import msgspec
import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx.app.portable.session_file import SessionFile, encode_session, read_session
from keryx.app.replay.recording import RecordedTurn, recorded_turns
from keryx.app.replay.replaying import NOT_RECORDED, recorded_model, replay_turn
from keryx.errors import DeveloperMustActError
from keryx.events import StepReplied, Usage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.testing import check_replay, replayed
from tests.cli import commands

pytestmark = pytest.mark.promise("model.7")

RAN: list[str] = []


@tool(effects=NO_EFFECTS)
def weigh(what: str) -> str:
    """Weigh something."""
    RAN.append(what)
    if what == "air":
        raise ValueError("it weighs nothing")
    return f"{what} weighs {len(what)} kg"


def replies() -> list[ScriptedReply]:
    usage = Usage(input_tokens=10, output_tokens=5)
    both = (ScriptedCall("weigh", {"what": "gold"}), ScriptedCall("weigh", {"what": "air"}))
    return [
        ScriptedReply(text="I weigh both.", calls=both, usage=usage, cost=0.25),
        ScriptedReply(text="Gold is heavy.", usage=usage, cost=0.25),
        ScriptedReply(text="I said so.", usage=usage, cost=0.25),
    ]


async def recorded(folder: Path) -> SessionFile:
    """A session of two turns, one with calls."""
    async with Keryx(
        model=ScriptedModel(replies()), tools=[weigh], home=folder / "home", workspace=folder
    ) as app:
        session = await app.open()
        await (await session.send("Which is heavier?")).result()
        await (await session.send("Sure?")).result()
        return await read_session(app.store, session.session_id)


def last(file: SessionFile, number: int = -1) -> RecordedTurn:
    return recorded_turns(file.events)[number]


async def test_a_session_becomes_a_regression_test_that_runs_no_tool(tmp_path: Path) -> None:
    file = await recorded(tmp_path)
    RAN.clear()
    assert await check_replay(file, workspace=tmp_path) == 2
    assert RAN == []


async def test_tools_that_are_passed_run_and_a_changed_one_shows_as_a_diff(tmp_path: Path) -> None:
    file = await recorded(tmp_path)
    RAN.clear()
    assert await check_replay(file, tools=[weigh], workspace=tmp_path) == 2
    assert sorted(RAN) == ["air", "gold"]

    @tool(name="weigh", effects=NO_EFFECTS)
    def heavier(what: str) -> str:
        """Weigh something."""
        return f"{what} weighs 1000 kg"

    with pytest.raises(AssertionError, match="turn 1 goes otherwise now") as caught:
        await check_replay(file, tools=[heavier], workspace=tmp_path)
    assert "-  gold weighs 4 kg" in str(caught.value)
    assert "+  gold weighs 1000 kg" in str(caught.value)


async def test_a_log_that_says_otherwise_is_a_diff(tmp_path: Path) -> None:
    """The texts are compared: here the log has a reply that the engine would not give."""
    file = await recorded(tmp_path)
    events = [
        msgspec.structs.replace(event, stop_reason="stop", calls=())
        if isinstance(event, StepReplied) and event.calls
        else event
        for event in file.events
    ]
    with pytest.raises(AssertionError, match="goes otherwise"):
        await check_replay(msgspec.structs.replace(file, events=tuple(events)), workspace=tmp_path)


async def test_a_turn_that_was_stopped_for_its_content_fails_again(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply(text="Well, ", stop="content_filter")])
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        await (await session.send("Tell me")).result()
        file = await read_session(app.store, session.session_id)
    turn = last(file)
    again = await replay_turn(file, turn, recorded_model(turn), descriptions={}, workspace=tmp_path)
    assert (turn.finished.outcome, again.result.outcome) == ("failed", "failed")
    assert again.texts == ("Well, ",)


async def steered(folder: Path) -> SessionFile:
    """A turn that was steered twice: a call was cancelled, and a reply was cut."""
    weighing, talking = asyncio.Event(), asyncio.Event()

    @tool(name="weigh", effects=NO_EFFECTS)
    async def endless(what: str) -> str:
        """Weigh something."""
        weighing.set()
        await asyncio.Event().wait()
        return what

    async def talk_on() -> None:
        talking.set()
        await asyncio.Event().wait()

    steps = [
        ScriptedReply(text="I weigh it.", calls=[ScriptedCall("weigh", {"what": "gold"})]),
        ScriptedReply(text="Gold is heavy, and so", hold=talk_on),
        ScriptedReply(text="Yes."),
    ]
    async with (
        asyncio.timeout(30),
        Keryx(
            model=ScriptedModel(steps), tools=[endless], home=folder / "home", workspace=folder
        ) as app,
    ):
        session = await app.open()
        turn = await session.send("Which is heavier?")
        await weighing.wait()
        await session.steer("Just guess")
        await talking.wait()
        await session.steer("Shorter")
        await turn.result()
        return await read_session(app.store, session.session_id)


async def test_a_turn_that_was_steered_is_run_again_with_its_messages_at_their_places(
    tmp_path: Path,
) -> None:
    file = await steered(tmp_path)
    turn = last(file)
    assert [(message.after, message.text) for message in turn.joined] == [
        (1, "Just guess"),
        (2, "Shorter"),
    ]
    assert [reply.cut for reply in turn.replies] == [False, True, False]
    assert await check_replay(file, workspace=tmp_path) == 1

    # Another model gets the same messages, also if it needs fewer steps.
    short = ScriptedModel([ScriptedReply(text=text) for text in ("One.", "Two.", "Three.")])
    again = await replay_turn(file, turn, short, descriptions={}, workspace=tmp_path)
    assert again.texts == ("One.", "Two.", "Three.")
    assert [message.text for message in again.joined] == ["Just guess", "Shorter"]
    assert "Just guess" in str(short.asked[1].history)
    assert "Shorter" not in str(short.asked[1].history)
    assert "Shorter" in str(short.asked[2].history)


def test_one_line_in_a_test_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    home = tmp_path / "home"
    keryx = partial(commands.keryx, home)
    with commands.model_server(home, {"text": "Hi."}):
        assert keryx("run", "Say hi").returncode == 0
    name = keryx("sessions", "list").stdout.split()[0]
    assert keryx("sessions", "export", name, "--format", "json", "-o", str(path)).returncode == 0
    assert replayed(path) == 1
    with pytest.raises(DeveloperMustActError, match="is no JSON export"):
        replayed(tmp_path / "absent.json")


async def test_another_model_gets_recorded_results_and_other_calls_are_marked(
    tmp_path: Path,
) -> None:
    file = await recorded(tmp_path)
    RAN.clear()
    calls = (
        ScriptedCall("weigh", '{ "what" : "gold" }'),
        ScriptedCall("weigh", {"what": "lead"}),
    )
    other = ScriptedModel(
        [ScriptedReply(text="Hm.", calls=calls), ScriptedReply(text="Lead.")], name="scripted:other"
    )
    again = await replay_turn(file, last(file, 0), other, descriptions={}, workspace=tmp_path)
    assert RAN == [], "no tool runs"
    assert again.texts == ("Hm.", "Lead.")
    same, different = again.calls
    assert (same.is_recorded, same.result) == (True, "gold weighs 4 kg")
    assert different.is_recorded is False
    assert NOT_RECORDED in different.result


async def test_a_later_turn_is_asked_with_the_history_before_it(tmp_path: Path) -> None:
    file = await recorded(tmp_path)
    other = ScriptedModel([ScriptedReply(text="Yes.")], name="scripted:other")
    again = await replay_turn(file, last(file), other, descriptions={}, workspace=tmp_path)
    assert again.texts == ("Yes.",)
    history = str(other.asked[0].history)
    assert "Gold is heavy." in history
    assert "I said so." not in history


async def test_the_command_shows_a_turn_again_and_compares_models(tmp_path: Path) -> None:
    file = await recorded(tmp_path)
    (tmp_path / "s.json").write_bytes(encode_session(file))
    keryx = partial(commands.keryx, tmp_path / "home")
    shown = keryx("sessions", "replay", file.session_id, "--speed", "max", "--turn", "1")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[:3] == [
        "> Which is heavier?",
        "I weigh both.",
        '[weigh] {"what":"gold"}',
    ]
    assert "Gold is heavy." in shown.stdout
    assert "[weigh: failed after" in shown.stdout
    stepped = keryx("sessions", "replay", file.session_id, "--step", stdin="\n\n\n\n")
    assert stepped.stdout.splitlines() == ["> Sure?", "I said so.", "[the turn completed]"]
    compared = keryx("sessions", "replay", file.session_id, "--model", "scripted:demo")
    assert compared.returncode == 0, compared.stderr
    assert "-I said so." in compared.stdout
    assert "calls: the same" in compared.stdout
    assert "recorded" in compared.stdout
    before = len(keryx("sessions", "list").stdout.splitlines())
    assert before == 1, "nothing of the comparison stays"
    absent = keryx("sessions", "replay", file.session_id, "--turn", "9")
    assert (absent.returncode, "has 2 finished turns" in absent.stderr) == (1, True)
