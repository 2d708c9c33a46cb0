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
from keryx.engine.steps.batch import Batch
from keryx.messages import NO_NEEDS, Needs
from keryx.ports.place import Place, Process
from keryx.ports.tool import Tool
from keryx.tools.function import FunctionTool
from tests.engine.host import recorder
from tests.sandbox import endless_import, process_tools
from tests.sandbox.worker_host import RecordingPlace, WorkerHost

pytestmark = pytest.mark.promise("tools.1")

TOOLS: list[Tool] = [
    endless_import.hang_in_import,
    *(built for built in vars(process_tools).values() if isinstance(built, FunctionTool)),
]
HANGS = [
    built.name for built in TOOLS if built.name.startswith("hang") and "until" not in built.name
]


@pytest_asyncio.fixture
async def host(tmp_path: Path) -> AsyncIterator[WorkerHost]:
    built = WorkerHost(tmp_path)
    yield built
    await built.close()


async def hanging(
    host: WorkerHost, name: str, *, scope: Scope | None = None
) -> tuple[CallEnvironment, Batch]:
    """A call that hangs by now."""
    environment = host.session(*TOOLS)
    batch = host.start(environment, host.call(name), scope=scope)
    await recorder(environment).until(
        lambda: process_tools.HANGING in recorder(environment).texts.get("c1", "")
    )
    return environment, batch


def test_there_are_many_ways_to_hang() -> None:
    assert len(HANGS) == 13


@pytest.mark.parametrize("name", HANGS)
async def test_whatever_hangs_is_dead_and_cancelled(host: WorkerHost, name: str) -> None:
    environment, batch = await hanging(host, name)
    assert batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason, outcome.started) == ("cancelled", "steer", True)
    assert outcome.text.strip() == process_tools.HANGING, "the output so far is kept"
    assert host.survivors() == []
    assert outcome.left_over == host.executor.left_over == ()
    assert (await host.one(environment, process_tools.echo, text="again")).text == "again"


