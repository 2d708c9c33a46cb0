"""What the connections of one listener share, and what a stranger may do to it."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from keryx.aio.clock import FakeClock
from keryx.aio.scope import Scope
from keryx.rpc import GREETED, Call, CallError, Limits, Listener, Peer, connect
from keryx.rpc.incoming_calls import LARGEST_GREETING, MOST_CONNECTIONS, affordable_connections
from keryx.rpc.socket_transport import GREETING
from tests.rpc.contract import PATIENCE


class Gates:
    """A handler whose calls run until they are let go, in the order in which they came."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self._open: dict[str, asyncio.Event] = {}
        self._changed = asyncio.Event()

    async def __call__(self, call: Call) -> bytes:
        if call.method == "hello":
            if call.params != b'"secret"':
                raise CallError("that is not the secret")
            call.welcome()
            return b"1"
        name = call.params.decode().strip('"')[:10]
        self.came.append(name)
        self._changed.set()
        await self._open.setdefault(name, asyncio.Event()).wait()
        return call.params

    def let_go(self, *names: str) -> None:
        for name in names:
            self._open.setdefault(name, asyncio.Event()).set()

    async def until_came(self, count: int) -> None:
        while len(self.came) < count:
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def listening(
    path: Path, gates: Gates, limits: Limits, clock: FakeClock | None = None
) -> AsyncGenerator[Scope]:
    scope = Scope("test", clock=clock)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    listener = Listener(scope, lambda: gates, limits=limits)
    listener.listen(listening)
    async with asyncio.timeout(PATIENCE):
        yield scope
        await listener.close()
    scope.close()


async def connected(path: Path, scope: Scope, count: int) -> list[Peer]:
    """So many who have said something already."""
    peers = [await connect(str(path), scope) for _ in range(count)]
    for peer in peers:
        assert await peer.call("hello", b'"secret"') == b"1"
    return peers


async def close(*peers: Peer) -> None:
    for peer in peers:
        peer.close()
        await peer.wait_ended()


# -- calls in flight


async def test_all_connections_together_have_only_so_many_calls_in_flight(tmp_path: Path) -> None:
    gates, clients = Gates(), Scope("clients")
    async with listening(tmp_path / "s", gates, Limits(most_together=3)):
        one, other, third = await connected(tmp_path / "s", clients, 3)
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(one.call("c", b'"one %d"' % n)) for n in range(5)]
            await gates.until_came(3)
            calls.append(group.create_task(other.call("c", b'"other"')))
            calls.append(group.create_task(third.call("c", b'"third"')))
            # A newcomer is greeted, whatever the others have running.
            late = (await connected(tmp_path / "s", clients, 1))[0]
            assert gates.came == ["one 0", "one 1", "one 2"]
            for came, name in enumerate(["one 0", "one 1", "one 2", "one 3", "other"], 4):
                gates.let_go(name)
                await gates.until_came(min(came, 7))
            gates.let_go("one 4", "third")
        assert sorted(gates.came[3:]) == ["one 3", "one 4", "other", "third"]
        assert gates.came.index("third") < gates.came.index("one 4"), "they take turns"
        assert calls[3].result() == b'"one 3"'
        await close(one, other, third, late)


async def test_a_lost_connection_leaves_its_part_to_those_who_wait(tmp_path: Path) -> None:
    gates, clients = Gates(), Scope("clients")
    async with listening(tmp_path / "s", gates, Limits(most_together=2)):
        one, other = await connected(tmp_path / "s", clients, 2)
        async with asyncio.TaskGroup() as group:
            lost = [group.create_task(swallowed(one, n)) for n in range(5)]
            await gates.until_came(2)
            call = group.create_task(other.call("c", b'"other"'))
            one.close()
            gates.let_go("other")
            assert await call == b'"other"'
            await asyncio.wait(lost)
        await close(one, other)


async def swallowed(peer: Peer, number: int) -> None:
    try:
        await peer.call("c", b'"one %d"' % number)
    except Exception as error:  # noqa: BLE001 (whatever it says, it must say it)
        assert "closed" in str(error)  # noqa: PT017 (it is lost, or it was never sent)


# -- strangers


async def test_a_stranger_may_say_only_little(tmp_path: Path) -> None:
    gates = Gates()
    async with listening(tmp_path / "s", gates, GREETED):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
        writer.write(struct.pack(">I", LARGEST_GREETING + 1))
        said = await reader.read()
        assert b"%d that are taken" % LARGEST_GREETING in said
        writer.close()
        await writer.wait_closed()


async def test_a_wrong_greeting_makes_nobody_known(tmp_path: Path) -> None:
    gates, clients = Gates(), Scope("clients")
    async with listening(tmp_path / "s", gates, GREETED):
        peer = await connect(str(tmp_path / "s"), clients)
        with pytest.raises(CallError, match="not the secret"):
            await peer.call("hello", b'"guess"')
        with pytest.raises(Exception, match=f"larger than the {LARGEST_GREETING}"):
            await peer.call("c", b'"%s"' % (b"x" * LARGEST_GREETING))
        await close(peer)
    assert gates.came == []


async def test_who_was_welcomed_may_say_much(tmp_path: Path) -> None:
    gates, clients = Gates(), Scope("clients")
    gates.let_go("x" * 10)
    async with listening(tmp_path / "s", gates, GREETED):
        (peer,) = await connected(tmp_path / "s", clients, 1)
        large = b'"%s"' % (b"x" * 10 * LARGEST_GREETING)
        assert await peer.call("c", large) == large
        await close(peer)


async def test_who_does_not_greet_in_time_is_sent_away(tmp_path: Path) -> None:
    gates, clock = Gates(), FakeClock()
    async with listening(tmp_path / "s", gates, GREETED, clock):
        clients = Scope("clients")
        (known,) = await connected(tmp_path / "s", clients, 1)
        stranger = await connect(str(tmp_path / "s"), clients)
        with pytest.raises(CallError, match="not the secret"):
            await stranger.call("hello", b'"guess"')
        clock.advance(GREETING)
        with pytest.raises(Exception, match="no greeting came within 10 s"):
            await asyncio.wait_for(stranger.call("never", b"1"), PATIENCE)
        gates.let_go("known")
        assert await known.call("c", b'"known"') == b'"known"'
        await close(known, stranger)


# -- descriptors


@pytest.mark.parametrize(
    ("soft", "most"),
    [(1024, MOST_CONNECTIONS), (400, 100), (2, 1), (10**6, 256), (resource.RLIM_INFINITY, 256)],
)
def test_connections_take_a_quarter_of_the_descriptors_at_most(
    monkeypatch: pytest.MonkeyPatch, soft: int, most: int
) -> None:
    def limits(kind: int) -> tuple[int, int]:
        assert kind == resource.RLIMIT_NOFILE
        return soft, soft

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert affordable_connections() == most
