"""Owned resources: one per loop, created, used and closed on that loop."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from keryx.aio.bridge import Bridge
from keryx.aio.owned import Owned, Shared
from keryx.aio.scope import Scope

pytestmark = pytest.mark.promise("house.4")


class Client:
    """Records the loop that created it, and fails if it is used on another."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed = False
        self.dropped = False

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0)
        assert not self.closed
        self.closed = True

    def drop(self) -> None:
        self.dropped = True


class Clients:
    """An `Owned` that records the clients that it creates."""

    def __init__(self) -> None:
        self.created: list[Client] = []
        self.owned = Owned(self._make, Client.close, drop=Client.drop)

    async def _make(self) -> Client:
        await asyncio.sleep(0)
        self.created.append(Client())
        return self.created[-1]


async def test_simultaneous_first_use_makes_one() -> None:
    clients = Clients()
    async with asyncio.TaskGroup() as group:
        users = [group.create_task(clients.owned.get()) for _ in range(20)]
    assert {id(user.result()) for user in users} == {id(clients.created[0])}
    assert len(clients.created) == 1
    await clients.owned.close()


async def test_when_the_first_user_gives_up_the_next_one_makes_it() -> None:
    gate, steps = asyncio.Event(), list[str]()

    async def make() -> str:
        await gate.wait()
        steps.append("made")
        return "resource"

    async def close(resource: str) -> None:
        steps.append("closed")

    owned = Owned(make, close)
    first = asyncio.create_task(owned.get())
    second = asyncio.create_task(owned.get())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.set()
    assert await second == "resource"
    await owned.close()
    assert steps == ["made", "closed"]


async def test_when_making_fails_the_error_is_the_maker_s_and_the_next_tries_again() -> None:
    attempts: list[int] = []

    async def make() -> str:
        await asyncio.sleep(0)
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError("first")
        return "resource"

    async def close(resource: str) -> None: ...

    owned = Owned(make, close)
    users = [asyncio.create_task(owned.get()) for _ in range(3)]
    results = [(await asyncio.wait([user]))[0].pop() for user in users]
    assert isinstance(results[0].exception(), ConnectionError)
    assert [result.result() for result in results[1:]] == ["resource", "resource"]
    await owned.close()


async def test_after_closing_the_next_user_gets_a_new_one() -> None:
    clients = Clients()
    first = await clients.owned.get()
    await asyncio.gather(clients.owned.close(), clients.owned.close())
    assert first.closed
    assert await clients.owned.get() is not first
    await clients.owned.close()
    assert len(clients.owned) == 0


def test_a_loop_that_is_shut_down_properly_closes_its_own() -> None:
    clients = Clients()
    asyncio.run(clients.owned.get())
    assert clients.created[0].closed
    assert len(clients.owned) == 0


def test_a_new_loop_at_a_recycled_address_gets_a_new_client() -> None:
    clients = Clients()
    loop_ids: set[int] = set()
    recycled = False
    for _ in range(50):
        loop = asyncio.new_event_loop()
        recycled = id(loop) in loop_ids
        loop_ids.add(id(loop))
        client = loop.run_until_complete(clients.owned.get())
        assert client.loop is loop
        assert not client.closed
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        del loop, client
        if recycled:
            break
        clients.created.clear()
        gc.collect()
    assert recycled, "no address was used twice: the case was not forced"


def test_a_shared_resource_is_made_once_for_all_threads() -> None:
    calls: list[int] = []
    ready = threading.Barrier(8)

    def make() -> int:
        calls.append(1)
        return len(calls)

    shared = Shared(make)

    def use() -> int:
        ready.wait()
        return shared.get()

    async def main() -> list[int]:
        bridge = Bridge(Scope("root"))
        users = [bridge.start_thread(use) for _ in range(8)]
        values = [await user.future for user in users]
        await bridge.close()
        return values

    assert asyncio.run(main()) == [1] * 8


class OwnedMachine(RuleBasedStateMachine):
    """Any order of uses, closes and deaths of loops: one live client per live loop, all closed."""

    def __init__(self) -> None:
        super().__init__()
        self.clients = Clients()
        self.loops: list[asyncio.AbstractEventLoop] = []
        self.current: dict[asyncio.AbstractEventLoop, Client] = {}

    @rule()
    def open_loop(self) -> None:
        self.loops.append(asyncio.new_event_loop())

    @precondition(lambda self: self.loops)
    @rule(data=st.data())
    def use(self, data: st.DataObject) -> None:
        loop = data.draw(st.sampled_from(self.loops))
        client = loop.run_until_complete(self.clients.owned.get())
        assert self.current.setdefault(loop, client) is client

    @precondition(lambda self: self.loops)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        loop = data.draw(st.sampled_from(self.loops))
        loop.run_until_complete(self.clients.owned.close())
        client = self.current.pop(loop, None)
        assert client is None or client.closed

    @precondition(lambda self: self.loops)
    @rule(data=st.data(), properly=st.booleans())
    def end_loop(self, data: st.DataObject, *, properly: bool) -> None:
        loop = data.draw(st.sampled_from(self.loops))
        self._end(loop, properly=properly)

    def _end(self, loop: asyncio.AbstractEventLoop, *, properly: bool) -> None:
        if properly:
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        self.loops.remove(loop)
        client = self.current.pop(loop, None)
        assert client is None or client.closed == properly

    @invariant()
    def every_live_client_is_open_and_on_its_own_loop(self) -> None:
        for loop, client in self.current.items():
            assert client.loop is loop
            assert not client.closed

    def teardown(self) -> None:
        for loop in tuple(self.loops):
            self._end(loop, properly=True)
        # The next maker drops what loops that died without a shutdown left behind.
        last = asyncio.new_event_loop()
        last.run_until_complete(self.clients.owned.get())
        last.run_until_complete(last.shutdown_asyncgens())
        last.close()
        assert len(self.clients.owned) == 0
        assert all(client.closed or client.dropped for client in self.clients.created)


TestOwnedMachine = OwnedMachine.TestCase
