"""Limits of money and tokens: per turn, session and day, checked before each request."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx import NO_EFFECTS, Keryx, ToolContext, tool
from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.app import TurnResult
from keryx.config import ConfigurationError, load
from keryx.messages import ToolMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.testing.modelserver import Call, ModelServer, Reply
from tests.app.hosts import PATIENCE
from tests.tools.agents.test_delegate import results_of, said

pytestmark = pytest.mark.promise("model.5")

USAGE = ev.Usage(input_tokens=90, output_tokens=10)


@tool(effects=NO_EFFECTS)
def look() -> str:
    """Look around."""
    return "nothing"


@tool(effects=NO_EFFECTS)
async def think(context: ToolContext) -> str:
    """Ask a model."""
    return await context.ask_model("extraction", "And?")


def configure(home: Path, **limits: float) -> None:
    home.mkdir(exist_ok=True, parents=True)
    lines = [f"{name} = {value}" for name, value in limits.items()]
    (home / "config.toml").write_text("\n".join(["[limits]", *lines]))


def endless(cost: float | None = 0.25, call: str = "look") -> ScriptedModel:
    """A model that calls a tool in each reply."""
    reply = ScriptedReply(calls=(ScriptedCall(call),), usage=USAGE, cost=cost)
    return ScriptedModel(lambda _: reply, is_priced=True)


def one_answer(cost: float | None = 0.25) -> ScriptedModel:
    return ScriptedModel(
        lambda _: ScriptedReply(text="Yes.", usage=USAGE, cost=cost), is_priced=True
    )


def refused(result: TurnResult) -> str:
    assert result.outcome == "failed"
    assert result.error is not None
    assert result.error.kind == "limit"
    return f"{result.error.message}; {result.error.hint}"


async def send(app: Keryx, text: str = "Go", session_id: str | None = None) -> TurnResult:
    session = await app.open(session_id)
    async with asyncio.timeout(PATIENCE):
        return await (await session.send(text)).result()


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("cost_per_turn", 1.0, "the limit of $1 for a turn is reached: $1.0000 was used"),
        ("cost_per_session", 1.0, "the limit of $1 for a session is reached: $1.0000 was used"),
        ("cost_per_day", 1.0, "the limit of $1 for a day is reached: $1.0000 was used"),
        ("tokens_per_session", 400, "the limit of 400 tokens for a session is reached: 400 were"),
        ("tokens_per_day", 400, "the limit of 400 tokens for a day is reached: 400 were used"),
    ],
)
async def test_each_limit_ends_the_turn_before_the_next_request_and_says_what_to_do(
    setting: str, value: float, words: str, tmp_path: Path
) -> None:
    configure(tmp_path / "home", **{setting: value})
    model = endless()
    async with Keryx(model=model, tools=[look], home=tmp_path / "home", workspace=tmp_path) as app:
        text = refused(await send(app))
    assert words in text
    assert f"raise limits.{setting} in config.toml" in text
    assert len(model.asked) == 4


async def test_a_limit_of_a_turn_leaves_the_next_turn_its_own(tmp_path: Path) -> None:
    configure(tmp_path / "home", cost_per_turn=0.5)
    model = endless()
    async with Keryx(model=model, tools=[look], home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        refused(await send(app, session_id=session.session_id))
        refused(await send(app, session_id=session.session_id))
    assert len(model.asked) == 4


async def test_a_day_counts_all_sessions_those_of_earlier_hosts_and_deleted_ones(
    tmp_path: Path,
) -> None:
    configure(tmp_path / "home", cost_per_day=0.75)
    model = one_answer()
    for deletes in (True, False):
        async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
            session = await app.open()
            result = await (await session.send("Hello")).result()
            assert result.outcome == "completed"
            if deletes:
                await app.delete(session.session_id)
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        assert (await send(app)).outcome == "completed"
        assert "for a day" in refused(await send(app))
    assert len(model.asked) == 3


async def test_a_raised_limit_holds_from_the_next_message_on(tmp_path: Path) -> None:
    configure(tmp_path / "home", cost_per_session=0.25)
    async with Keryx(model=one_answer(), home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        assert (await send(app, session_id=session.session_id)).outcome == "completed"
        refused(await send(app, session_id=session.session_id))
        configure(tmp_path / "home", cost_per_session=10)
        assert (await send(app, session_id=session.session_id)).outcome == "completed"


@pytest.mark.parametrize("setting", ["cost_per_turn", "cost_per_session", "cost_per_day"])
async def test_what_tools_ask_of_models_counts_and_is_refused_too(
    setting: str, tmp_path: Path
) -> None:
    """One step, one request of its call: then the call of the second step is refused."""
    configure(tmp_path / "home", **{setting: 0.75})

    def script(request: ModelRequest) -> ScriptedReply:
        calls = (ScriptedCall("think"),) if request.tools else ()
        return ScriptedReply(text="Hm.", calls=calls, usage=USAGE, cost=0.25)

    model = ScriptedModel(script, is_priced=True)
    async with Keryx(model=model, tools=[think], home=tmp_path / "home", workspace=tmp_path) as app:
        result = await send(app)
        cells = await app.store.usage_cells()
    refused(result)
    assert [call.outcome for call in result.calls] == ["completed", "failed"]
    assert "raise limits." in str(result.calls[1].result)
    assert len(model.asked) == 3
    assert {cell.purpose: cell.requests for cell in cells} == {"turn": 2, "extraction": 1}


@pytest.mark.parametrize("setting", ["cost_per_turn", "cost_per_session"])
async def test_child_agents_spend_what_their_parent_has(setting: str, tmp_path: Path) -> None:
    configure(tmp_path / "home", **{setting: 1.0})

    def script(request: ModelRequest) -> ScriptedReply:
        history = history_of(request)
        if said(history[0]) != "Parent":
            call = ScriptedCall("list_files", {"path": "."})
        else:
            assert not isinstance(history[-1], ToolMessage), "no request after the limit"
            call = ScriptedCall("delegate", {"tasks": [{"task": "one"}, {"task": "two"}]})
        return ScriptedReply(calls=(call,), usage=USAGE, cost=0.25)

    model = ScriptedModel(script, is_priced=True)
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        refused(await send(app, "Parent", session.session_id))
        results = await results_of(app, session.session_id)
    assert all("the limit of $1 for a" in result["problem"] for result in results)
    # One of the parent. Of two children that ask at once, one may be under way at the limit.
    assert 4 <= len(model.asked) <= 5


async def test_a_title_and_a_summary_are_not_asked_for_beyond_a_limit(tmp_path: Path) -> None:
    configure(tmp_path / "home", cost_per_session=0.25)
    model = one_answer()
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path, titles=True) as app:
        session = await app.open()
        assert (await send(app, session_id=session.session_id)).outcome == "completed"
        with pytest.raises(Exception, match="for a session is reached"):
            await session.compact()
    assert len(model.asked) == 1


async def test_a_model_without_a_price_is_named_when_a_session_starts(tmp_path: Path) -> None:
    configure(tmp_path / "home", cost_per_day=1.0)
    model = ScriptedModel(lambda _: ScriptedReply(text="Yes.", usage=USAGE))
    async with Keryx(model=model, home=tmp_path / "home", workspace=tmp_path) as app:
        session = await app.open()
        for _ in range(2):
            assert (await send(app, session_id=session.session_id)).outcome == "completed"
        started = [
            event.warnings
            for event in await app.store.events(session.session_id)
            if isinstance(event, ev.TurnStarted)
        ]
    assert "the price of scripted:demo is unknown" in started[0][0]
    assert started[1] == (), "it is said once"


async def test_public_prices_are_loaded_before_the_first_request_under_a_limit(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    configure(home, cost_per_turn=0.01)
    usage = ev.Usage(input_tokens=50_000, output_tokens=1_000)
    reply = Reply(calls=(Call("list_files", {"path": "."}),), usage=usage)
    async with ModelServer(lambda _: reply, models=["gpt-4o"]) as server:
        with (home / "config.toml").open("a") as file:
            file.write(
                f'\n[providers.one]\nbase_url = "{server.url}"\n'
                'priced_as = "https://api.openai.com/v1"\n'
            )
        async with Keryx(model="one:gpt-4o", home=home, workspace=tmp_path) as app:
            result = await send(app)
    assert result.cost is not None
    assert "for a turn is reached" in refused(result)


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "'much'"])
def test_a_limit_that_says_nothing_is_refused(value: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"[limits]\ncost_per_day = {value}\n")
    with pytest.raises(ConfigurationError, match="limits"):
        load(tmp_path, {})


# -- many sessions at once


class Till:
    """Counts replies in the order in which they end, and the limit that they may not pass."""

    def __init__(self, limit: float, costs: list[float]) -> None:
        self.limit = limit
        self._costs = costs
        self.total = 0.0
        self.after_limit: Counter[str] = Counter()
        """By session, the requests that ended after the limit was reached."""

    def model(self, pauses: list[int]) -> ScriptedModel:
        turns = iter(range(1_000_000))

        def script(request: ModelRequest) -> ScriptedReply:
            number, who = next(turns), said(history_of(request)[0])
            cost = self._costs[number % len(self._costs)]

            async def hold() -> None:
                for _ in range(pauses[number % len(pauses)]):
                    await asyncio.sleep(0)
                if self.total >= self.limit:
                    self.after_limit[who] += 1
                self.total += cost

            calls = (ScriptedCall("look"),)
            return ScriptedReply(calls=calls, usage=USAGE, cost=cost, hold=hold)

        return ScriptedModel(script, is_priced=True)


async def spend_together(home: Path, till: Till, model: ScriptedModel, sessions: int) -> None:
    async with (
        asyncio.timeout(PATIENCE),
        Keryx(model=model, tools=[look], home=home, workspace=home) as app,
    ):

        async def one(number: int) -> None:
            session = await app.open()
            assert "for a day" in refused(await (await session.send(f"s{number}")).result())

        async with asyncio.TaskGroup() as group:
            for number in range(sessions):
                group.create_task(one(number))
        spent = await app.store.spent()
    assert spent.cost == pytest.approx(till.total)
    assert till.total >= till.limit


# More than a limit has within the 200 steps that a turn may have.
COSTS = st.lists(st.floats(0.02, 0.5), min_size=1, max_size=5)
PAUSES = st.lists(st.integers(0, 20), min_size=1, max_size=5)


@settings(max_examples=15)
@given(costs=COSTS, pauses=PAUSES, sessions=st.integers(1, 8), limit=st.floats(0.1, 3.0))
def test_parallel_sessions_pass_a_limit_only_with_requests_under_way(
    tmp_path_factory: pytest.TempPathFactory,
    costs: list[float],
    pauses: list[int],
    sessions: int,
    limit: float,
) -> None:
    home = tmp_path_factory.mktemp("home")
    configure(home, cost_per_day=limit)
    till = Till(limit, costs)
    run_loop(spend_together(home, till, till.model(pauses), sessions))
    assert all(count == 1 for count in till.after_limit.values()), till.after_limit
    assert len(till.after_limit) < sessions
