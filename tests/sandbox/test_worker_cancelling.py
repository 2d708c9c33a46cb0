"""Cancelling calls in processes of their own: all are dead and `cancelled`, whatever they do.

How long it takes is measured by `benchmarks/workers.py`; here the outcome is proved.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from keryx.aio.capture import OutputSink
from keryx.aio.clock import FakeClock
from keryx.aio.scope import GRACE, Scope
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.executor import Batch
from keryx.messages import NO_NEEDS, Needs
from keryx.ports.place import Place, Process
from keryx.ports.tool import Tool
from keryx.tools.function import FunctionTool
from tests.engine.host import recorder
from tests.sandbox import endless_import, toolbox
from tests.sandbox.shop import Ledger, Shop

pytestmark = pytest.mark.promise("tools.1")

TOOLS: list[Tool] = [
    endless_import.hang_in_import,
    *(made for made in vars(toolbox).values() if isinstance(made, FunctionTool)),
]
HANGS = [made.name for made in TOOLS if made.name.startswith("hang") and "until" not in made.name]


@pytest_asyncio.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    made = Shop(tmp_path)
    yield made
    await made.close()


async def hanging(
    shop: Shop, name: str, *, scope: Scope | None = None
) -> tuple[CallEnvironment, Batch]:
    """A call that hangs by now."""
    environment = shop.session(*TOOLS)
    batch = shop.start(environment, shop.call(name), scope=scope)
    await recorder(environment).until(
        lambda: toolbox.HANGING in recorder(environment).texts.get("c1", "")
    )
    return environment, batch


def test_there_are_many_ways_to_hang() -> None:
    assert len(HANGS) == 13


@pytest.mark.parametrize("name", HANGS)
async def test_whatever_hangs_is_dead_and_cancelled(shop: Shop, name: str) -> None:
    environment, batch = await hanging(shop, name)
    assert batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason, outcome.started) == ("cancelled", "steer", True)
    assert outcome.text.strip() == toolbox.HANGING, "the output so far is kept"
    assert shop.survivors() == []
    assert outcome.left_over == shop.executor.left_over == ()
    assert (await shop.one(environment, toolbox.echo, text="again")).text == "again"


async def test_a_warm_worker_that_was_cancelled_is_not_used_again(shop: Shop) -> None:
    environment = shop.session(*TOOLS)
    before = await shop.one(environment, toolbox.pid)
    batch = shop.start(environment, shop.call(toolbox.hang_in_python))
    await recorder(environment).until(
        lambda: toolbox.HANGING in recorder(environment).texts.get("c2", "")
    )
    assert len(shop.log.started) == 1, "it runs in the warm one"
    batch.cancel("c2")
    assert [outcome.outcome for outcome in await batch.outcomes()] == ["cancelled"]
    after = await shop.one(environment, toolbox.pid)
    assert (after.outcome, len(shop.log.started)) == ("completed", 2)
    assert after.text != before.text


async def test_a_worker_whose_tool_ignored_signals_once_heeds_them_again(shop: Shop) -> None:
    environment = shop.session(*TOOLS)
    first = await shop.one(environment, toolbox.ignores_signals)
    assert (await shop.one(environment, toolbox.pid)).text == first.text
    batch = shop.start(environment, shop.call(toolbox.cleans_up))
    await recorder(environment).until(
        lambda: toolbox.HANGING in recorder(environment).texts.get("c3", "")
    )
    batch.cancel("c3")
    await batch.outcomes()
    assert await shop.bridge.to_thread((shop.workspace / "clean").exists)


async def test_one_dies_while_the_other_goes_on(shop: Shop) -> None:
    environment = shop.session(*TOOLS)
    go = shop.workspace / "go"
    batch = shop.start(
        environment,
        shop.call(toolbox.hang_without_signals),
        shop.call(toolbox.prints_and_waits, go=str(go)),
    )
    await recorder(environment).until(lambda: len(recorder(environment).texts) == 2)
    batch.cancel("c1")
    await recorder(environment).until_noted("cancelled", "c1")
    await shop.bridge.to_thread(go.touch)
    assert [outcome.outcome for outcome in await batch.outcomes()] == ["cancelled", "completed"]


async def test_a_whole_turn_is_cancelled_together(shop: Shop) -> None:
    turn = shop.scope.child("session").child("turn")
    environment = shop.session(*TOOLS)
    names = ("hang_in_python", "hang_without_signals", "hang_in_grandchild", "hang_in_await")
    batch = shop.start(environment, *(shop.call(name) for name in names), scope=turn)
    await recorder(environment).until(lambda: len(recorder(environment).texts) == len(names))
    turn.cancel("interrupt")
    assert {outcome.outcome for outcome in await batch.outcomes()} == {"cancelled"}
    assert shop.survivors() == []


async def test_the_time_of_a_tool_is_over(shop: Shop) -> None:
    outcome = await shop.one(shop.session(*TOOLS), toolbox.hang_until_timeout)
    assert (outcome.outcome, outcome.reason) == ("cancelled", "timeout")
    assert shop.survivors() == []


async def test_endless_output_is_bounded_and_stops(shop: Shop) -> None:
    environment = shop.session(*TOOLS)
    batch = shop.start(environment, shop.call(toolbox.prints_for_ever))
    await recorder(environment).until(
        lambda: len(recorder(environment).texts.get("c1", "")) > 1_000_000
    )
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    assert "bytes left out" in outcome.text
    assert len(outcome.text) < 200_000
    assert shop.survivors() == []


# -- tools that help


async def test_a_tool_that_asks_its_token_may_end_by_itself(shop: Shop) -> None:
    _, batch = await hanging(shop, "hang_until_told")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "interrupt")
    assert outcome.text == "stopped: True", "what it returned is the partial result"
    assert shop.survivors() == []


async def test_a_tool_that_was_done_says_so(shop: Shop) -> None:
    _, batch = await hanging(shop, "was_done")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("completed", "all of it")
    assert shop.survivors() == []


async def test_a_tool_that_does_not_ask_can_still_clean_up(shop: Shop, tmp_path: Path) -> None:
    _, batch = await hanging(shop, "cleans_up")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    assert await shop.bridge.to_thread((tmp_path / "clean").exists)


async def test_a_tool_that_fails_meanwhile_is_cancelled_all_the_same(shop: Shop) -> None:
    _, batch = await hanging(shop, "complains")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    assert outcome.text.endswith("could not clean up")


async def test_the_ladder_has_its_rungs_at_their_instants(tmp_path: Path, clock: FakeClock) -> None:
    shop = Shop(tmp_path, clock)
    environment = shop.session(*TOOLS)
    batch = shop.start(
        environment, shop.call(toolbox.hang_in_python), shop.call(toolbox.hang_without_signals)
    )
    await recorder(environment).until(lambda: len(recorder(environment).texts) == 2)
    for call_id in ("c1", "c2"):
        batch.cancel(call_id)
    await recorder(environment).until_noted("cancelled", "c1")  # SIGTERM comes at once
    clock.advance(GRACE * 0.9)
    assert shop.executor.running == 1
    clock.advance(GRACE * 0.2)
    assert [outcome.outcome for outcome in await batch.outcomes()] == ["cancelled"] * 2
    assert shop.survivors() == []
    await shop.close()


# -- before it runs


class Slow(Ledger):
    """A place that starts nothing before it is told to."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        scope: Scope | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
        granted: Needs = NO_NEEDS,
    ) -> Process:
        self.asked.set()
        await self.go.wait()
        return await super().spawn(
            argv, env=env, cwd=cwd, scope=scope, output=output, stdin=stdin, granted=granted
        )


async def test_a_call_whose_worker_has_not_started_yet_starts_none(shop: Shop) -> None:
    place = Slow(shop.log)
    environment = shop.session(*TOOLS, place=place)
    batch = shop.start(environment, shop.call(toolbox.pid))
    await place.asked.wait()
    batch.cancel("c1")
    place.go.set()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("cancelled", "")
    assert shop.survivors() == []
    assert (await shop.one(shop.session(*TOOLS), toolbox.echo, text="next")).text == "next"


async def test_closing_the_host_ends_a_call_that_runs(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    _, batch = await hanging(shop, "hang_without_signals")
    await shop.executor.close()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "shutdown")
    await shop.close()
    assert shop.survivors() == []


async def test_closing_the_workers_ends_a_call_that_runs(shop: Shop) -> None:
    _, batch = await hanging(shop, "hang_without_signals")
    await shop.workers().close()
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "failed"
    assert shop.survivors() == []
