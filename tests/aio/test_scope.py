"""Scopes and tokens: what is cancelled, why, and which callbacks run."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading

import pytest

from keryx.aio.bridge import Bridge
from keryx.aio.clock import FakeClock
from keryx.aio.loops import LoopThread
from keryx.aio.scope import (
    GRACE,
    CancellationToken,
    Reason,
    Scope,
    get_token,
    is_interrupted,
    set_token,
)
from keryx.errors import ScopeClosedError, ToolCancelledError, WrongThreadError

pytestmark = pytest.mark.promise("001.1")

REASONS: tuple[Reason, ...] = ("interrupt", "steer", "timeout", "shutdown", "parent")


async def a_turn_of_the_loop() -> None:
    """Whatever was scheduled before this line has run after it."""
    turned = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon_threadsafe(turned.set_result, None)
    await turned


async def test_a_new_token_is_not_cancelled() -> None:
    token = CancellationToken(Scope("root"))
    assert not token.is_cancelled
    assert token.reason is None
    token.raise_if_cancelled()


@pytest.mark.parametrize("reason", REASONS)
async def test_a_token_carries_the_reason(reason: Reason) -> None:
    scope = Scope("root")
    token = CancellationToken(scope)
    assert scope.cancel(reason, by="someone")
    assert token.is_cancelled
    assert token.reason == reason
    assert scope.cancellation is not None
    assert scope.cancellation.by == "someone"
    with pytest.raises(ToolCancelledError, match=reason) as raised:
        token.raise_if_cancelled()
    assert raised.value.reason == reason


async def test_the_first_reason_wins_and_cancelling_again_says_so() -> None:
    scope = Scope("root")
    assert scope.cancel("steer") is True
    assert scope.cancel("interrupt") is False
    assert scope.reason == "steer"


async def test_a_parent_s_cancel_is_seen_below_at_once_with_its_reason() -> None:
    root = Scope("root")
    leaf = root.child("turn").child("call")
    root.cancel("steer")
    assert leaf.reason == "steer"


async def test_a_child_s_cancel_is_not_seen_above_or_beside() -> None:
    root = Scope("root")
    one, other = root.child("one"), root.child("other")
    one.cancel("interrupt")
    await a_turn_of_the_loop()
    assert not root.is_cancelled
    assert not other.is_cancelled


async def test_a_child_s_own_earlier_reason_stays() -> None:
    root = Scope("root")
    child = root.child("child")
    child.cancel("timeout")
    root.cancel("shutdown")
    assert child.reason == "timeout"


async def test_a_child_cannot_be_given_a_new_reason_after_its_parent() -> None:
    root = Scope("root")
    child = root.child("child")
    root.cancel("shutdown")
    assert child.cancel("interrupt") is False
    assert child.reason == "shutdown"


async def test_a_scope_made_under_a_cancelled_one_is_cancelled_and_tells() -> None:
    root = Scope("root")
    root.cancel("interrupt")
    await a_turn_of_the_loop()
    child = root.child("late")
    callback_ran = asyncio.Event()
    child.on_cancel(callback_ran.set)
    await callback_ran.wait()
    assert child.reason == "interrupt"


async def test_nothing_starts_in_a_scope_that_was_left() -> None:
    root = Scope("root")
    root.close()
    with pytest.raises(ScopeClosedError, match="'root' has been left"):
        root.child("late")


async def test_a_closed_scope_is_gone_from_its_parent() -> None:
    root = Scope("root")
    child = root.child("child")
    child.cancel_at(root.clock.monotonic() + 60)
    child.on_cancel(lambda: None)
    child.close()
    assert root.children == ()
    assert len(root.deadlines) == 0


async def test_callbacks_run_once_each_on_the_owner_loop() -> None:
    scope = Scope("root")
    owner = asyncio.get_running_loop()
    on_owner: list[bool] = []
    scope.on_cancel(lambda: on_owner.append(asyncio.get_running_loop() is owner))
    thread = threading.Thread(target=scope.cancel, args=("interrupt",))
    thread.start()
    thread.join()
    scope.cancel("steer")
    await a_turn_of_the_loop()
    assert on_owner == [True]


async def test_a_removed_callback_is_not_called() -> None:
    scope = Scope("root")
    callbacks: list[str] = []
    scope.on_cancel(lambda: callbacks.append("kept"))
    scope.on_cancel(lambda: callbacks.append("removed")).remove()
    scope.cancel("interrupt")
    await a_turn_of_the_loop()
    assert callbacks == ["kept"]


async def test_a_callback_that_fails_is_reported_and_the_others_still_run() -> None:
    scope = Scope("root")
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(context["exception"])
    )
    callbacks: list[str] = []
    scope.on_cancel(lambda: callbacks.append("first"))
    scope.on_cancel(lambda: 1 / 0)
    scope.on_cancel(lambda: callbacks.append("last"))
    scope.cancel("interrupt")
    await a_turn_of_the_loop()
    assert sorted(callbacks) == ["first", "last"]
    assert [type(error) for error in reported] == [ZeroDivisionError]


async def test_waiting_returns_the_reason() -> None:
    scope = Scope("root")
    token = CancellationToken(scope)
    asyncio.get_running_loop().call_soon(scope.cancel, "steer")
    assert await token.wait_cancelled() == "steer"


async def test_waiting_on_a_cancelled_token_returns_at_once() -> None:
    scope = Scope("root")
    scope.cancel("steer")
    assert await CancellationToken(scope).wait_cancelled() == "steer"


async def test_a_waiter_that_is_cancelled_itself_leaves_nothing() -> None:
    scope = Scope("root")
    waiter = asyncio.create_task(CancellationToken(scope).wait_cancelled())
    await a_turn_of_the_loop()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert not scope._callbacks  # pyright: ignore[reportPrivateUsage] (the table itself is the claim)


async def test_a_waiter_on_another_loop_is_woken_there() -> None:
    scope = Scope("root")
    token = CancellationToken(scope)
    entered = threading.Event()

    async def elsewhere() -> Reason:
        entered.set()
        return await token.wait_cancelled()

    def run() -> Reason:
        return asyncio.run(elsewhere())

    bridge = Bridge(Scope("threads"))
    answer = bridge.start_thread(run)
    await bridge.to_thread(entered.wait)
    scope.cancel("interrupt")
    assert await answer.future == "interrupt"
    await bridge.close()


async def test_a_blocking_waiter_is_woken_and_a_timeout_says_no() -> None:
    scope = Scope("root")
    token = CancellationToken(scope)
    bridge = Bridge(Scope("threads"))
    assert await bridge.to_thread(token.wait_cancelled_sync, 0) is False
    waiting = bridge.start_thread(token.wait_cancelled_sync)
    scope.cancel("interrupt")
    assert await waiting.future is True
    assert await bridge.to_thread(token.wait_cancelled_sync) is True
    await bridge.close()


async def test_blocking_for_a_token_is_refused_on_a_loop_thread() -> None:
    with pytest.raises(WrongThreadError, match="await wait_cancelled"):
        CancellationToken(Scope("root")).wait_cancelled_sync(1)


async def test_there_is_no_token_outside_a_call() -> None:
    assert get_token() is None
    assert is_interrupted() is False


async def test_the_token_is_found_from_any_depth_in_tasks_and_bridge_threads() -> None:
    scope = Scope("root")
    bridge = Bridge(Scope("threads"))
    token = CancellationToken(scope)

    async def deeper() -> object:
        return await asyncio.create_task(deepest())

    async def deepest() -> object:
        return await bridge.to_thread(lambda: (get_token(), is_interrupted()))

    async def inside() -> object:
        set_token(token)
        scope.cancel("steer")
        return await deeper()

    context = contextvars.copy_context()
    token_and_state = await asyncio.get_running_loop().create_task(inside(), context=context)
    assert token_and_state == (token, True)
    assert get_token() is None
    await bridge.close()


async def test_a_thread_is_clean_of_the_token_it_served_before() -> None:
    bridge = Bridge(Scope("threads"), threads=1, most_threads=1)

    async def inside() -> object:
        set_token(CancellationToken(Scope("one")))
        return await bridge.to_thread(lambda: (threading.get_ident(), get_token() is not None))

    first = await asyncio.create_task(inside())
    second = await bridge.to_thread(lambda: (threading.get_ident(), get_token()))
    assert isinstance(first, tuple)
    assert (first[0], None) == second
    await bridge.close()


async def test_a_signal_handler_may_cancel() -> None:
    scope = Scope("root")

    def handler(number: int, frame: object) -> None:
        scope.cancel("interrupt", by="signal")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert await CancellationToken(scope).wait_cancelled() == "interrupt"
    finally:
        signal.signal(signal.SIGUSR1, before)


async def test_many_threads_cancelling_at_once_give_one_reason() -> None:
    bridge = Bridge(Scope("threads"))
    for _ in range(50):
        scope = Scope("root")
        ready = threading.Barrier(4)

        def cancel(reason: Reason, scope: Scope = scope, ready: threading.Barrier = ready) -> bool:
            ready.wait()
            return scope.cancel(reason)

        racing = [bridge.start_thread(lambda r=reason: cancel(r)) for reason in REASONS[:4]]
        won = [await work.future for work in racing]
        assert won.count(True) == 1
        assert scope.reason == REASONS[won.index(True)]
    await bridge.close()


async def test_a_deadline_cancels_with_reason_timeout_at_its_instant(clock: FakeClock) -> None:
    root = Scope("root", clock=clock)
    child = root.child("child")
    child.cancel_at(clock.monotonic() + 5)
    clock.advance(4.5)
    assert not child.is_cancelled
    clock.advance(0.5)
    assert child.reason == "timeout"
    assert not root.is_cancelled


async def test_a_deadline_can_be_moved_and_many_share_one_heap(clock: FakeClock) -> None:
    root = Scope("root", clock=clock)
    scopes = [root.child(str(number)) for number in range(100)]
    for number, scope in enumerate(scopes):
        scope.cancel_at(clock.monotonic() + 1 + number % 10)
    scopes[0].cancel_at(clock.monotonic() + 50)
    clock.advance(1)
    assert [scope.name for scope in scopes if scope.is_cancelled] == [
        str(number) for number in range(10, 100, 10)
    ]
    for scope in scopes:
        scope.close()
    assert len(root.deadlines) == 0


async def test_the_kill_comes_one_grace_after_the_cancel(clock: FakeClock) -> None:
    root = Scope("root", clock=clock)
    child = root.child("child")
    killed: list[str] = []
    child.on_kill(lambda: killed.append("kept"))
    child.on_kill(lambda: killed.append("removed")).remove()
    root.cancel("interrupt")
    await a_turn_of_the_loop()
    assert root.holds_killable
    clock.advance(GRACE * 0.9)
    assert killed == []
    clock.advance(GRACE * 0.2)
    assert killed == ["kept"]
    assert not root.holds_killable


async def test_what_becomes_killable_after_the_cancel_is_killed_too(clock: FakeClock) -> None:
    root = Scope("root", clock=clock)
    root.cancel("interrupt")
    await a_turn_of_the_loop()
    killed: list[str] = []
    root.on_kill(lambda: killed.append("late"))
    clock.advance(GRACE)
    assert killed == ["late"]


def test_cancelling_after_the_owner_loop_has_closed_is_harmless() -> None:
    async def make() -> Scope:
        return Scope("root")

    with LoopThread() as thread:
        scope = thread.call(make)
    assert scope.cancel("interrupt") is True
    assert scope.reason == "interrupt"
