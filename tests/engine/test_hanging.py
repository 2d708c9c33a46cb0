"""Every kind of hanging tool, cancelled in every way: control comes back, nothing stays alive.

How long it takes is measured by `benchmarks/cancel.py`; here the outcome is proved.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from keryx.aio.clock import FakeClock
from keryx.aio.scope import GRACE, Scope
from keryx.engine.steps.batch import Batch
from keryx.messages import ToolCall
from keryx.ports.effects import NO_EFFECTS, writes
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext
from keryx.testing.hangs import Hang, Hangs
from keryx.tools.function import tool
from tests.engine.host import ENVIRONMENT, Host, recorder

KINDS = [
    "hang_in_await",
    "hang_in_socket",
    "hang_until_told",
    "hang_in_child",
    "hang_in_stubborn_child",
    "hang_in_grandchild",
    "hang_in_python",
    "hang_in_c",
    "hang_swallowing",
]


RESIST_SIGTERM = ("hang_in_stubborn_child",)


@pytest_asyncio.fixture
async def timeless(tmp_path: Path, clock: FakeClock) -> Host:
    """A host whose ladder waits for the test: a machine that is slow shortens no rung."""
    return Host(tmp_path, clock)


@pytest_asyncio.fixture
async def timeless_hangs(timeless: Host) -> AsyncIterator[Hangs]:
    new_hangs = Hangs()
    yield new_hangs
    new_hangs.release()
    await timeless.close()
    new_hangs.close()


async def end_grace(host: Host, clock: FakeClock) -> None:
    """Wait until something was cancelled; then the time between SIGTERM and SIGKILL is over."""
    clock.advance(0)
    while not len(host.scope.deadlines):  # noqa: ASYNC110 (of the loop; nobody is told of it)
        await asyncio.sleep(0)
    clock.advance(GRACE)


@pytest_asyncio.fixture
async def hangs(host: Host) -> AsyncIterator[Hangs]:
    new_hangs = Hangs()
    yield new_hangs
    new_hangs.release()
    await host.close()
    new_hangs.close()


def survivors() -> list[str]:
    """Processes that carry the marker of the test's environment for children."""
    marker = f"KERYX_TEST_MARKER={ENVIRONMENT['KERYX_TEST_MARKER']}".encode()
    processes: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                if marker in (entry / "environ").read_bytes():
                    processes.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
            except OSError:
                continue  # it has just ended
    return processes


# -- ways to cancel


async def from_a_task(host: Host, turn: Scope, batch: Batch) -> None:
    async def cancel() -> None:
        turn.cancel("interrupt", by="task")

    await asyncio.create_task(cancel())


async def from_a_thread(host: Host, turn: Scope, batch: Batch) -> None:
    await host.bridge.to_thread(lambda: turn.cancel("interrupt", by="thread"))


async def from_a_signal_handler(host: Host, turn: Scope, batch: Batch) -> None:
    def handler(number: int, frame: object) -> None:
        turn.cancel("interrupt", by="signal")

    before = signal.signal(signal.SIGUSR2, handler)
    try:
        signal.raise_signal(signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, before)


async def by_its_parent(host: Host, turn: Scope, batch: Batch) -> None:
    assert turn.parent is not None
    turn.parent.cancel("interrupt", by="parent")


async def by_a_deadline(host: Host, turn: Scope, batch: Batch) -> None:
    turn.cancel_at(turn.clock.monotonic())


async def one_call_of_a_batch(host: Host, turn: Scope, batch: Batch) -> None:
    assert batch.cancel("hung", "interrupt")


Way = Callable[[Host, Scope, Batch], Awaitable[None]]
WAYS: list[Way] = [
    from_a_task,
    from_a_thread,
    from_a_signal_handler,
    by_its_parent,
    by_a_deadline,
    one_call_of_a_batch,
]


