"""What tools get from their session: resources that live as long as it, and models to ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from keryx import IN_MEMORY, Keryx, ToolContext, tool
from keryx import events as ev
from keryx.errors import ToolFailedError
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.model import ModelRequest
from keryx.ports.resources import ResourceContext
from keryx.ports.tool import Tool
from tests.app.hosts import PATIENCE, first, result_of


class Counter:
    """A resource that counts its uses, and notes its end."""

    def __init__(self) -> None:
        self.uses = 0
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True


class Creations:
    """Creates counters: how often, and when."""

    def __init__(self) -> None:
        self.counters: list[Counter] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.failure: Exception | None = None

    async def create(self, context: ResourceContext) -> Counter:
        assert not context.scope.is_cancelled
        self.begun.set()
        await self.may_end.wait()
        if self.failure is not None:
            raise self.failure
        self.counters.append(Counter())
        return self.counters[-1]


def calls_of(*names: str) -> ScriptedModel:
    """A model that calls these tools at once, and then stops."""

    def script(request: ModelRequest) -> ScriptedReply:
        if request.history[-1].startswith(b'{"role":"user"'):
            return ScriptedReply(calls=tuple(ScriptedCall(name, "{}") for name in names))
        return ScriptedReply(text="Done.")

    return ScriptedModel(script)


def using(creations: Creations) -> Tool:
    @tool(effects=NO_EFFECTS)
    async def use(context: ToolContext) -> int:
        """Use the counter."""
        counter = await context.resources.get("counter", creations.create)
        counter.uses += 1
        return counter.uses

    return use


async def outcomes(app: Keryx, session_id: str) -> Sequence[str]:
    log = await app.store.events(session_id)
    return [fact.outcome for fact in log if isinstance(fact, ev.CallFinished)]


async def test_calls_at_the_same_time_share_a_resource_that_ends_with_the_session(
    tmp_path: Path,
) -> None:
    creations = Creations()
    model = calls_of("use", "use", "use")
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, tools=[using(creations)], home=tmp_path, workspace=tmp_path) as app,
    ):
        one, two = await app.open(), await app.open()
        turn = await one.send("Go")
        await creations.begun.wait()
        creations.may_end.set()
        await result_of(turn)
        await result_of(await one.send("Again"))
        assert [counter.uses for counter in creations.counters] == [6]
        await result_of(await two.send("Go"))
        assert [counter.uses for counter in creations.counters] == [6, 3], "one for each session"
        await app.delete(one.session_id)
        assert [counter.is_closed for counter in creations.counters] == [True, False]
    assert creations.counters[1].is_closed


async def test_a_cancelled_call_does_not_end_the_creation_for_others(tmp_path: Path) -> None:
    creations = Creations()
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(
            model=calls_of("use", "use"),
            tools=[using(creations)],
            home=tmp_path,
            workspace=tmp_path,
        ) as app,
    ):
        session = await app.open()
        turn = await session.send("Go")
        await creations.begun.wait()
        log = await app.store.events(session.session_id)
        started = [fact.call_id for fact in log if isinstance(fact, ev.CallStarted)]
        await turn.cancel(call=started[0])
        creations.may_end.set()
        await result_of(turn)
        assert sorted(await outcomes(app, session.session_id)) == ["cancelled", "completed"]


async def test_a_creation_that_fails_is_tried_again_by_the_next_call(tmp_path: Path) -> None:
    creations = Creations()
    creations.failure = ToolFailedError("there is no counter here")
    creations.may_end.set()
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(
            model=calls_of("use", "use"),
            tools=[using(creations)],
            home=tmp_path,
            workspace=tmp_path,
        ) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Go"))
        assert await outcomes(app, session.session_id) == ["failed", "failed"]
        creations.failure = None
        await result_of(await session.send("Again"))
        assert (await outcomes(app, session.session_id))[2:] == ["completed", "completed"]


@tool(effects=NO_EFFECTS)
async def summarize(context: ToolContext) -> str:
    """Ask a model."""
    return await context.ask_model("search", "What is this?", system="You summarize.")


async def test_a_tool_asks_a_model_and_the_usage_is_logged_under_its_call(tmp_path: Path) -> None:
    def script(request: ModelRequest) -> ScriptedReply:
        if request.system == "You summarize.":
            return ScriptedReply(text="A test.", usage=ev.Usage(input_tokens=7, output_tokens=2))
        if request.history[-1].startswith(b'{"role":"user"'):
            return ScriptedReply(calls=(ScriptedCall("summarize", "{}"),))
        return ScriptedReply(text="Done.")

    async with (
        asyncio.timeout(PATIENCE),
        Keryx(
            model=ScriptedModel(script), tools=[summarize], home=tmp_path, workspace=tmp_path
        ) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Go"))
        log = await app.store.events(session.session_id)
    (ended,) = [fact for fact in log if isinstance(fact, ev.CallFinished)]
    (usage,) = [fact for fact in log if isinstance(fact, ev.UsageRecorded)]
    assert ended.result[0].text == "A test."  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert (usage.purpose, usage.call_id) == ("search", ended.call_id)
    assert usage.usage == ev.Usage(input_tokens=7, output_tokens=2)


async def test_a_model_that_is_not_configured_is_a_failed_call_that_says_what_to_do(
    tmp_path: Path,
) -> None:
    @tool(effects=NO_EFFECTS)
    async def ask(context: ToolContext) -> str:
        """Ask a model that is not there."""
        return await context.ask_model("mixture", "Hm?", model="nowhere:nothing")

    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=calls_of("ask"), tools=[ask], home=tmp_path, workspace=tmp_path) as app,
    ):
        session = await app.open()
        await result_of(await session.send("Go"))
        log = await app.store.events(session.session_id)
    (ended,) = [fact for fact in log if isinstance(fact, ev.CallFinished)]
    assert ended.outcome == "failed"
    assert "configure" in str(ended.result)


@pytest.mark.promise("kit.6")
async def test_a_question_that_its_tool_gives_up_expires(tmp_path: Path) -> None:
    is_asked = asyncio.Event()

    @tool(effects=NO_EFFECTS)
    async def give_up(context: ToolContext) -> str:
        """Ask, and do not wait for the answer."""
        asking = asyncio.create_task(context.ask("Which one?"))
        await is_asked.wait()
        asking.cancel()
        await asyncio.wait((asking,))
        return "I know it now"

    async with Keryx(
        model=calls_of("give_up"), tools=[give_up], workspace=tmp_path, home=IN_MEMORY
    ) as app:
        session = await app.open()
        turn = await session.send("go", attended=True)
        await first(turn, ev.QuestionAsked)
        is_asked.set()
        result = await result_of(turn)
        assert result.outcome == "completed"
        log = await app.store.events(session.session_id)
        (expired,) = [event for event in log if isinstance(event, ev.QuestionExpired)]
        assert expired.cause == "parent"
