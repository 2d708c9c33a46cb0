"""The library as a program uses it: one home, sessions that survive, blocking and async."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from keryx import NO_EFFECTS, Keryx, ToolContext, sync, tool
from keryx import events as ev
from keryx.errors import DeveloperMustActError, UserMustActError
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of


@tool(effects=NO_EFFECTS)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def adding() -> ScriptedModel:
    return ScriptedModel(
        [
            ScriptedReply(text="Let me add.", calls=[ScriptedCall("add", {"a": 2, "b": 3})]),
            ScriptedReply(text="It is 5."),
        ]
    )


async def test_a_turn_from_send_to_result(tmp_path: Path) -> None:
    async with Keryx(model=adding(), tools=[add], workspace=tmp_path, home=tmp_path / "h") as app:
        session = await app.open()
        turn = await session.send("2 + 3?")
        events = [event async for event in turn.events()]
        result = await turn.result()
    assert (result.outcome, result.text) == ("completed", "It is 5.")
    assert [(call.tool, call.outcome) for call in result.calls] == [("add", "completed")]
    assert isinstance(events[-1], ev.TurnFinished)


async def test_a_session_goes_on_in_the_next_process(tmp_path: Path) -> None:
    async with Keryx(model="scripted:demo", home=tmp_path) as app:
        session = await app.open()
        await (await session.send("remember 42")).result()
        session_id = session.session_id
    model = ScriptedModel([ScriptedReply(text="42")], name="scripted:demo")
    async with Keryx(model=model, home=tmp_path) as app:
        session = await app.open(session_id)
        await (await session.send("what was it?")).result()
    assert "remember 42" in str(history_of(model.asked[0])[0])


async def test_the_workspace_s_instructions_reach_the_model_and_the_log(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Always answer in Greek.")
    model = ScriptedModel([ScriptedReply(text="Nai."), ScriptedReply(text="Nai.")])
    async with Keryx(model=model, workspace=tmp_path, home=tmp_path / "home") as app:
        session = await app.open()
        await (await session.send("Hi")).result()
        await (await session.send("Hi again")).result()
        log = await app.store.events(session.session_id)
    assert "Always answer in Greek." in model.asked[0].system
    assert sum(isinstance(event, ev.PromptChanged) for event in log) == 1, "only when it changes"


async def test_a_reader_that_comes_late_gets_the_step_so_far(tmp_path: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedModel([ScriptedReply(text="Once upon a time", hold=gate.wait)])
    async with Keryx(model=model, home=tmp_path) as app:
        session = await app.open()
        turn = await session.send("Tell")
        text = ""
        async for event in turn.events():
            text += event.text if isinstance(event, ev.TextDelta) else ""
            if text == "Once upon a time":
                break
        async for event in turn.events():
            if isinstance(event, ev.StepSnapshot):
                assert event.text == "Once upon a time"
                gate.set()
        assert gate.is_set()


async def test_cancelling_says_how_the_turn_ended(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedReply(text="Once upon", hold=asyncio.Event().wait)])
    async with Keryx(model=model, home=tmp_path) as app:
        session = await app.open()
        turn = await session.send("Tell")
        async for event in turn.events():
            if isinstance(event, ev.TextDelta):
                break
        result = await turn.cancel()
        assert not isinstance(result, bool)
        assert (result.outcome, result.reason) == ("cancelled", "interrupt")


async def test_one_call_is_cancelled_and_the_turn_goes_on(tmp_path: Path) -> None:
    @tool(effects=NO_EFFECTS)
    async def wait_for_ever(context: ToolContext) -> None:
        """Wait."""
        context.emit("waiting")
        await asyncio.get_running_loop().create_future()

    model = ScriptedModel(
        [ScriptedReply(calls=[ScriptedCall("wait_for_ever")]), ScriptedReply(text="Gone on.")]
    )
    async with Keryx(model=model, tools=[wait_for_ever], home=tmp_path) as app:
        session = await app.open()
        turn = await session.send("Wait")
        async for event in turn.events():
            if isinstance(event, ev.CallOutput):
                assert await turn.cancel(call=event.call_id) is True
        result = await turn.result()
    assert (result.outcome, result.text) == ("completed", "Gone on.")
    assert result.calls[0].outcome == "cancelled"


async def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    async with Keryx(home=tmp_path) as app:
        with pytest.raises(DeveloperMustActError, match="no session 'nothing'"):
            await app.open("nothing")
        session = await app.open()
        result = await (await session.send("Hi")).result()
        assert result.error is not None
        assert result.error.kind == "not_configured"
        assert "OPENAI_API_KEY" in result.error.hint
    with pytest.raises(DeveloperMustActError, match="async with"):
        await app.open()
    (tmp_path / "config.toml").write_text("model = 3")
    with pytest.raises(UserMustActError, match=r"config\.toml"):
        await Keryx(home=tmp_path).__aenter__()


def test_the_blocking_library_works_from_any_thread(tmp_path: Path) -> None:
    results: list[str] = []
    with sync.Keryx(model="scripted:demo", home=tmp_path) as app:
        session = app.open()
        turn = session.send("Hi")
        kinds = {type(event) for event in turn.events()}
        assert {ev.TurnStarted, ev.StepReplied, ev.TurnFinished} <= kinds

        def elsewhere() -> None:
            results.append(session.send("Hi again").result(timeout=10).outcome)

        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        assert isinstance(next(session.events()), ev.SessionOpened)
    assert results == ["completed"]
