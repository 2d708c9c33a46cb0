"""A turn keeps what it started with, and goes on with it as often as its host is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.tool import Risk
from keryx.testing.modelserver import MODEL, ModelServer, Reply
from tests.app.hosts import Answers, result_of

FULL = ev.Usage(input_tokens=900, output_tokens=10)
STOPS = 4


def _low(args: Any, workspace: Path) -> Risk:
    return Risk("low", "it changes something")


async def events_until(
    events: AsyncGenerator[ev.Event], turn_id: str
) -> AsyncGenerator[ev.TurnFinished]:
    """The end of that turn, and nothing after it."""
    async for event in events:
        if isinstance(event, ev.TurnFinished) and event.turn_id == turn_id:
            yield event
            return


@pytest.mark.promise("mended.8")
async def test_a_change_of_settings_does_not_reach_the_running_turn(tmp_path: Path) -> None:
    running, go_on = asyncio.Event(), asyncio.Event()

    @tool(effects=NO_EFFECTS)
    async def wait() -> str:
        """Wait to be let go."""
        running.set()
        await go_on.wait()
        return "done"

    @tool(effects=NO_EFFECTS, risk=_low)
    async def change() -> str:
        """Change something."""
        return "changed"

    def script(request: ModelRequest) -> ScriptedReply:
        replies = {1: [ScriptedCall("wait")], 3: [ScriptedCall("change")]}
        return ScriptedReply(text="so", calls=replies.get(len(history_of(request)), []))

    model = ScriptedModel(script)
    async with Keryx(model=model, tools=[wait, change], home=tmp_path, workspace=tmp_path) as app:
        session = await app.open(effort="low", approvals="auto")
        turn = await session.send("go")
        await running.wait()
        await session.change(effort="high", approvals="ask", read_only=True, tools=())
        go_on.set()
        result = await result_of(turn)
        assert [call.outcome for call in result.calls] == ["completed", "completed"]
        assert [request.effort for request in model.asked] == ["low"] * 3
        await result_of(await session.send("and now?"))
        assert (model.asked[-1].effort, model.asked[-1].tools) == ("high", ())


@pytest.mark.promise("mended.8")
async def test_a_fallback_that_is_added_later_serves_older_sessions(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with ModelServer(Answers(always=Reply(text="Fine."))) as server:
        provider = f'[providers.one]\nbase_url = "{server.url}"\n'
        named = f'model = "one:{MODEL}"\n'
        (home / "config.toml").write_text(named + provider)
        async with Keryx(home=home, workspace=tmp_path) as app:
            session = await app.open()
            await result_of(await session.send("hello"))
            added = f'[models]\nfallback = ["one:{MODEL}-b"]\n'
            (home / "config.toml").write_text(named + added + provider)
            result = await result_of(await session.send("and now?"))
            assert (result.outcome, result.error) == ("completed", None)
            (home / "config.toml").write_text(named + provider)
            assert (await result_of(await session.send("and now?"))).outcome == "completed"


@pytest.mark.promise("mended.9")
async def test_a_turn_that_is_stopped_again_and_again_while_summing_up_is_not_parked(
    tmp_path: Path,
) -> None:
    summing, hold = asyncio.Event(), asyncio.Event()

    def script(request: ModelRequest) -> ScriptedReply:
        if "Sum up" in request.system:
            summing.set()
            return ScriptedReply(text="So far.", hold=hold.wait)
        return ScriptedReply(text="word " * 200, usage=FULL)

    def host() -> Keryx:
        model = ScriptedModel(script, window=1_000)
        return Keryx(model=model, tools=[], home=tmp_path, workspace=tmp_path)

    async with host() as app:
        session = await app.open()
        await result_of(await session.send("first"))
        turn = await session.send("second")
        await summing.wait()
    for _ in range(STOPS):
        summing.clear()
        async with host() as app:
            await summing.wait()
    hold.set()
    async with host() as app:
        session = await app.open(session.session_id)
        async with aclosing(session.events()) as events:
            ends = [event async for event in events_until(events, turn.turn_id)]
        assert [(event.outcome, event.reason) for event in ends] == [("completed", None)]
