"""Whatever the other side of a socket does: never a hang, and an error that says what happened."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from keryx.aio.clock import FakeClock
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc import Call, CallError, Handler, Limits, Listener, PeerLostError, connect
from keryx.rpc.framing import frame
from keryx.rpc.incoming_calls import LIMIT_REACHED
from keryx.rpc.memory_transport import pair
from keryx.rpc.socket_transport import FIRST_CALL, LINGER
from tests.rpc.children import child
from tests.rpc.contract import Gate, echo, failing
from tests.rpc.transports import PATIENCE, PeerClient, listening_at


class Raw:
    """A client that says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def call(self, id_: int, params: bytes = b"1") -> None:
        packet = b'{"jsonrpc":"2.0","id":%d,"method":"c","params":%s}' % (id_, params)
        self.writer.write(frame(packet))

    async def packet(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            (length,) = struct.unpack(">I", await self.reader.readexactly(4))
            return await self.reader.readexactly(length)

    async def ended(self) -> bool:
        """Whether nothing comes any more, once that is so."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True

    def close(self) -> None:
        self.writer.transport.abort()


class SocketServer:
    def __init__(self, path: Path, listener: Listener, scope: Scope) -> None:
        self.path = str(path)
        self.listener = listener
        self.scope = scope
        self._raw: list[Raw] = []

    async def raw(self) -> Raw:
        # A small buffer here, so that reading nothing is felt at once.
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        connection.connect(self.path)
        made = Raw(*await asyncio.open_unix_connection(sock=connection, limit=1 << 16))
        self._raw.append(made)
        return made

    async def still_serves(self) -> None:
        client = await connect(self.path, self.scope)
        assert await client.call("c", b'"others"') == b'"others"'
        client.close()
        await client.wait_ended()

    async def close(self) -> None:
        for raw in self._raw:
            raw.close()
        await self.listener.close()


@asynccontextmanager
async def served(
    tmp_path: Path,
    handler: Handler,
    *,
    limits: Limits | None = None,
    most_connections: int = 100,
    clock: FakeClock | None = None,
) -> AsyncGenerator[SocketServer]:
    scope = Scope("test", clock=clock)
    listener = Listener(
        scope, lambda: handler, limits=limits or Limits(), most_connections=most_connections
    )
    listener.listen(listening_at(tmp_path / "s"))
    made = SocketServer(tmp_path / "s", listener, scope)
    async with asyncio.timeout(PATIENCE):
        yield made
        await made.close()
    assert scope.children == ()
    scope.close()


async def test_who_comes_while_it_is_being_stopped_is_let_go(tmp_path: Path) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: reported.append(told))
    async with served(tmp_path, echo) as world:
        world.scope.cancel("interrupt")
        reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
    assert reported == []


GARBAGE = {
    "no json": (frame(b"no json"), b"malformed"),
    "nothing": (frame(b""), b"truncated"),
    "wrong types": (frame(b'{"jsonrpc":"2.0","id":"text","method":"c"}'), b"Expected"),
    "a length of 1 GB": (struct.pack(">I", 1 << 30), b"1073741824 bytes is larger"),
    "an http client": (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", b"is larger"),
    "an id again": (frame(b'{"jsonrpc":"2.0","id":1,"method":"c"}') * 2, b"ids only grow"),
    "an id of the past": (frame(b'{"jsonrpc":"2.0","id":0,"method":"c"}'), b"ids only grow"),
    "endless depth": (
        frame(b'{"jsonrpc":"2.0","id":1,"method":"c","params":' + b"[" * 100_000),
        b"recursion",
    ),
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_what_is_no_call_ends_its_connection_with_a_reason_and_no_other(
    tmp_path: Path, name: str
) -> None:
    data, why = GARBAGE[name]
    async with served(tmp_path, echo) as world:
        raw = await world.raw()
        raw.writer.write(data)
        last = await raw.packet()
        while b'"error"' not in last:  # the first of two was answered
            last = await raw.packet()
        assert b'"id":null' in last
        assert why in last
        assert await raw.ended()
        await world.still_serves()


@pytest.mark.parametrize("cut", [1, 4, 20])
async def test_a_frame_that_is_cut_off_runs_nothing(tmp_path: Path, cut: int) -> None:
    gate = Gate()
    gate.let_go(b'"others"')
    async with served(tmp_path, gate) as world:
        raw = await world.raw()
        raw.writer.write(frame(b'{"jsonrpc":"2.0","id":1,"method":"c","params":1}')[:cut])
        raw.writer.write_eof()
        assert await raw.ended()
        await world.still_serves()
    assert set(gate.begun) == {b'"others"'}


async def test_a_socket_that_is_half_closed_is_closed_and_its_calls_are_cancelled(
    tmp_path: Path,
) -> None:
    gate = Gate()
    async with served(tmp_path, gate) as world:
        raw = await world.raw()
        raw.call(1)
        await gate.until(lambda: bool(gate.running))
        raw.writer.write_eof()
        await gate.until(lambda: gate.cancelled == {b"1"})
        assert await raw.ended()


async def test_a_client_that_dies_is_noticed_also_while_it_is_not_read(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, gate, limits=Limits(most_in_flight=2)) as world:
        raw = await world.raw()
        for number in range(1, 6):
            raw.call(number, b"%d" % number)
        await gate.until(lambda: len(gate.running) == 2)
        raw.close()
        await gate.until(lambda: gate.cancelled == {b"1", b"2"})
    assert set(gate.begun) == {b"1", b"2"}


async def test_a_server_that_is_killed_in_mid_call_leaves_nobody_waiting(tmp_path: Path) -> None:
    scope = Scope("test")
    async with child("socket", tmp_path / "s") as server:
        client = await connect(str(tmp_path / "s"), scope)
        group = Group(scope.child("callers"))
        call = group.start(failing(PeerClient(client), "wait", b"1"), name="call")
        await server.says("begun")
        await server.kill()
        async with asyncio.timeout(PATIENCE):
            error = await call
        assert isinstance(error, PeerLostError)
        assert "the connection is lost" in str(error)
        await group.leave()
        await client.wait_ended()
    group.scope.close()
    scope.close()


async def test_frames_that_come_in_one_piece_do_not_pass_the_bound(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, gate, limits=Limits(most_in_flight=3)) as world:
        raw = await world.raw()
        packets = [
            frame(b'{"jsonrpc":"2.0","id":%d,"method":"c","params":%d}' % (number, number))
            for number in range(1, 101)
        ]
        raw.writer.write(b"".join(packets))
        await gate.until(lambda: len(gate.running) == 3)
        gate.let_go(*(b"%d" % number for number in range(1, 101)))
        answers = {await raw.packet() for _ in range(100)}
        assert len(answers) == 100
    assert gate.most == 3


async def test_an_answer_is_not_held_up_by_calls_that_have_no_room() -> None:
    scope = Scope("test")
    begun, back = asyncio.Event(), asyncio.Event()

    async def call_back(call: Call) -> bytes:
        begun.set()
        await back.wait()
        return await here.call("back", call.params)

    here, there = pair(scope, call_back, echo, limits=Limits(most_in_flight=1))
    group = Group(scope.child("callers"))
    async with asyncio.timeout(PATIENCE):
        first = group.start(there.call("c", b"1"), name="first")
        await begun.wait()
        second = group.start(failing(PeerClient(there), "c", b"2"), name="second")
        await asyncio.sleep(0)
        back.set()
        assert await first == b"1"
        error = await second
    assert isinstance(error, CallError)
    assert (error.code, error.message) == (LIMIT_REACHED, "1 calls are in flight already")
    await group.leave()
    group.scope.close()
    for peer in (here, there):
        peer.close()
        await peer.wait_ended()
    scope.close()


# -- a peer that does not read


async def big(call: Call) -> bytes:
    return b'"' + b"x" * int(call.params) + b'"'


async def test_whoever_reads_late_is_not_read_meanwhile_and_loses_nothing(tmp_path: Path) -> None:
    answered = 0
    some = asyncio.Event()

    async def count(call: Call) -> bytes:
        nonlocal answered
        answered += 1
        if answered == 10:
            some.set()
        return await big(call)

    async with served(tmp_path, count, limits=Limits(most_in_flight=4)) as world:
        raw = await world.raw()
        for number in range(1, 201):
            raw.call(number, b"100000")
        await some.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert answered < 40, "about a megabyte waits, and the rest is not even read"
        ids = {(await raw.packet())[:26] for _ in range(200)}
        assert len(ids) == 200


async def test_whoever_makes_this_side_hold_too_much_is_cut_off(tmp_path: Path) -> None:
    gate = Gate()

    async def all_at_once(call: Call) -> bytes:
        await gate(call)
        return await big(Call(call, call.id, "", b"1000000"))  # pyright: ignore[reportArgumentType] (nobody tells progress)

    limits = Limits(largest_frame=2_000_000, most_held=4_000_000)
    async with served(tmp_path, all_at_once, limits=limits) as world:
        raw = await world.raw()
        for number in range(1, 21):
            raw.call(number, b"%d" % number)
        await gate.until(lambda: len(gate.running) == 20)
        gate.let_go(*(b"%d" % number for number in range(1, 21)))
        await gate.until(lambda: not gate.running)
        async with asyncio.timeout(PATIENCE):
            left = await raw.reader.read()
        assert len(left) < 4_000_000


async def test_connections_together_hold_no_more_than_one_may(tmp_path: Path) -> None:
    limits = Limits(largest_frame=1_000_000, most_held=2_000_000)
    async with served(tmp_path, echo, limits=limits) as world:
        several = [await world.raw() for _ in range(3)]
        for raw in several:
            # Almost all of a large frame, and never the rest.
            raw.writer.write(struct.pack(">I", 1_000_000) + b"x" * 900_000)
        async with asyncio.timeout(PATIENCE):
            reads = [asyncio.ensure_future(raw.reader.read()) for raw in several]
            await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
        told = [read.result() for read in reads if read.done()]
        assert b"hold more than 2000000 bytes" in told[0]
        for raw in several:
            raw.close()
        await asyncio.wait(reads)
        for read in reads:
            read.exception()
        await world.still_serves()


# -- connections


async def test_a_connection_too_many_is_told_so(tmp_path: Path) -> None:
    async with served(tmp_path, echo, most_connections=2) as world:
        first, second = await world.raw(), await world.raw()
        for raw in (first, second):
            raw.call(1)
            await raw.packet()
        third = await connect(world.path, world.scope)
        error = await failing(PeerClient(third), "c", b"1")
        assert "there are 2 connections already" in str(error)
        await third.wait_ended()
        first.close()
        while True:
            again = await connect(world.path, world.scope)
            try:
                assert await again.call("c", b"1") == b"1"
                break
            except PeerLostError:
                await again.wait_ended()  # the first is being closed
        again.close()
        await again.wait_ended()


async def test_a_connection_that_never_speaks_is_closed_in_time(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with served(tmp_path, echo, clock=clock) as world:
        silent, half, good = await world.raw(), await world.raw(), await world.raw()
        half.writer.write(b"\0\0")
        good.call(1)
        await good.packet()
        clock.advance(FIRST_CALL)
        for raw in (silent, half):
            assert b"no call came within 30 s" in await raw.packet()
        clock.advance(LINGER)
        assert await silent.ended()
        assert await half.ended()
        good.call(2)
        assert b'"id":2' in await good.packet()


async def test_last_words_are_heard_by_whoever_is_still_writing(tmp_path: Path) -> None:
    async with served(tmp_path, echo, limits=Limits(largest_frame=1000)) as world:
        client = await connect(world.path, world.scope)
        error = await failing(PeerClient(client), "c", b'"' + b"x" * 5_000_000 + b'"')
        assert "larger than the 1000 that are taken" in str(error)
        await client.wait_ended()


async def test_an_ending_scope_hangs_up_on_those_it_served(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, gate) as world:
        client = await connect(world.path, Scope("client"))
        group = Group(Scope("callers"))
        call = group.start(failing(PeerClient(client), "c", b"1"), name="call")
        await gate.until(lambda: bool(gate.running))
        world.scope.cancel("shutdown")
        assert "this side is ending" in str(await call)
        await group.leave()
        await client.wait_ended()
