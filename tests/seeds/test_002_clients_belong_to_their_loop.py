"""hermes-agent pull request #2701: an async client of one loop, used on another, hangs for ever.

There, the cache was given the loop's `id()` as a key. Here a client belongs to the loop that made
it, by the object itself. The report's five cases by name, with a real client and a real server.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import aiohttp
import pytest
from aiohttp import web

from keryx.aio.loops import LoopThread
from keryx.aio.owned import Owned, Shared
from keryx.tools.http import HttpClients

pytestmark = pytest.mark.promise("002.2", "house.5")


class Server:
    """A server on loopback that counts."""

    def __init__(self) -> None:
        self.requests = 0
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        address = cast("tuple[str, int]", self._runner.addresses[0])
        self.url = f"http://127.0.0.1:{address[1]}/"

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests += 1
        return web.Response(text="answer")

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()


@pytest.fixture
def server() -> Iterator[Server]:
    new_server = Server()
    with LoopThread(name="keryx-server") as thread:
        thread.call(new_server.start)
        yield new_server
        thread.call(new_server.stop)


class Clients:
    """Counts the clients that are made."""

    def __init__(self) -> None:
        self.sessions: list[aiohttp.ClientSession] = []
        self.owned = Owned(self._make, aiohttp.ClientSession.close)

    async def _make(self) -> aiohttp.ClientSession:
        await asyncio.sleep(0)
        self.sessions.append(aiohttp.ClientSession())
        return self.sessions[-1]

    async def ask(self, url: str) -> str:
        client = await self.owned.get()
        async with client.get(url) as response:
            return await response.text()


# -- the report's five cases


def test_same_loop_reuses_cached_client(server: Server) -> None:
    clients = Clients()

    async def main() -> None:
        for _ in range(3):
            assert await clients.ask(server.url) == "answer"
        assert await clients.owned.get() is clients.sessions[0]

    asyncio.run(main())
    assert len(clients.sessions) == 1


def test_different_loops_get_separate_clients(server: Server) -> None:
    clients = Clients()
    with LoopThread() as one, LoopThread() as other:
        first, second = one.call(clients.owned.get), other.call(clients.owned.get)
        assert first is not second
        assert one.call(clients.owned.get) is first
        assert one.call(clients.ask, server.url) == other.call(clients.ask, server.url) == "answer"
    assert all(client.closed for client in clients.sessions)


def test_sync_clients_shared_globally(server: Server) -> None:
    objects: list[object] = []

    def make() -> object:
        objects.append(object())
        return objects[-1]

    shared = Shared(make)

    async def use() -> object:
        return shared.get()

    with LoopThread() as one, LoopThread() as other:
        assert one.call(use) is other.call(use) is shared.get()
    assert len(objects) == 1


def test_gateway_simulation_asyncio_run_in_thread_gets_fresh_client(server: Server) -> None:
    """The report's deadlock: a client of the main loop, then `asyncio.run` in a worker thread."""
    clients = Clients()

    async def gateway() -> tuple[str, str, str]:
        before = await clients.ask(server.url)
        worker = asyncio.to_thread(lambda: asyncio.run(clients.ask(server.url)))
        return before, await worker, await clients.ask(server.url)

    assert asyncio.run(gateway()) == ("answer", "answer", "answer")
    assert len(clients.sessions) == 2
    assert all(client.closed for client in clients.sessions)


def test_closed_loop_client_is_discarded(server: Server) -> None:
    clients = Clients()
    for _ in range(3):
        asyncio.run(clients.ask(server.url))
    assert len(clients.sessions) == 3
    assert all(client.closed for client in clients.sessions)
    assert len(clients.owned) == 0


# -- under load


def test_two_live_loops_alternating_a_thousand_requests(server: Server) -> None:
    clients = Clients()
    with LoopThread() as one, LoopThread() as other:
        one.call(clients.ask, server.url)
        other.call(clients.ask, server.url)
        before = open_descriptors()
        answers = [
            (one if number % 2 else other).call(clients.ask, server.url) for number in range(1000)
        ]
        assert answers == ["answer"] * 1000
        assert open_descriptors() == before
    assert len(clients.sessions) == 2
    assert server.requests == 1002


def test_both_loops_missing_at_the_same_moment_get_one_client_each(server: Server) -> None:
    clients = Clients()
    ready = threading.Barrier(2)

    async def first_use() -> list[str]:
        ready.wait()
        async with asyncio.TaskGroup() as group:
            users = [group.create_task(clients.ask(server.url)) for _ in range(30)]
        return [user.result() for user in users]

    with LoopThread() as one, LoopThread() as other:
        answers: list[list[str]] = []
        caller = threading.Thread(target=lambda: answers.append(other.call(first_use)))
        caller.start()
        answers.append(one.call(first_use))
        caller.join()
    assert answers == [["answer"] * 30] * 2
    assert len(clients.sessions) == 2


def test_the_client_that_tools_get_is_owned_by_its_loop(server: Server) -> None:
    clients = HttpClients()

    async def ask() -> str:
        client = await clients.get()
        async with client.request("GET", server.url) as response:
            return await response.text()

    with LoopThread() as one:
        assert one.call(ask) == asyncio.run(ask()) == one.call(ask) == "answer"


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
