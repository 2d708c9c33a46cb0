"""Two peers over a real socket: every answer at its own caller, and nothing left when one goes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc import Call, CallError, FrameError, Limits, Listener, Peer, PeerLostError, connect
from keryx.rpc.framing import FrameReader, frame
from keryx.rpc.memory_transport import pair
from keryx.rpc.peer import Handler

PATIENCE = 20.0


@asynccontextmanager
async def peers(
    tmp_path: Path, handler: Handler, *, largest_frame: int = 1 << 20
) -> AsyncGenerator[tuple[Peer, Listener, Scope]]:
    """A client, the listener that answers it, and the scope of both."""
    scope = Scope("test")
    path = tmp_path / "s"
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    listener = Listener(scope, lambda: handler, limits=Limits(largest_frame=largest_frame))
    listener.listen(listening)
    client = await connect(str(path), scope)
    async with asyncio.timeout(PATIENCE):
        yield client, listener, scope
    client.close()
    await client.wait_ended()
    await listener.close()
    scope.close()


async def echo(call: Call) -> bytes:
    return call.params


async def never(call: Call) -> bytes:
    await asyncio.Event().wait()
    return call.params


async def test_answers_come_in_any_order_and_reach_their_callers(tmp_path: Path) -> None:
    gates = {str(number): asyncio.Event() for number in range(50)}

    async def wait(call: Call) -> bytes:
        await gates[call.params.decode()].wait()
        return call.params

    async with peers(tmp_path, wait) as (client, _, scope):
        group = Group(scope.child("callers"))
        calls = {name: group.start(client.call("wait", name.encode()), name=name) for name in gates}
        for name in reversed(gates):
            gates[name].set()
            assert await calls[name] == name.encode()
        await group.leave()


async def test_a_caller_that_gives_up_cancels_its_call_and_no_other(tmp_path: Path) -> None:
    begun, cancelled, gate = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> bytes:
        if call.params == b"1":
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
        await gate.wait()
        return call.params

    async with peers(tmp_path, wait) as (client, _, scope):
        group = Group(scope.child("callers"))
        first = group.start(client.call("wait", b"1"), name="1")
        second = group.start(client.call("wait", b"2"), name="2")
        await begun.wait()
        first.cancel()
        await cancelled.wait()
        gate.set()
        assert await second == b"2"
        await group.leave()


async def test_progress_comes_in_order_before_the_answer(tmp_path: Path) -> None:
    async def count(call: Call) -> bytes:
        for number in range(int(call.params)):
            await call.progress(str(number).encode())
        return b'"done"'

    seen: list[bytes] = []
    async with peers(tmp_path, count) as (client, _, _scope):
        assert await client.call("count", b"5", on_progress=seen.append) == b'"done"'
    assert seen == [b"0", b"1", b"2", b"3", b"4"]


async def test_an_error_of_a_handler_reaches_its_caller_alone(tmp_path: Path) -> None:
    async def fail(call: Call) -> bytes:
        if call.method == "known":
            raise CallError("no such thing", name="NotThereError")
        if call.method == "defect":
            raise ZeroDivisionError("oops")
        return call.params

    async with peers(tmp_path, fail) as (client, _, _scope):
        with pytest.raises(CallError, match="no such thing") as caught:
            await client.call("known", b"1")
        assert caught.value.name == "NotThereError"
        with pytest.raises(CallError, match="ZeroDivisionError: oops"):
            await client.call("defect", b"1")
        assert await client.call("fine", b"1") == b"1"


async def test_a_lost_connection_fails_what_is_awaited_and_cancels_what_runs(
    tmp_path: Path,
) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(call: Call) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return call.params

    async with peers(tmp_path, wait) as (client, _, scope):
        group = Group(scope.child("callers"))
        call = group.start(_lost(client), name="call")
        await begun.wait()
        client.close()
        assert "closed" in await call
        await cancelled.wait()
        with pytest.raises(PeerLostError):
            await client.call("late", b"1")
        await group.leave()


async def _lost(client: Peer) -> str:
    with pytest.raises(PeerLostError) as caught:
        await client.call("wait", b"1")
    return str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        frame(b"no json"),
        frame(b'{"id": "text"}'),
        b"\xff\xff\xff\xff" + b"x" * 100,
        frame(b'{"jsonrpc":"2.0","id":1,"method":"a"}') * 2,
    ],
    ids=["garbage", "wrong types", "huge length", "an id again"],
)
async def test_what_is_no_call_ends_the_connection_with_a_reason(
    tmp_path: Path, data: bytes
) -> None:
    async with peers(tmp_path, echo) as (client, _, scope):
        group = Group(scope.child("callers"))
        call = group.start(_lost(client), name="call")
        await asyncio.sleep(0)
        client.wire.write(data)
        assert "the connection is lost" in await call
        await group.leave()


async def test_calls_past_the_bound_wait_and_are_all_answered(tmp_path: Path) -> None:
    scope = Scope("test")
    running = most = 0
    gate = asyncio.Event()

    async def count(call: Call) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        return call.params

    right, left = pair(scope, count, limits=Limits(most_in_flight=4))
    group = Group(scope.child("callers"))
    calls = [group.start(left.call("c", str(n).encode()), name=str(n)) for n in range(20)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert most == 4
    gate.set()
    assert [await call for call in calls] == [str(n).encode() for n in range(20)]
    await group.leave()
    left.close()
    right.close()
    await right.wait_ended()
    await left.wait_ended()
    scope.close()


async def test_a_connection_on_its_way_when_the_listener_closes_is_hung_up_on(
    tmp_path: Path,
) -> None:
    scope = Scope("test")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    listening.listen()
    listener = Listener(scope, lambda: never)
    listener.listen(listening)
    clients = [await connect(str(tmp_path / "s"), scope) for _ in range(5)]
    async with asyncio.timeout(PATIENCE):
        group = Group(scope.child("callers"))
        calls = [group.start(_lost(client), name="call") for client in clients]
        await listener.close()
        for call in calls:
            assert "lost" in await call
        await group.leave()
    for client in clients:
        await client.wait_ended()
    scope.close()


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 40))
def test_frames_survive_any_cutting(frames: list[bytes], size: int) -> None:
    stream = b"".join(map(frame, frames))
    reader = FrameReader()
    found = [
        whole
        for start in range(0, len(stream), size)
        for whole in reader.feed(stream[start : start + size])
    ]
    assert found == frames


def test_a_frame_that_is_too_large_is_refused_before_it_comes() -> None:
    with pytest.raises(FrameError, match="larger than the 10"):
        list(FrameReader(10).feed(frame(b"x" * 11)[:4]))
