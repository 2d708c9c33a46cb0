"""Nothing cancelled in one session is ever seen in another, however threads are reused."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from keryx.aio.scope import get_token, is_interrupted
from keryx.messages import ToolCall
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.host import Host, recorder

INTERLEAVINGS = 1_000
SESSIONS = 4


def probing_tools() -> tuple[Tool, Tool, set[int]]:
    """Tools that report what they see of cancellation, and the threads that they ran in."""
    threads: set[int] = set()

    def look(context: ToolContext) -> list[Any]:
        token = get_token()
        return [
            context.session_id,
            token is not None and token.is_cancelled,
            is_interrupted(),
            context.token.reason,
        ]

    @tool(effects=NO_EFFECTS)
    def probe_in_thread(context: ToolContext) -> list[Any]:
        """Say what a thread sees."""
        threads.add(threading.get_ident())
        return look(context)

    @tool(effects=NO_EFFECTS)
    async def probe_on_loop(context: ToolContext) -> list[Any]:
        """Say what a task sees."""
        await asyncio.sleep(0)
        return look(context)

    return probe_in_thread, probe_on_loop, threads


@pytest.mark.promise("house.3")
async def test_a_thousand_random_interleavings_over_recycled_threads(host: Host) -> None:
    dice = random.Random(17770)
    in_thread, on_loop, threads = probing_tools()
    lanes = [
        host.environment(in_thread, on_loop, session_id=f"s{number}") for number in range(SESSIONS)
    ]
    runs = 0
    for round_ in range(INTERLEAVINGS):
        victim = dice.randrange(SESSIONS)
        turns = [host.scope.child(f"turn {number}") for number in range(SESSIONS)]
        moment = dice.choice(["before", "after start", "after a while", "late"])
        if moment == "before":
            turns[victim].cancel("interrupt")
        batches = [
            host.start(environment, *some_calls(dice, round_, number), scope=turns[number])
            for number, environment in enumerate(lanes)
        ]
        if moment == "after start":
            turns[victim].cancel("steer")
        elif moment == "after a while":
            await asyncio.sleep(0)
            await host.bridge.to_thread(turns[victim].cancel, "interrupt")
        for number, batch in enumerate(batches):
            for outcome in await batch.outcomes():
                if number == victim and moment != "late":
                    assert outcome.outcome in ("completed", "cancelled")
                    continue
                assert outcome.outcome == "completed"
                assert outcome.text == f'["s{number}",false,false,null]'
                runs += 1
        if moment == "late":
            # The report's worst case: a late interrupt, when the session is idle already.
            turns[victim].cancel("interrupt")
        for turn in turns:
            turn.close()
    assert runs > INTERLEAVINGS * (SESSIONS - 1)
    assert len(threads) <= 64, "threads were recycled"


def some_calls(dice: random.Random, round_: int, session: int) -> list[ToolCall]:
    names = dice.choices(["probe_in_thread", "probe_on_loop"], k=dice.randint(1, 3))
    return [ToolCall(f"{round_}-{session}-{index}", name) for index, name in enumerate(names)]


@pytest.mark.parametrize("kind", ["blocking", "async"])
async def test_a_left_over_of_one_session_is_not_heard_of_in_the_next(
    host: Host, kind: str, tmp_path: Path
) -> None:
    in_thread, on_loop, _ = probing_tools()
    free, let_go = threading.Event(), asyncio.Event()

    @tool(effects=NO_EFFECTS)
    def stuck_blocking(context: ToolContext) -> None:
        """Hang in a thread."""
        context.emit("hanging")
        free.wait()

    @tool(effects=NO_EFFECTS)
    async def stuck_async(context: ToolContext) -> None:
        """Swallow cancellation."""
        context.emit("hanging")
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    stuck = stuck_blocking if kind == "blocking" else stuck_async
    one = host.environment(stuck, session_id="one")
    other = host.environment(in_thread, on_loop, session_id="other")
    batch = host.start(one, ToolCall("stuck", stuck.name))
    await recorder(one).until_noted("output", "stuck")
    batch.cancel("stuck")
    assert (await batch.outcomes())[0].outcome == "unknown"
    outcomes = await host.run(
        other, ToolCall("a", "probe_in_thread"), ToolCall("b", "probe_on_loop")
    )
    assert [outcome.text for outcome in outcomes] == ['["other",false,false,null]'] * 2
    assert all(outcome.overlaps == () for outcome in outcomes)
    free.set()
    let_go.set()
    await recorder(one).until_noted("settled", "stuck")
