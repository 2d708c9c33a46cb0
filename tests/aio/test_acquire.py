"""What a thread takes belongs to its caller or is given back, whenever the caller is cancelled."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
import threading
from pathlib import Path

import pytest

from keryx import Keryx
from keryx.aio.acquire import acquire, release
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.app.host.homes.home import LOCK, TRANSFER_LOCK

pytestmark = pytest.mark.promise("mended.16")


class Lock:
    """Something to be taken and given back once, by a thread that is held until it may go on."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.given_back: list[str] = []

    def take(self) -> str:
        self.began.set()
        assert self.may_end.wait(20)
        return "the lock"

    def give_back(self, name: str) -> None:
        self.given_back.append(name)


@pytest.fixture
async def bridge() -> Bridge:
    return Bridge(Scope("test"))


@pytest.fixture
def lock() -> Lock:
    return Lock()


async def test_the_caller_gets_it(bridge: Bridge, lock: Lock) -> None:
    lock.may_end.set()
    assert await acquire(bridge, lock.take, lock.give_back) == "the lock"
    await bridge.close()
    assert lock.given_back == []


async def test_a_caller_that_is_cancelled_meanwhile_ends_when_it_is_given_back(
    bridge: Bridge, lock: Lock
) -> None:
    taking = asyncio.create_task(acquire(bridge, lock.take, lock.give_back))
    await bridge.to_thread(lock.began.wait, 20)
    taking.cancel()
    await asyncio.sleep(0)
    lock.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert lock.given_back == ["the lock"]
    await bridge.close()


async def test_a_caller_that_is_cancelled_twice_does_not_wait(bridge: Bridge, lock: Lock) -> None:
    taking = asyncio.create_task(acquire(bridge, lock.take, lock.give_back))
    await bridge.to_thread(lock.began.wait, 20)
    for _ in range(2):
        taking.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert taking.cancelled()
    assert lock.given_back == []
    lock.may_end.set()
    await bridge.close()
    while not lock.given_back:  # noqa: ASYNC110 (a thread that the bridge no longer knows)
        await asyncio.sleep(0.001)
    assert lock.given_back == ["the lock"]


async def test_it_is_given_back_if_the_thread_was_faster(bridge: Bridge, lock: Lock) -> None:
    """The thread has returned, and its caller is cancelled before it hears of that."""
    threads: list[int] = []
    lock.may_end.set()

    def take() -> str:
        threads.append(threading.get_ident())
        return lock.take()

    taking = asyncio.create_task(acquire(bridge, take, lock.give_back))
    await asyncio.sleep(0)  # It has begun. From here on the loop gets no chance to see the result.
    while not threads or _function_of(threads[0]) != "_serve":
        pass  # until that thread is done with its work
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    await bridge.close()
    assert lock.given_back == ["the lock"]


async def test_a_bridge_that_is_closed_meanwhile_gives_it_back(bridge: Bridge, lock: Lock) -> None:
    taking = asyncio.create_task(acquire(bridge, lock.take, lock.give_back))
    await bridge.to_thread(lock.began.wait, 20)
    await bridge.close()
    with pytest.raises(asyncio.CancelledError):
        await taking
    lock.may_end.set()
    while not lock.given_back:  # noqa: ASYNC110 (a thread that the bridge no longer knows)
        await asyncio.sleep(0.001)
    assert lock.given_back == ["the lock"]


async def test_a_release_is_waited_for(bridge: Bridge, lock: Lock) -> None:
    releasing = asyncio.create_task(release(bridge, lambda: lock.give_back(lock.take())))
    await bridge.to_thread(lock.began.wait, 20)
    releasing.cancel()
    await asyncio.sleep(0)
    lock.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await releasing
    assert lock.given_back == ["the lock"]
    await bridge.close()


async def test_a_home_that_is_opened_and_given_up_is_free(tmp_path: Path) -> None:
    """It waits for a lock that another process holds, and its program stops waiting."""
    (tmp_path / TRANSFER_LOCK).touch()
    door = os.open(tmp_path / TRANSFER_LOCK, os.O_RDWR)
    fcntl.flock(door, fcntl.LOCK_EX)
    opening = asyncio.create_task(Keryx(home=tmp_path).__aenter__())
    while not _waits_for(door):  # noqa: ASYNC110 (only the kernel knows)
        await asyncio.sleep(0.001)
    opening.cancel()
    await asyncio.sleep(0)
    os.close(door)
    with pytest.raises(asyncio.CancelledError):
        await opening
    lock = os.open(tmp_path / LOCK, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)


def _function_of(thread: int) -> str:
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] (documented, for this)
    return frames[thread].f_code.co_name


def _waits_for(descriptor: int) -> bool:
    """Whether somebody waits for this lock; the kernel lists those with an arrow."""
    inode = f":{os.fstat(descriptor).st_ino} "
    return any(
        "-> FLOCK" in line and inode in line
        for line in Path("/proc/locks").read_text().splitlines()
    )