@pytest.mark.promise("house.1", "001.3")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", KINDS)
async def test_control_comes_back(
    timeless: Host, timeless_hangs: Hangs, clock: FakeClock, kind: str, way: Way
) -> None:
    host, hangs = timeless, timeless_hangs
    hang = next(candidate for candidate in hangs.all if candidate.name == kind)
    environment = host.environment(hang.tool)
    turn = host.scope.child("session").child("turn")
    batch = host.start(environment, call_of(hang), scope=turn)
    await recorder(environment).until(
        lambda: "hanging" in recorder(environment).texts.get("hung", "")
    )

    await way(host, turn, batch)
    clock.advance(0)
    if hang.ends == "left over" or kind in RESIST_SIGTERM:
        await end_grace(host, clock)
    (outcome,) = await batch.outcomes()

    reason = "timeout" if way is by_a_deadline else "interrupt"
    expected = "unknown" if hang.ends == "left over" else "cancelled"
    assert (outcome.outcome, outcome.reason, outcome.started) == (expected, reason, True)
    if kind == "hang_until_told":
        assert outcome.text == f"stopped: {reason}"
    else:
        assert outcome.text.strip() == "hanging", "the output so far is kept"
    assert survivors() == []
    if hang.ends == "left over":
        assert outcome.left_over == ("hung",)
        assert host.executor.left_over == ("hung",)
        hangs.release()
        await recorder(environment).until_noted("settled", "hung")
        assert hangs.acted_late == [], "a left-over is refused when it acts through its context"
    assert host.executor.left_over == ()
    assert environment.left_over == {}


def test_the_table_has_every_kind_of_the_kit() -> None:
    hangs = Hangs()
    assert [hang.name for hang in hangs.all] == KINDS
    hangs.close()


async def test_a_batch_of_all_kinds_gives_control_back_together(
    timeless: Host, timeless_hangs: Hangs, clock: FakeClock
) -> None:
    host, hangs = timeless, timeless_hangs
    environment = host.environment(*(hang.tool for hang in hangs.all))
    turn = host.scope.child("turn")
    batch = host.start(environment, *(call_of(hang, hang.name) for hang in hangs.all), scope=turn)
    await recorder(environment).until(lambda: len(recorder(environment).texts) == len(hangs.all))
    turn.cancel("steer")
    for hang in hangs.all:
        if hang.ends != "left over" and hang.name not in RESIST_SIGTERM:
            await recorder(environment).until_noted("cancelled", hang.name)
    await end_grace(host, clock)
    outcomes = {outcome.tool: outcome.outcome for outcome in await batch.outcomes()}
    assert outcomes == {
        hang.name: "unknown" if hang.ends == "left over" else "cancelled" for hang in hangs.all
    }
    assert survivors() == []


@pytest.mark.promise("house.1")
async def test_the_ladder_has_its_rungs_at_their_instants(tmp_path: Path, clock: FakeClock) -> None:
    host, hangs = Host(tmp_path, clock), Hangs()
    by_name = {hang.name: hang for hang in hangs.all}
    chosen = [by_name[name] for name in ("hang_in_await", "hang_in_child", "hang_in_c")]
    environment = host.environment(*(hang.tool for hang in chosen))
    turn = host.scope.child("turn")
    batch = host.start(environment, *(call_of(hang, hang.name) for hang in chosen), scope=turn)
    await recorder(environment).until(lambda: len(recorder(environment).texts) == 3)

    turn.cancel("interrupt")
    await recorder(environment).until_noted("cancelled", "hang_in_await")
    await recorder(environment).until_noted("cancelled", "hang_in_child")  # SIGTERM comes at once
    assert ("unknown", "hang_in_c") not in recorder(environment).log
    clock.advance(GRACE * 0.9)
    assert ("unknown", "hang_in_c") not in recorder(environment).log
    clock.advance(GRACE * 0.2)
    assert ("unknown", "hang_in_c") in recorder(environment).log
    await batch.outcomes()

    hangs.release()
    await recorder(environment).until_noted("settled", "hang_in_c")
    await host.close()
    hangs.close()


async def test_a_call_that_overlaps_a_left_over_says_so(host: Host, hangs: Hangs) -> None:
    inner = next(hang for hang in hangs.all if hang.name == "hang_in_c").tool

    @tool(effects=writes("shared"))
    def stuck(context: ToolContext) -> None:
        """Hang while writing."""
        inner.invoke(inner.parse("{}"), context)

    @tool(effects=writes("shared/file"))
    async def next_one() -> str:
        """Write below it."""
        return "written"

    @tool(effects=writes("elsewhere"))
    async def other() -> str:
        """Write elsewhere."""
        return "written"

    environment = host.environment(stuck, next_one, other)
    batch = host.start(environment, host.call(stuck))
    await recorder(environment).until(lambda: "c1" in recorder(environment).texts)
    batch.cancel("c1")
    assert (await batch.outcomes())[0].outcome == "unknown"
    near, far = await host.run(environment, host.call(next_one), host.call(other))
    assert near.overlaps == ("c1",)
    assert "c1 may still be running" in near.text
    assert (far.overlaps, far.text) == ((), "written")


