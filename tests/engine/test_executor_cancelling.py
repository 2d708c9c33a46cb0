"""The executor: what is cancelled ends, with all below it; containers; grants; the end."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.scope import GRACE, Scope
from keryx.engine.calls.call import LATE
from keryx.errors import DeveloperMustActError, ToolCancelledError
from keryx.messages import CallOutcome
from keryx.ports.effects import NO_EFFECTS, Effects, uses, writes
from keryx.ports.tool import Complete
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.gated_tools import Gates, echo, echo_blocking, turns
from tests.engine.host import Host, recorder

# -- cancelling


async def test_one_call_is_cancelled_while_the_others_go_on(host: Host) -> None:
    gates = Gates()
    batch = host.start(
        host.environment(gates.tool), *(host.call(gates.tool, name=name) for name in "abc")
    )
    await turns()
    assert batch.cancel("c2", "interrupt", by="person") is True
    await gates.until_running("a", "c")
    gates.open("a", "c")
    assert [o.outcome for o in await batch.outcomes()] == ["completed", "cancelled", "completed"]
    assert batch.cancel("c2") is False
    assert batch.cancel("no such call") is False


async def test_cancelling_the_turn_cancels_all_also_those_that_wait(host: Host) -> None:
    gates = Gates(lambda args: writes("x"))
    turn = host.scope.child("turn")
    environment = host.environment(gates.tool)
    batch = host.start(
        environment, *(host.call(gates.tool, name=name) for name in "ab"), scope=turn
    )
    await gates.until_running("a")
    turn.cancel("steer")
    outcomes = await batch.outcomes()
    assert [(o.outcome, o.reason, o.started) for o in outcomes] == [
        ("cancelled", "steer", True),
        ("cancelled", "steer", False),
    ]
    assert len(environment.holdings) == 0


async def test_a_call_cancelled_while_it_waits_keeps_its_place_in_the_order(host: Host) -> None:
    gates = Gates(lambda args: Effects(exclusive=True) if not args.path else uses(args.path))
    batch = host.start(
        host.environment(gates.tool),
        host.call(gates.tool, name="first", path="a"),
        host.call(gates.tool, name="exclusive"),
        host.call(gates.tool, name="last", path="a"),
    )
    await gates.until_running("first")
    batch.cancel("c2")
    await turns()
    assert gates.running == ["first"], "the last one conflicts with the first"
    gates.open("first", "last")
    assert [o.outcome for o in await batch.outcomes()] == ["completed", "cancelled", "completed"]


async def test_a_batch_started_in_a_cancelled_turn_never_acts(host: Host) -> None:
    turn = host.scope.child("turn")
    turn.cancel("interrupt")
    (outcome,) = await host.run(host.environment(echo), host.call(echo, text="x"), scope=turn)
    assert (outcome.outcome, outcome.started) == ("cancelled", False)


async def test_a_loop_that_was_late_itself_calls_nothing_left_over_that_has_ended(
    host: Host,
) -> None:
    begun, stopping = asyncio.Event(), asyncio.Event()

    @tool(effects=NO_EFFECTS)
    async def tidy() -> str:
        """Clean up in a few steps."""
        begun.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            stopping.set()
            await turns()

    batch = host.start(host.environment(tidy), host.call(tidy))
    await begun.wait()
    batch.cancel("c1", "interrupt")
    await stopping.wait()
    time.sleep(GRACE + 2 * LATE)  # noqa: ASYNC251 (the loop gets no processor, as on a full machine)
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.left_over) == ("cancelled", ())


async def test_what_was_emitted_survives_as_the_partial_result(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def half(context: ToolContext) -> str:
        """Do half of it."""
        context.emit("half of it")
        await asyncio.get_running_loop().create_future()
        return "all of it"

    environment = host.environment(half)
    batch = host.start(environment, host.call(half))
    await recorder(environment).until_noted("output", "c1")
    batch.cancel("c1")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.text) == ("cancelled", "half of it")


@pytest.mark.parametrize("complete", [False, True])
async def test_a_value_returned_within_the_grace_is_partial_unless_marked_complete(
    host: Host, *, complete: bool
) -> None:
    entered = threading.Event()

    @tool(effects=NO_EFFECTS)
    def listen(context: ToolContext) -> Any:
        """Listen to the token."""
        entered.set()
        context.token.wait_cancelled_sync()
        return Complete("done") if complete else "so far"

    batch = host.start(host.environment(listen), host.call(listen))
    await host.bridge.to_thread(entered.wait)
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    expected = ("completed", "done", None) if complete else ("cancelled", "so far", "steer")
    assert (outcome.outcome, outcome.text, outcome.reason) == expected


async def test_a_timeout_counts_from_the_start_of_the_call(host: Host) -> None:
    @tool(effects=NO_EFFECTS, timeout=0.01)
    async def slow(context: ToolContext) -> None:
        """Take too long."""
        context.emit("so far")
        await asyncio.get_running_loop().create_future()

    (outcome,) = await host.run(host.environment(slow), host.call(slow))
    assert (outcome.outcome, outcome.reason, outcome.text) == ("cancelled", "timeout", "so far")


async def test_a_tool_may_let_the_cancellation_error_pass(host: Host) -> None:
    entered = threading.Event()

    @tool(effects=NO_EFFECTS)
    def check(context: ToolContext) -> None:
        """Ask, in a loop, as the report's tools do."""
        entered.set()
        while True:
            context.token.raise_if_cancelled()

    batch = host.start(host.environment(check), host.call(check))
    await host.bridge.to_thread(entered.wait)
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason, outcome.text) == ("cancelled", "steer", "")


