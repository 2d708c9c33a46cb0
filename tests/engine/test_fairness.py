"""Slots are shared fairly: a session with a thousand calls delays another's first by one call."""

from __future__ import annotations

import asyncio

import pytest

from keryx.aio.scope import Scope
from keryx.engine.calls.call_hooks import CallView, NoHooks
from keryx.engine.calls.slots import Slots
from keryx.engine.executor import Executor
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.effects import NO_EFFECTS
from keryx.tools.function import tool
from tests.engine.host import Host


class Ends(NoHooks):
    """Counts how many calls ended, over all sessions."""

    ended_calls = 0

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        Ends.ended_calls += 1


@pytest.mark.promise("house.6")
async def test_a_thousand_calls_delay_another_session_s_first_by_one_call(host: Host) -> None:
    gate = asyncio.Event()
    Ends.ended_calls = 0
    seen_before_other: list[int] = []

    @tool(effects=NO_EFFECTS)
    async def one_by_one(session: str) -> None:
        """End in the order of starting, one at a time."""
        if session == "other":
            seen_before_other.append(Ends.ended_calls)
        await gate.wait()

    scope = Scope("narrow")
    narrow = Executor(scope, host.bridge, loop_slots=1)
    greedy = host.environment(one_by_one, session_id="greedy", hooks=Ends())
    other = host.environment(one_by_one, session_id="other", hooks=Ends())
    many = narrow.start(
        greedy,
        [ToolCall(f"g{n}", "one_by_one", '{"session":"greedy"}') for n in range(1000)],
        scope.child("turn"),
    )
    await asyncio.sleep(0)
    first = narrow.start(
        other, [ToolCall("o1", "one_by_one", '{"session":"other"}')], scope.child("turn")
    )
    gate.set()
    await first.outcomes()
    assert seen_before_other == [1], "only the call that was running came before it"
    assert len(await many.outcomes()) == 1000
    await narrow.close()


async def test_sessions_take_turns() -> None:
    slots = Slots(1)
    await slots.take("a")
    order: list[str] = []

    async def use(session_id: str) -> None:
        await slots.take(session_id)
        order.append(session_id)
        slots.release(session_id)

    async with asyncio.TaskGroup() as group:
        for session_id in "aaaabbc":
            group.create_task(use(session_id))
        await asyncio.sleep(0)
        slots.release("a")
    assert order == ["b", "c", "a", "b", "a", "a", "a"]
    assert (slots.free, slots.waiting) == (1, 0)


async def test_newcomers_starve_nobody() -> None:
    slots = Slots(1)
    await slots.take("old")
    order: list[str] = []

    async def use(session_id: str) -> None:
        await slots.take(session_id)
        order.append(session_id)

    async with asyncio.TaskGroup() as group:
        group.create_task(use("old"))
        for number in range(5):
            group.create_task(use(f"new {number}"))
            await asyncio.sleep(0)
            slots.release(order[-1] if order else "old")
            await asyncio.sleep(0)
        slots.release(order[-1])
    assert order.index("old") <= 2


async def test_a_waiter_that_is_cancelled_holds_no_slot() -> None:
    slots = Slots(1)
    await slots.take("a")
    waiting = asyncio.create_task(slots.take("a"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert slots.waiting == 0
    granted = asyncio.create_task(slots.take("b"))
    await asyncio.sleep(0)
    slots.release("a")
    granted.cancel()  # granted and cancelled in the same turn of the loop
    await asyncio.wait([granted])
    assert (slots.free, slots.waiting) == (1, 0)


async def test_a_slot_is_not_given_to_a_waiter_that_was_just_cancelled() -> None:
    slots = Slots(1)
    await slots.take("a")
    first, second = asyncio.create_task(slots.take("a")), asyncio.create_task(slots.take("a"))
    await asyncio.sleep(0)
    first.cancel()
    slots.release("a")  # before the cancelled one has run
    await second
    await asyncio.wait([first])
    assert (slots.free, slots.waiting) == (0, 0)


async def test_no_session_holds_all_slots() -> None:
    slots = Slots(16)
    for _ in range(14):
        await slots.take("greedy")
    more = [asyncio.create_task(slots.take("greedy")) for _ in range(3)]
    await asyncio.sleep(0)
    assert (slots.free, slots.waiting) == (2, 3)
    await slots.take("other")  # at once: nobody who may have one waits for it
    await slots.take("third")
    assert slots.free == 0
    fourth = asyncio.create_task(slots.take("fourth"))
    await asyncio.sleep(0)
    slots.release("other")
    await fourth
    assert not any(each.done() for each in more), "what is free is not for who has its most"
    slots.release("greedy")
    await more[0]
    slots.release("third")
    assert (slots.free, slots.waiting) == (1, 2)
    for each in more[1:]:
        each.cancel()
    await asyncio.wait(more)
    assert (slots.free, slots.waiting) == (1, 0)


async def test_who_has_its_most_takes_turns_again_when_it_has_less() -> None:
    slots = Slots(8, most_each=2)
    order: list[int] = []

    async def use(number: int) -> None:
        await slots.take("a")
        order.append(number)
        await asyncio.sleep(0)
        slots.release("a")

    async with asyncio.TaskGroup() as group:
        for number in range(9):
            group.create_task(use(number))
    assert order == list(range(9))
    assert (slots.free, slots.waiting) == (8, 0)


async def test_a_session_whose_calls_never_end_starves_no_other(host: Host) -> None:
    gate = asyncio.Event()

    @tool(effects=NO_EFFECTS)
    async def long() -> None:
        """Wait for a long time."""
        await gate.wait()

    @tool(effects=NO_EFFECTS)
    async def short() -> str:
        """Do a little."""
        return "done"

    scope = Scope("narrow")
    narrow = Executor(scope, host.bridge, loop_slots=16)
    greedy, other = (
        host.environment(long, session_id="greedy"),
        host.environment(short, session_id="other"),
    )
    many = narrow.start(greedy, [ToolCall(f"g{n}", "long") for n in range(40)], scope.child("t"))
    for _ in range(5):
        await asyncio.sleep(0)
    (outcome,) = await narrow.run(other, [ToolCall("o1", "short")], scope.child("t"))
    assert outcome.text == "done"
    gate.set()
    assert len(await many.outcomes()) == 40
    await narrow.close()


async def test_left_overs_hold_no_slot(host: Host) -> None:
    release = asyncio.Event()

    @tool(effects=NO_EFFECTS)
    async def stubborn() -> None:
        """Swallow cancellation."""
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    @tool(effects=NO_EFFECTS)
    async def next_one() -> str:
        """Run after it."""
        return "ran"

    scope = Scope("narrow")
    narrow = Executor(scope, host.bridge, loop_slots=1)
    environment = host.environment(stubborn, next_one)
    batch = narrow.start(environment, [ToolCall("c1", "stubborn")], scope.child("turn"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    batch.cancel("c1")
    assert (await batch.outcomes())[0].outcome == "unknown"
    (outcome,) = await narrow.run(environment, [ToolCall("c2", "next_one")], scope.child("turn"))
    assert outcome.text.startswith("ran")
    release.set()
    await narrow.close()
