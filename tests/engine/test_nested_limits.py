"""What bounds the calls of a container: their deadlines, and how many have processes at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from keryx.aio.clock import FakeClock
from keryx.aio.scope import Scope
from keryx.engine.executor import CONTAINER_STARTS, STARTS, Executor
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.effects import EXCLUSIVE, NO_EFFECTS
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.host import Host, recorder

SECONDS = 10.0


# -- deadlines


async def timed(tmp_path: Path, *, holds: bool) -> CallOutcome:
    """A nested call that was given a shorter time by its caller than it asks for itself."""
    clock = FakeClock()
    host = Host(tmp_path, clock)
    begun, ended = asyncio.Event(), list[CallOutcome]()

    @tool(effects=EXCLUSIVE)
    async def patient(context: ToolContext) -> None:
        """Take an hour."""
        context.cancel_after(3600)
        begun.set()
        await context.token.wait_cancelled()

    @tool(effects=EXCLUSIVE)
    async def holding(context: ToolContext) -> None:
        """Let nobody else begin."""
        begun.set()
        await context.token.wait_cancelled()

    @tool(effects=NO_EFFECTS, container=True)
    async def script(context: ToolContext) -> None:
        """Call one of them."""
        if holds:
            async with asyncio.TaskGroup() as group:
                first = group.create_task(context.call("holding", b"{}"))
                await begun.wait()
                ended.append(await context.call("patient", b"{}", timeout=SECONDS))
                first.cancel()
        else:
            ended.append(await context.call("patient", b"{}", timeout=SECONDS))

    environment = host.environment(patient, holding, script)
    batch = host.start(environment, host.call(script))
    await begun.wait()
    while host.executor.running < (3 if holds else 2):  # noqa: ASYNC110 (nothing tells that one waits)
        await asyncio.sleep(0)
    clock.advance(SECONDS - 0.1)
    await asyncio.sleep(0)
    assert ended == []
    clock.advance(0.1)
    await batch.outcomes()
    await host.close()
    return ended[0]


async def test_a_nested_call_ends_when_its_caller_said_whatever_it_says_itself(
    tmp_path: Path,
) -> None:
    outcome = await timed(tmp_path, holds=False)
    assert (outcome.outcome, outcome.reason, outcome.started) == ("cancelled", "timeout", True)


async def test_so_does_one_that_still_waits_for_others(tmp_path: Path) -> None:
    outcome = await timed(tmp_path, holds=True)
    assert (outcome.outcome, outcome.reason, outcome.started) == ("cancelled", "timeout", False)


async def test_json_text_is_for_the_tool_alone_to_decode(host: Host) -> None:
    @tool(effects=NO_EFFECTS)
    async def add(numbers: list[int]) -> int:
        """Add them up."""
        return sum(numbers)

    @tool(effects=NO_EFFECTS, container=True)
    async def script(context: ToolContext, text: str) -> str:
        """Call it with that."""
        ended = await context.call("add", text.encode())
        return f"{ended.outcome}: {ended.text}"

    environment = host.environment(add, script)
    texts = ('{"numbers":[1,2]}', '{"numbers":{}}', '{"numbers":[1,', "[]", "")
    good, *bad = await host.run(environment, *(host.call(script, text=text) for text in texts))
    assert good.text == "completed: 3"
    assert all(outcome.text.startswith("failed: arguments of `add`") for outcome in bad)


# -- processes


async def test_calls_that_start_processes_wait_past_a_number_of_them(host: Host) -> None:
    gate, full = asyncio.Event(), asyncio.Event()
    running = most = 0

    @tool(effects=NO_EFFECTS)
    async def hold(context: ToolContext) -> int | None:
        """Have a process until the gate opens."""
        nonlocal running, most
        async with await context.place.spawn(["true"]) as process:
            running += 1
            most = max(most, running)
            if running == STARTS:
                full.set()
            await gate.wait()
            ended = await process.wait()
            running -= 1
        return ended.code

    @tool(effects=NO_EFFECTS)
    async def short() -> str:
        """Start nothing."""
        return "done"

    environment, other = host.environment(hold, short), host.environment(hold, session_id="other")
    batch = host.start(environment, *(host.call(hold) for _ in range(STARTS + 20)))
    await full.wait()
    await recorder(environment).until(
        lambda: sum(what == "starting" for what, _ in recorder(environment).log) == STARTS + 20
    )
    assert [outcome.text for outcome in await host.run(environment, host.call(short))] == ["done"]
    beside = host.start(other, host.call(hold))
    await recorder(other).until(lambda: bool(recorder(other).log))
    assert running in (STARTS, STARTS + 1), "only the other session's may have come"
    gate.set()
    assert [outcome.text for outcome in await batch.outcomes()] == ["0"] * (STARTS + 20)
    assert [outcome.text for outcome in await beside.outcomes()] == ["0"]
    assert most <= STARTS + 1


async def test_containers_with_processes_do_not_wait_for_those_above_them(host: Host) -> None:
    together = asyncio.Barrier(CONTAINER_STARTS)

    @tool(effects=NO_EFFECTS, container=True)
    async def inner(context: ToolContext) -> int | None:
        """Run one."""
        async with await context.place.spawn(["true"]) as process:
            return (await process.wait()).code

    @tool(effects=NO_EFFECTS, container=True)
    async def outer(context: ToolContext) -> Any:
        """Run one, and call another that does, when as many as may do so."""
        async with await context.place.spawn(["true"]) as process:
            await process.wait()
            await together.wait()
            return (await context.call("inner", {})).text

    environment = host.environment(inner, outer)
    calls = [host.call(outer) for _ in range(2 * CONTAINER_STARTS)]
    assert [outcome.text for outcome in await host.run(environment, *calls)] == ["0"] * len(calls)


async def test_a_call_with_several_processes_counts_once_and_nothing_is_lost(host: Host) -> None:
    @tool(effects=NO_EFFECTS, container=True)
    async def two(context: ToolContext) -> list[int | None]:
        """Start two at once. It needs no slot of the loop, so many want to at the same time."""

        async def one() -> int | None:
            async with await context.place.spawn(["true"]) as process:
                return (await process.wait()).code

        return list(await asyncio.gather(one(), one()))

    @tool(effects=NO_EFFECTS)
    async def endless(context: ToolContext) -> None:
        """Start one that does not end."""
        async with await context.place.spawn(["sleep", "1000"]) as process:
            context.emit("runs")
            await process.wait()

    scope = Scope("narrow")
    narrow = Executor(scope, host.bridge, loop_slots=2)
    environment = host.environment(two, endless)
    batch = narrow.start(
        environment, [ToolCall(f"e{n}", "endless") for n in range(3)], scope.child("t")
    )
    await recorder(environment).until(lambda: len(recorder(environment).texts) == 2)
    for number in range(3):
        batch.cancel(f"e{number}")
    assert {outcome.outcome for outcome in await batch.outcomes()} == {"cancelled"}
    calls = [ToolCall(f"c{number}", "two") for number in range(10)]
    for outcome in await narrow.run(environment, calls, scope.child("t")):
        assert outcome.text == "[0,0]"
    await narrow.close()