async def test_a_tool_cannot_claim_a_cancellation_that_was_not(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def lie(kind: str) -> None:
        """Claim to be cancelled."""
        raise asyncio.CancelledError if kind == "asyncio" else ToolCancelledError("interrupt")

    environment = host.environment(lie)
    outcomes = await host.run(
        environment, host.call(lie, kind="asyncio"), host.call(lie, kind="ours")
    )
    assert [outcome.outcome for outcome in outcomes] == ["failed", "failed"]


# -- containers


@tool(effects=NO_EFFECTS, container=True)
async def fan_out(names: list[str], context: ToolContext) -> list[str]:
    """Call echo for each name at once."""
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(context.call("echo", {"text": name})) for name in names]
    return [call.result().text for call in calls]


async def test_a_container_calls_tools_side_by_side_each_with_an_id_of_its_own(host: Host) -> None:
    environment = host.environment(fan_out, echo)
    (outcome,) = await host.run(environment, host.call(fan_out, names=["a", "b", "c"]))
    assert outcome.text == '["a","b","c"]'
    assert {call_id for what, call_id in recorder(environment).log if what == "completed"} == {
        "c1",
        "c1.1",
        "c1.2",
        "c1.3",
    }


async def test_nested_calls_of_an_exclusive_container_run(host: Host) -> None:
    @tool(container=True)
    async def exclusive(context: ToolContext) -> str:
        """Call an exclusive leaf from an exclusive container."""
        return (await context.call("leaf", {})).text

    @tool
    async def leaf() -> str:
        """Undeclared, so exclusive."""
        return "ran"

    outcomes = await host.run(
        host.environment(exclusive, leaf),
        host.call(exclusive),
        host.call(exclusive),
        host.call(leaf),
    )
    assert [outcome.text for outcome in outcomes] == ["ran", "ran", "ran"]


