"""Groups: tasks end with their scope, the first error is reported, leaving is bounded."""

from __future__ import annotations

import asyncio

import pytest

from keryx.aio.clock import FakeClock
from keryx.aio.group import Group
from keryx.aio.scope import GRACE, Scope
from keryx.errors import ScopeClosedError, ToolCancelledError


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def test_leaving_waits_for_all_tasks() -> None:
    done: list[int] = []
    gate = asyncio.Event()

    async def work(number: int) -> None:
        await gate.wait()
        done.append(number)

    async with Group(Scope("root")) as group:
        for number in range(3):
            group.start(work(number), name=str(number))
        gate.set()
    assert sorted(done) == [0, 1, 2]
    assert group.left_over == ()


async def test_the_first_error_cancels_the_rest_and_is_raised() -> None:
    async def fail() -> None:
        raise LookupError("first")

    group = Group(Scope("root"))
    waiting = group.start(for_ever(), name="waiting")
    group.start(fail(), name="failing")
    with pytest.raises(LookupError, match="first"):
        await group.__aexit__(None, None, None)
    assert waiting.cancelled()


async def test_an_error_in_the_body_cancels_the_tasks_and_passes() -> None:
    waiting: list[asyncio.Task[None]] = []

    async def body() -> None:
        async with Group(Scope("root")) as group:
            waiting.append(group.start(for_ever(), name="waiting"))
            raise LookupError

    with pytest.raises(LookupError):
        await body()
    assert waiting[0].cancelled()


async def test_cancelling_the_scope_cancels_the_tasks() -> None:
    scope = Scope("root")
    async with Group(scope) as group:
        waiting = group.start(for_ever(), name="waiting")
        scope.cancel("interrupt")
    assert waiting.cancelled()


async def test_nothing_starts_in_a_cancelled_or_left_group() -> None:
    scope = Scope("root")
    async with Group(scope) as group:
        pass
    with pytest.raises(ScopeClosedError, match="'late' is refused"):
        group.start(for_ever(), name="late")
    scope.cancel("interrupt")
    with pytest.raises(ToolCancelledError):
        Group(scope).start(for_ever(), name="late")


async def test_a_task_that_swallows_its_cancellation_is_named_after_the_grace(
    clock: FakeClock,
) -> None:
    scope = Scope("root", clock=clock)
    release, resisted = asyncio.Event(), asyncio.Event()

    async def resist() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                resisted.set()

    group = Group(scope)
    task = group.start(resist(), name="stubborn")
    leaving = asyncio.create_task(group.leave())
    await resisted.wait()
    assert not leaving.done()
    clock.advance(GRACE)
    await leaving
    assert group.left_over == ("stubborn",)
    release.set()
    await task


async def test_a_group_whose_owner_is_cancelled_ends_its_tasks_first() -> None:
    inside = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def own() -> None:
        async with Group(Scope("root")) as group:
            tasks.append(group.start(for_ever(), name="waiting"))
            inside.set()

    owner = asyncio.create_task(own())
    await inside.wait()
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert tasks[0].cancelled()
