"""The bridge: blocking and async code call each other from everywhere, and nothing hangs."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import AsyncIterator
from types import FrameType
from typing import Any

import pytest
import pytest_asyncio

from keryx.aio.bridge import THREADS, Bridge
from keryx.aio.loops import LoopThread, run_loop
from keryx.aio.scope import CancellationToken, Scope, set_token
from keryx.errors import (
    DeadlineError,
    ScopeClosedError,
    ThreadsExhaustedError,
    ToolCancelledError,
    WrongThreadError,
)

pytestmark = pytest.mark.promise("002.3")


@pytest_asyncio.fixture
async def bridge() -> AsyncIterator[Bridge]:
    bridge = Bridge(Scope("root"), threads=4, most_threads=8)
    yield bridge
    await bridge.close()


async def double(value: int) -> int:
    await asyncio.sleep(0)
    return value * 2


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


# -- async to blocking


async def test_blocking_code_runs_in_a_daemon_thread_and_its_value_comes_back(
    bridge: Bridge,
) -> None:
    def work(value: int) -> tuple[int, bool, bool]:
        here = threading.current_thread()
        return value + 1, here.daemon, here is threading.main_thread()

    assert await bridge.to_thread(work, 1) == (2, True, False)


@pytest.mark.parametrize("error", [LookupError("x"), KeyboardInterrupt(), SystemExit(3)])
async def test_whatever_it_raises_comes_back_and_the_loop_lives(
    bridge: Bridge, error: BaseException
) -> None:
    def work() -> None:
        raise error

    with pytest.raises((LookupError, RuntimeError)) as raised:
        await bridge.to_thread(work)
    assert error in (raised.value, raised.value.__cause__)


async def test_stop_iteration_comes_back_as_an_error(bridge: Bridge) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await bridge.to_thread(next, iter(()))


async def test_threads_are_used_again(bridge: Bridge) -> None:
    thread_ids = {await bridge.to_thread(threading.get_ident) for _ in range(20)}
    assert len(thread_ids) == 1


async def test_as_many_run_at_once_as_there_are_threads_and_the_rest_wait(bridge: Bridge) -> None:
    gate = threading.Event()
    started = [threading.Event() for _ in range(5)]

    def work(number: int) -> int:
        started[number].set()
        gate.wait()
        return number

    under_way = [bridge.start_thread(lambda n=n: work(n)) for n in range(5)]
    for event in started[:4]:
        await asyncio.get_running_loop().run_in_executor(None, event.wait)
    assert not started[4].is_set()
    gate.set()
    assert [await work.future for work in under_way] == [0, 1, 2, 3, 4]
    await asyncio.get_running_loop().shutdown_default_executor()


async def test_work_that_waits_for_other_work_finds_all_of_it_under_way() -> None:
    bridge = Bridge(Scope("root"))
    together = threading.Barrier(THREADS, timeout=30)
    begun = [bridge.start_thread(together.wait) for _ in range(THREADS)]
    assert sorted([await work.future for work in begun]) == list(range(THREADS))
    await bridge.close()


async def test_a_left_over_keeps_its_thread_and_the_pool_grows_past_it(bridge: Bridge) -> None:
    gate = threading.Event()
    stuck = [bridge.start_thread(gate.wait, name=f"stuck {n}") for n in range(4)]
    for work in stuck:
        work.leave_over()
    assert bridge.left_over == ("stuck 0", "stuck 1", "stuck 2", "stuck 3")
    assert await bridge.to_thread(lambda: "still served") == "still served"
    gate.set()
    assert [await work.future for work in stuck] == [True] * 4
    assert bridge.left_over == ()


async def test_when_left_overs_hold_every_thread_a_call_fails_by_name(bridge: Bridge) -> None:
    gate = threading.Event()
    stuck = [bridge.start_thread(gate.wait) for _ in range(4)]
    for work in stuck:
        work.leave_over()
    more = [bridge.start_thread(gate.wait) for _ in range(4)]
    waiting = bridge.start_thread(lambda: "too late")
    for work in more:
        work.leave_over()
    with pytest.raises(ThreadsExhaustedError, match="8 left over"):
        await waiting.future
    with pytest.raises(ThreadsExhaustedError, match="all 8 threads"):
        await bridge.to_thread(lambda: None)
    gate.set()
    for work in stuck + more:
        await work.future
    assert await bridge.to_thread(lambda: "back") == "back"


async def test_a_cancelled_awaiter_leaves_its_thread_behind(bridge: Bridge) -> None:
    gate, entered = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(entered.set)
        gate.wait()

    task = asyncio.create_task(bridge.to_thread(work))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bridge.left_over == ("work",)
    gate.set()


# -- blocking to async


async def test_a_thread_calls_async_code_and_gets_its_value(bridge: Bridge) -> None:
    assert await bridge.to_thread(bridge.from_thread, double, 21) == 42


async def test_its_errors_reach_the_thread(bridge: Bridge) -> None:
    async def fail() -> None:
        raise LookupError("from the loop")

    with pytest.raises(LookupError, match="from the loop"):
        await bridge.to_thread(bridge.from_thread, fail)


async def test_calling_back_on_the_loop_s_own_thread_is_refused(bridge: Bridge) -> None:
    with pytest.raises(WrongThreadError, match="await the work instead"):
        bridge.from_thread(double, 1)


def test_a_plain_thread_calls_async_code() -> None:
    with LoopThread() as thread:
        assert thread.call(double, 21) == 42


def test_a_thread_inside_a_running_loop_calls_async_code_on_another() -> None:
    async def main() -> int:
        with LoopThread() as thread:
            return thread.call(double, 21)

    assert asyncio.run(main()) == 42


async def test_nested_deeper_than_there_are_threads_it_does_not_deadlock() -> None:
    bridge = Bridge(Scope("root"), threads=2, most_threads=64)

    async def down(depth: int) -> int:
        return 0 if depth == 0 else 1 + await bridge.to_thread(bridge.from_thread, down, depth - 1)

    both = [asyncio.create_task(down(20)), asyncio.create_task(down(20))]
    assert [await task for task in both] == [20, 20]
    await bridge.close()


@pytest.mark.promise("walls.13")
async def test_nested_past_the_cap_it_fails_by_name() -> None:
    bridge = Bridge(Scope("root"), threads=2, most_threads=8)

    async def down(depth: int) -> int:
        return 0 if depth == 0 else 1 + await bridge.to_thread(bridge.from_thread, down, depth - 1)

    with pytest.raises(ThreadsExhaustedError) as raised:
        await down(20)
    text = str(raised.value)
    assert "all 8 threads are held: 8 wait for calls that they made" in text
    assert "make the outer tools async" in text
    assert "left over" not in text
    await bridge.close()


@pytest.mark.promise("walls.13")
async def test_if_both_hold_the_threads_the_error_counts_both() -> None:
    bridge = Bridge(Scope("root"), threads=2, most_threads=8)
    gate = threading.Event()
    for _ in range(3):
        bridge.start_thread(gate.wait).leave_over()

    async def down(depth: int) -> int:
        return 0 if depth == 0 else 1 + await bridge.to_thread(bridge.from_thread, down, depth - 1)

    with pytest.raises(ThreadsExhaustedError) as raised:
        await down(20)
    text = str(raised.value)
    assert "5 wait for calls that they made" in text
    assert "3 left over, whose tools were given up" in text
    assert "isolation='process'" in text
    gate.set()
    await bridge.close()


async def test_a_deadline_frees_the_thread_and_cancels_the_async_code(bridge: Bridge) -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await for_ever()
        finally:
            ended.set()

    def work() -> None:
        bridge.from_thread(wait, timeout=0.01)

    with pytest.raises(DeadlineError, match=r"within 0\.01 s"):
        await bridge.to_thread(work)
    await ended.wait()


async def test_cancelling_the_call_crosses_into_the_async_code_and_back(bridge: Bridge) -> None:
    scope = Scope("call")
    entered, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        entered.set()
        try:
            await for_ever()
        finally:
            ended.set()

    async def call() -> None:
        set_token(CancellationToken(scope))
        await bridge.to_thread(bridge.from_thread, wait)

    task = asyncio.get_running_loop().create_task(call(), context=contextvars.copy_context())
    await entered.wait()
    scope.cancel("steer")
    with pytest.raises(ToolCancelledError, match="steer"):
        await task
    assert ended.is_set()


async def test_async_code_that_is_cancelled_before_its_first_step_leaves_nothing(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    here, posted = threading.current_thread(), threading.Event()
    post = loop.call_soon_threadsafe

    def post_and_tell(*work: Any, **options: Any) -> Any:
        handle = post(*work, **options)
        if threading.current_thread() is not here:
            posted.set()
        return handle

    def cancel() -> None:
        (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "from another thread")
        task.cancel()

    monkeypatch.setattr(loop, "call_soon_threadsafe", post_and_tell)
    running = bridge.start_thread(lambda: bridge.from_thread(double, 1))
    posted.wait()  # the loop stands still: what the thread asked for is next, and then the cancel
    loop.call_soon(cancel)
    with pytest.raises(ToolCancelledError):
        await running.future


async def test_async_code_that_resists_does_not_hold_the_cancelled_thread(bridge: Bridge) -> None:
    scope = Scope("call")
    entered, release = asyncio.Event(), asyncio.Event()

    async def resist() -> None:
        entered.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async def call() -> None:
        set_token(CancellationToken(scope))
        await bridge.to_thread(bridge.from_thread, resist)

    task = asyncio.get_running_loop().create_task(call(), context=contextvars.copy_context())
    await entered.wait()
    scope.cancel("interrupt")
    with pytest.raises(ToolCancelledError, match="interrupt"):
        await task
    release.set()


def test_an_alarm_that_ends_the_wait_cancels_the_async_code() -> None:
    class AlarmError(Exception):
        pass

    def ring(number: int, frame: FrameType | None) -> None:
        raise AlarmError

    entered, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        entered.set()
        try:
            signal.pthread_kill(main, signal.SIGALRM)
            await for_ever()
        finally:
            ended.set()

    main = threading.get_ident()
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with LoopThread() as thread:
            with pytest.raises(AlarmError):
                thread.call(wait)
            assert ended.wait(5)
            assert thread.call(double, 4) == 8
    finally:
        signal.signal(signal.SIGALRM, before)


# -- loop to loop


async def test_async_code_on_another_loop_awaits_async_code_here(bridge: Bridge) -> None:
    home = asyncio.get_running_loop()

    async def where() -> bool:
        return asyncio.get_running_loop() is home

    async def elsewhere() -> bool:
        return await bridge.from_loop(where)

    assert await bridge.to_thread(lambda: asyncio.run(elsewhere())) is True
    assert await bridge.from_loop(where) is True


async def test_cancelling_over_there_cancels_here(bridge: Bridge) -> None:
    entered, ended = threading.Event(), asyncio.Event()

    async def wait() -> None:
        entered.set()
        try:
            await for_ever()
        finally:
            ended.set()

    async def elsewhere() -> None:
        task = asyncio.create_task(bridge.from_loop(wait))
        await asyncio.to_thread(entered.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await bridge.to_thread(lambda: asyncio.run(elsewhere()))
    await ended.wait()


# -- the end


async def test_a_closed_bridge_refuses_and_answers_those_who_wait() -> None:
    bridge = Bridge(Scope("root"))
    entered = asyncio.Event()

    async def wait() -> None:
        entered.set()
        await for_ever()

    refused: list[BaseException] = []
    ended = threading.Event()

    def work() -> None:
        try:
            bridge.from_thread(wait)
        except (ToolCancelledError, ScopeClosedError) as error:
            refused.append(error)
        ended.set()

    under_way = bridge.start_thread(work)
    await entered.wait()
    await bridge.close()
    assert under_way.future.cancelled()
    assert await asyncio.get_running_loop().run_in_executor(None, ended.wait, 5)
    assert len(refused) == 1
    with pytest.raises(ScopeClosedError):
        bridge.start_thread(lambda: None)
    await asyncio.get_running_loop().shutdown_default_executor()


def test_a_call_to_a_loop_that_is_gone_is_refused() -> None:
    with LoopThread() as thread:
        pass
    with pytest.raises(ScopeClosedError, match="closed"):
        thread.call(double, 1)


def test_a_program_ends_though_a_task_swallows_its_cancellation() -> None:
    async def resist() -> None:
        while True:
            try:
                await for_ever()
            except asyncio.CancelledError:
                continue

    async def main() -> str:
        stubborn.append(asyncio.create_task(resist()))
        await asyncio.sleep(0)
        return "ended"

    stubborn: list[asyncio.Task[None]] = []
    assert run_loop(main(), loop_factory=asyncio.new_event_loop) == "ended"