async def test_a_warm_worker_that_was_cancelled_is_not_used_again(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    before = await host.one(environment, process_tools.pid)
    batch = host.start(environment, host.call(process_tools.hang_in_python))
    await recorder(environment).until(
        lambda: process_tools.HANGING in recorder(environment).texts.get("c2", "")
    )
    assert len(host.log.started) == 1, "it runs in the warm one"
    batch.cancel("c2")
    assert [outcome.outcome for outcome in await batch.outcomes()] == ["cancelled"]
    after = await host.one(environment, process_tools.pid)
    assert (after.outcome, len(host.log.started)) == ("completed", 2)
    assert after.text != before.text


async def test_a_worker_whose_tool_ignored_signals_once_heeds_them_again(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    first = await host.one(environment, process_tools.ignores_signals)
    assert (await host.one(environment, process_tools.pid)).text == first.text
    batch = host.start(environment, host.call(process_tools.cleans_up))
    await recorder(environment).until(
        lambda: process_tools.HANGING in recorder(environment).texts.get("c3", "")
    )
    batch.cancel("c3")
    await batch.outcomes()
    assert await host.bridge.to_thread((host.workspace / "clean").exists)


async def test_one_dies_while_the_other_goes_on(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    go = host.workspace / "go"
    batch = host.start(
        environment,
        host.call(process_tools.hang_without_signals),
        host.call(process_tools.prints_and_waits, go=str(go)),
    )
    await recorder(environment).until(lambda: len(recorder(environment).texts) == 2)
    batch.cancel("c1")
    await recorder(environment).until_noted("cancelled", "c1")
    await host.bridge.to_thread(go.touch)
    assert [outcome.outcome for outcome in await batch.outcomes()] == ["cancelled", "completed"]


async def test_a_whole_turn_is_cancelled_together(host: WorkerHost) -> None:
    turn = host.scope.child("session").child("turn")
    environment = host.session(*TOOLS)
    names = ("hang_in_python", "hang_without_signals", "hang_in_grandchild", "hang_in_await")
    batch = host.start(environment, *(host.call(name) for name in names), scope=turn)
    await recorder(environment).until(lambda: len(recorder(environment).texts) == len(names))
    turn.cancel("interrupt")
    assert {outcome.outcome for outcome in await batch.outcomes()} == {"cancelled"}
    assert host.survivors() == []


async def test_the_time_of_a_tool_is_over(host: WorkerHost) -> None:
    outcome = await host.one(host.session(*TOOLS), process_tools.hang_until_timeout)
    assert (outcome.outcome, outcome.reason) == ("cancelled", "timeout")
    assert host.survivors() == []


async def test_endless_output_is_bounded_and_stops(host: WorkerHost) -> None:
    environment = host.session(*TOOLS)
    batch = host.start(environment, host.call(process_tools.prints_for_ever))
    await recorder(environment).until(
        lambda: len(recorder(environment).texts.get("c1", "")) > 1_000_000
    )
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    assert "bytes left out" in outcome.text
    assert len(outcome.text) < 200_000
    assert host.survivors() == []


# -- tools that help


async def test_a_tool_that_asks_its_token_may_end_by_itself(host: WorkerHost) -> None:
    _, batch = await hanging(host, "hang_until_told")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "interrupt")
    assert outcome.text == "stopped: True", "what it returned is the partial result"
    assert host.survivors() == []


async def test_a_tool_that_was_done_says_so(host: WorkerHost) -> None:
    _, batch = await hanging(host, "was_done")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("completed", "all of it")
    assert host.survivors() == []


async def test_a_tool_that_does_not_ask_can_still_clean_up(
    host: WorkerHost, tmp_path: Path
) -> None:
    _, batch = await hanging(host, "cleans_up")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    assert await host.bridge.to_thread((tmp_path / "clean").exists)


async def test_a_tool_that_fails_meanwhile_is_cancelled_all_the_same(host: WorkerHost) -> None:
    _, batch = await hanging(host, "complains")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    assert outcome.text.endswith("could not clean up")


async def test_the_ladder_has_its_rungs_at_their_instants(tmp_path: Path, clock: FakeClock) -> None:
    host = WorkerHost(tmp_path, clock)
    environment = host.session(*TOOLS)
    batch = host.start(
        environment,
        host.call(process_tools.hang_in_python),
        host.call(process_tools.hang_without_signals),
    )
    await recorder(environment).until(lambda: len(recorder(environment).texts) == 2)
    for call_id in ("c1", "c2"):
        batch.cancel(call_id)
    await recorder(environment).until_noted("cancelled", "c1")  # SIGTERM comes at once
    clock.advance(GRACE * 0.9)
    assert host.executor.running == 1
    clock.advance(GRACE * 0.2)
    assert [outcome.outcome for outcome in await batch.outcomes()] == ["cancelled"] * 2
    assert host.survivors() == []
    await host.close()


# -- before it runs


class Slow(RecordingPlace):
    """A place that starts a process only after `go` is set."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.spawn_called, self.go = asyncio.Event(), asyncio.Event()

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
        self.spawn_called.set()
        await self.go.wait()
        return await super().spawn(
            argv, env=env, cwd=cwd, scope=scope, output=output, stdin=stdin, granted=granted
        )


async def test_a_call_whose_worker_has_not_started_yet_starts_none(host: WorkerHost) -> None:
    place = Slow(host.log)
    environment = host.session(*TOOLS, place=place)
    batch = host.start(environment, host.call(process_tools.pid))
    await place.spawn_called.wait()
    batch.cancel("c1")
    place.go.set()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("cancelled", "")
    assert host.survivors() == []
    assert (await host.one(host.session(*TOOLS), process_tools.echo, text="next")).text == "next"


async def test_closing_the_host_ends_a_call_that_runs(tmp_path: Path) -> None:
    host = WorkerHost(tmp_path)
    _, batch = await hanging(host, "hang_without_signals")
    await host.executor.close()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "shutdown")
    await host.close()
    assert host.survivors() == []


async def test_closing_the_workers_ends_a_call_that_runs(host: WorkerHost) -> None:
    _, batch = await hanging(host, "hang_without_signals")
    await host.workers().close()
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "failed"
    assert host.survivors() == []