async def test_only_a_container_may_call(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def sneaky(context: ToolContext) -> None:
        """Not a container."""
        await context.call("echo", {"text": "x"})

    (outcome,) = await host.run(host.environment(sneaky, echo), host.call(sneaky))
    assert outcome.outcome == "failed"
    assert "container=True" in outcome.text


async def test_cancelling_a_container_cancels_what_it_called(host: Host) -> None:
    gates = Gates()

    @tool(effects=NO_EFFECTS, container=True)
    async def outer(context: ToolContext) -> None:
        """Call and wait."""
        await context.call("gate", {"name": "inner"})

    environment = host.environment(outer, gates.tool)
    batch = host.start(environment, host.call(outer))
    await recorder(environment).until_noted("starting", "c1.1")
    await turns()
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert outcome.outcome == "cancelled"
    assert gates.running == []
    ends = [entry for entry in recorder(environment).log if entry[0] == "cancelled"]
    assert ends == [("cancelled", "c1.1"), ("cancelled", "c1")], "the inner one ends first"


async def test_a_container_that_returns_early_takes_its_calls_with_it(host: Host) -> None:
    gates = Gates()
    tasks: list[asyncio.Task[CallOutcome]] = []

    @tool(effects=NO_EFFECTS, container=True)
    async def hasty(context: ToolContext) -> str:
        """Return without waiting."""
        tasks.append(asyncio.create_task(context.call("gate", {"name": "inner"})))
        await turns()
        return "done"

    environment = host.environment(hasty, gates.tool)
    (outcome,) = await host.run(environment, host.call(hasty))
    assert (outcome.outcome, outcome.text) == ("completed", "done")
    assert (await tasks[0]).outcome == "cancelled"
    assert gates.running == []


async def test_giving_up_on_a_nested_call_cancels_it(host: Host) -> None:
    gates = Gates()

    @tool(effects=NO_EFFECTS, container=True)
    async def impatient(context: ToolContext) -> str:
        """Wait only a moment."""
        try:
            async with asyncio.timeout(0.01):
                await context.call("gate", {"name": "inner"})
        except TimeoutError:
            return "gave up"
        return "waited"

    environment = host.environment(impatient, gates.tool)
    (outcome,) = await host.run(environment, host.call(impatient))
    assert outcome.text == "gave up"
    assert ("cancelled", "c1.1") in recorder(environment).log


async def test_a_container_that_calls_itself_for_ever_fails(host: Host) -> None:
    @tool(effects=NO_EFFECTS, container=True)
    async def deeper(context: ToolContext) -> str:
        """Call itself."""
        return (await context.call("deeper", {})).text

    (outcome,) = await host.run(host.environment(deeper), host.call(deeper))
    assert "nested 16 levels deep" in outcome.text


# -- grants, ids, the end


async def test_no_tools_granted_means_no_tools(host: Host) -> None:
    (outcome,) = await host.run(host.environment(), host.call("echo", text="x"))
    assert (outcome.outcome, outcome.started) == ("failed", False)
    assert "this session has no tools" in outcome.text


async def test_two_calls_of_a_step_cannot_share_an_id(host: Host) -> None:
    call = host.call(echo, text="x")
    with pytest.raises(DeveloperMustActError, match="same id"):
        host.start(host.environment(echo), call, call)


async def test_closing_ends_all_calls_with_reason_shutdown(tmp_path: Path, host: Host) -> None:
    gates = Gates()
    batch = host.start(host.environment(gates.tool), host.call(gates.tool, name="a"))
    await turns()
    assert await host.executor.close() == ()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("cancelled", "shutdown")


async def test_tables_are_empty_when_all_is_done(host: Host) -> None:
    environment = host.environment(fan_out, echo, echo_blocking)
    turn = host.scope.child("turn")
    await host.run(environment, *(host.call(echo, text=str(n)) for n in range(50)), scope=turn)
    await host.run(
        environment, *(host.call(echo_blocking, text=str(n)) for n in range(50)), scope=turn
    )
    await host.run(environment, host.call(fan_out, names=["a"] * 20), scope=turn)
    assert host.executor.running == 0
    assert len(environment.holdings) == 0
    assert turn.children == ()
    assert len(host.scope.deadlines) == 0
    assert isinstance(turn, Scope)