async def test_a_container_whose_nested_call_is_left_over_is_honest(
    host: Host, hangs: Hangs
) -> None:
    stuck = next(hang for hang in hangs.all if hang.name == "hang_in_c").tool

    @tool(container=True)
    async def outer(context: ToolContext) -> None:
        """Call what hangs."""
        await context.call(stuck.name, {})

    environment = host.environment(outer, stuck)
    batch = host.start(environment, host.call(outer))
    await recorder(environment).until(lambda: "c1.1" in recorder(environment).texts)
    batch.cancel("c1", "steer")
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.reason) == ("unknown", "steer")
    assert outcome.left_over == ("c1.1",)


async def test_processes_that_a_tool_forgot_end_with_its_call(host: Host) -> None:
    @tool
    async def forgetful(context: ToolContext) -> str:
        """Start a process and forget it."""
        await context.place.spawn(["/bin/sleep", "1000"])
        return "done"

    (outcome,) = await host.run(host.environment(forgetful), host.call(forgetful))
    assert (outcome.outcome, outcome.text) == ("completed", "done")
    assert survivors() == []


@pytest.mark.promise("house.1", "001.3")
async def test_a_left_over_can_start_nothing_through_its_context(host: Host) -> None:
    free, cancelled = asyncio.Event(), asyncio.Event()
    refused: list[str] = []

    @tool
    async def stubborn(context: ToolContext) -> None:
        """Swallow the cancellation, then try everything."""
        context.emit("ready")
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                cancelled.set()
        for attempt in (
            lambda: context.place.spawn(["/bin/true"]),
            context.http,
            lambda: context.call("stubborn", {}),
        ):
            try:
                await attempt()
            except Exception as error:  # noqa: BLE001 (each refusal is looked at below)
                refused.append(str(error))
        for tell in (lambda: context.emit("late"), lambda: context.progress(1)):
            try:
                tell()
            except Exception as error:  # noqa: BLE001 (same)
                refused.append(str(error))

    environment = host.environment(stubborn)
    batch = host.start(environment, host.call(stubborn))
    await recorder(environment).until_noted("output", "c1")
    batch.cancel("c1", "steer")
    assert (await batch.outcomes())[0].outcome == "unknown"
    free.set()
    await recorder(environment).until_noted("settled", "c1")
    assert refused == ["cancelled: steer"] * 5


def call_of(hang: Hang, call_id: str = "hung") -> ToolCall:
    return ToolCall(call_id, hang.name)


def blocking_tool() -> tuple[Tool, asyncio.Event, threading.Event]:
    """An async tool that blocks in a thread; when that has begun; and what lets it go."""
    begun, released = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(begun.set)
        released.wait()
        raise ValueError("nobody reads this")

    @tool(effects=NO_EFFECTS)
    async def extract(context: ToolContext) -> None:
        """Block in a thread of the bridge."""
        await context.to_thread(block)

    return extract, begun, released


@pytest.mark.promise("house.1")
async def test_an_async_tool_has_not_ended_before_its_thread_has(
    timeless: Host, timeless_hangs: Hangs, clock: FakeClock
) -> None:
    """`cancelled` says that nothing of the call runs any more, threads of async tools too."""
    host, (extract, begun, released) = timeless, blocking_tool()
    environment = host.environment(extract)
    turn = host.scope.child("turn")
    batch = host.start(environment, host.call(extract), scope=turn)
    await begun.wait()
    turn.cancel("interrupt")
    for _ in range(100):  # as much as the loop has to do
        await asyncio.sleep(0)
    assert ("cancelled", "c1") not in recorder(environment).log
    await end_grace(host, clock)
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.left_over) == ("unknown", ("c1",))
    released.set()
    await recorder(environment).until_noted("settled", "c1")
    assert host.executor.left_over == ()


async def test_a_thread_that_ends_within_the_grace_is_cancelled(
    timeless: Host, timeless_hangs: Hangs
) -> None:
    host, (extract, begun, released) = timeless, blocking_tool()
    environment = host.environment(extract)
    turn = host.scope.child("turn")
    batch = host.start(environment, host.call(extract), scope=turn)
    await begun.wait()
    turn.cancel("interrupt")
    released.set()
    (outcome,) = await batch.outcomes()
    assert (outcome.outcome, outcome.left_over) == ("cancelled", ())
