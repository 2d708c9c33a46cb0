"""Calls that a person runs, with no model: accepted once, durable, never run twice by a crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.approvals import Approvals
from keryx.messages import Text
from keryx.ports.dispatch import Done
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool import Replay, Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.sessions import Recording, SessionHost, until

Make = Callable[..., SessionHost]


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Make]:
    session_hosts: list[SessionHost] = []

    def make_one(*args: Any, **kwargs: Any) -> SessionHost:
        session_hosts.append(SessionHost(*args, **kwargs))
        return session_hosts[-1]

    yield make_one
    for session_host in session_hosts:
        await session_host.close()


def run(name: str, arguments: str = "{}", call_id: str = "k1") -> cm.RunCall:
    return cm.RunCall(
        command_id=f"c-{call_id}",
        session_id="s1",
        by="ann",
        call_id=call_id,
        tool=name,
        arguments=arguments,
    )


class Counting:
    """A tool that counts how often it ran, and waits for its gate."""

    def __init__(self, replay: Replay) -> None:
        self.times = 0
        self.gate = asyncio.Event()

        @tool(name="count", effects=NO_EFFECTS, replay=replay)
        async def count(context: ToolContext) -> str:
            """Count."""
            self.times += 1
            context.emit("begun\n")
            await self.gate.wait()
            return "counted"

        self.tool: Tool = count


async def test_it_runs_once_without_a_model_and_is_logged(make: Make) -> None:
    counting = Counting("never")
    session_host = make([], tools=[counting.tool])
    session = await session_host.open()
    counting.gate.set()
    assert await session.tell(run("count")) == Done(True)
    assert await session.tell(run("count")) == Done(True)
    finished = await until(session, ev.CallFinished)
    log = await session_host.log(session)
    started = next(event for event in log if isinstance(event, ev.CallStarted))
    assert (started.by, started.turn_id, started.step_id) == ("ann", None, None)
    assert (finished.outcome, finished.result) == ("completed", (Text("counted"),))
    assert counting.times == 1
    assert await session_host.store.pending("s1") == []
    assert await session.tell(run("count")) == Done(True), "the same command is the same command"
    assert counting.times == 1


async def test_it_runs_beside_a_turn_and_can_be_cancelled(make: Make) -> None:
    counting = Counting("never")
    session_host = make([], tools=[counting.tool])
    session = await session_host.open()
    await session.tell(run("count"))
    await until(session, ev.CallStarted)
    cancel = cm.CancelCall(command_id="x", session_id="s1", by="ann", call_id="k1")
    assert await session.tell(cancel) == Done(True)
    finished = await until(session, ev.CallFinished)
    assert (finished.outcome, finished.reason) == ("cancelled", "interrupt")


async def test_after_a_crash_one_that_had_started_is_unknown(make: Make) -> None:
    counting = Counting("never")
    session_host = make([], tools=[counting.tool], store=Recording())
    session = await session_host.open()
    await session.tell(run("count"))
    await until(session, ev.CallStarted)
    again = make([], tools=[counting.tool], store=session_host.store)
    session = await again.open()
    finished = await until(session, ev.CallFinished)
    assert (finished.outcome, finished.reason) == ("unknown", "crash")
    assert counting.times == 1
    assert await session_host.store.pending("s1") == []


@pytest.mark.promise("walls.13")
async def test_after_a_crash_nobody_is_asked_for_what_a_lost_container_wanted(make: Make) -> None:
    @tool(container=True, effects=NO_EFFECTS, replay="never")
    async def outer(context: ToolContext) -> str:
        """Call another tool."""
        return (await context.call("risky", {})).outcome

    @tool(effects=NO_EFFECTS, risk=Risk("high", "does harm"))
    async def risky() -> str:
        """Do harm."""
        return "done"

    judge = Approvals(mode="auto")
    session_host = make([], tools=[outer, risky], judge=judge)
    session = await session_host.open()
    await session.tell(run("outer"))
    approval = await until(session, ev.ApprovalAsked)
    row = await session_host.store.session("s1")
    assert row is not None
    assert (approval.parent, row.state) == ("k1", "waiting")
    after = make([], store=session_host.store, tools=[outer, risky], judge=judge)
    resumed = await after.open()
    await resumed.read_inbox()
    finished = await until(resumed, ev.CallFinished)
    assert (finished.outcome, finished.reason) == ("unknown", "crash")
    expired = await until(resumed, ev.ApprovalExpired)
    assert (expired.approval_id, expired.cause) == (approval.approval_id, "parent")
    row = await after.store.session("s1")
    assert row is not None
    assert row.state == "idle"


@pytest.mark.promise("walls.12")
async def test_what_a_call_asks_is_denied_at_once_if_nobody_attends_to_it(make: Make) -> None:
    @tool(effects=NO_EFFECTS, risk=Risk("high", "does harm"))
    async def risky() -> str:
        """Do harm."""
        return "done"

    session_host = make([], tools=[risky], judge=Approvals(mode="auto"))
    session = await session_host.open()
    await session.tell(msgspec.structs.replace(run("risky"), attended=False))
    finished = await until(session, ev.CallFinished)
    assert finished.outcome == "denied"
    reason = finished.reason or ""
    assert reason.startswith("undelivered: it needs approval, and nobody is there to answer")


async def test_after_a_crash_one_that_is_safe_runs_again(make: Make) -> None:
    counting = Counting("safe")
    session_host = make([], tools=[counting.tool], store=Recording())
    session = await session_host.open()
    await session.tell(run("count"))
    await until(session, ev.CallStarted)
    counting.gate.set()
    again = make([], tools=[counting.tool], store=session_host.store)
    session = await again.open()
    finished = await until(session, ev.CallFinished)
    assert finished.outcome == "completed"
    assert counting.times == 2


async def test_one_that_was_accepted_and_never_started_runs_at_the_next_start(make: Make) -> None:
    counting = Counting("never")
    store = Recording()
    session_host = make([], tools=[counting.tool], store=store)
    await (await session_host.open()).close()
    from keryx.engine.log.dedup import row_of

    await store.enter("s1", row_of(run("count")))
    counting.gate.set()
    again = make([], tools=[counting.tool], store=store)
    session = await again.open()
    finished = await until(session, ev.CallFinished)
    assert finished.outcome == "completed"
    assert counting.times == 1


async def test_an_unknown_tool_fails_with_a_clear_text(make: Make) -> None:
    session_host = make([])
    session = await session_host.open()
    await session.tell(run("nothing"))
    finished = await until(session, ev.CallFinished)
    assert finished.outcome == "failed"
    assert "this session has no tools" in str(finished.result)


async def test_a_defect_before_the_call_ends_the_call_and_not_the_session(make: Make) -> None:
    counting = Counting("never")
    session_host = make([], tools=[counting.tool])
    counting.gate.set()
    session = await session_host.open()

    async def broken(settings: object, workspace: str) -> None:
        raise RuntimeError("the disk is on fire")

    reports: list[dict[str, Any]] = []

    def report(loop: asyncio.AbstractEventLoop, details: dict[str, Any]) -> None:
        del loop
        reports.append(details)

    asyncio.get_running_loop().set_exception_handler(report)
    prepared, session_host.services.prepare_calls = session_host.services.prepare_calls, broken
    assert await session.tell(run("count")) == Done(True)
    finished = await until(session, ev.CallFinished)
    assert (finished.outcome, finished.started) == ("failed", False)
    assert "the disk is on fire" in str(finished.result)
    assert len(reports) == 1
    session_host.services.prepare_calls = prepared
    assert await session.tell(run("count", call_id="k2")) == Done(True)
    started = await until(session, ev.CallStarted)
    assert started.call_id == "k2"
