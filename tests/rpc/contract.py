"""What every transport promises, whatever it carries calls with.

One difference is part of the contract: over files there is no progress. A handler may tell it, and
nobody hears it; everything else is the same.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from keryx.aio.group import Group
from keryx.rpc import METHOD_NOT_FOUND, Call, CallError, FrameError, Handler, Limits, PeerLostError
from keryx.rpc.incoming_calls import INTERNAL_ERROR, LIMIT_REACHED
from keryx.rpc.peer import no_calls
from tests.conftest import SOAK
from tests.rpc.transports import PATIENCE, Client, Pair, Transport

BIG = 100_000_000 if SOAK else 10_000_000
MANY = 10_000 if SOAK else 500

Open = Callable[..., AbstractAsyncContextManager[Pair]]


async def echo(call: Call) -> bytes:
    return call.params


class Gate:
    """A handler whose calls wait until they are let go; it remembers what became of each."""

    def __init__(self) -> None:
        self.begun: Counter[bytes] = Counter()
        self.running: set[bytes] = set()
        self.cancelled: set[bytes] = set()
        self.most = 0
        self._open: dict[bytes, asyncio.Event] = {}
        self._changed = asyncio.Condition()

    def let_go(self, *names: bytes) -> None:
        for name in names:
            self._event(name).set()

    def _event(self, name: bytes) -> asyncio.Event:
        return self._open.setdefault(name, asyncio.Event())

    async def until(self, holds: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(holds)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def __call__(self, call: Call) -> bytes:
        name = call.params
        self.begun[name] += 1
        self.running.add(name)
        self.most = max(self.most, len(self.running))
        await self._tell()
        try:
            await self._event(name).wait()
        except asyncio.CancelledError:
            self.cancelled.add(name)
            raise
        finally:
            self.running.discard(name)
            await self._tell()
        return name


async def failing(client: Client, method: str, params: bytes) -> Exception:
    """How a call fails."""
    try:
        await client.call(method, params)
    except (CallError, PeerLostError, FrameError) as error:
        return error
    pytest.fail("the call was answered")


def opener(transport: Transport, tmp_path: Path) -> Open:
    """Opens pairs over that transport, each with its own handler and limits."""

    @asynccontextmanager
    async def open_pair(handler: Handler, limits: Limits | None = None) -> AsyncGenerator[Pair]:
        async with (
            asyncio.timeout(PATIENCE * (5 if SOAK else 1)),
            transport.pair(handler, tmp_path, limits) as made,
        ):
            yield made

    return open_pair


class Contract:
    """Inherit from it in a test class, and give it the fixture `transport`."""

    @pytest.fixture
    def opened(self, transport: Transport, tmp_path: Path) -> Open:
        return opener(transport, tmp_path)

    async def test_a_value_comes_back_as_it_was_sent(self, opened: Open) -> None:
        async with opened(echo) as pair:
            for data in (b"null", b"1.5", b"[]", b'{"a":[{}]}', '"\u00fc \U0001f600"'.encode()):
                assert await pair.client.call("echo", data) == data

    async def test_answers_come_in_any_order_and_reach_their_callers(self, opened: Open) -> None:
        gate = Gate()
        names = [str(number).encode() for number in range(50)]
        async with opened(gate) as pair:
            group = Group(pair.scope.child("callers"))
            calls = {
                name: group.start(pair.client.call("wait", name), name=name.decode())
                for name in names
            }
            await gate.until(lambda: len(gate.running) == len(names))
            for name in reversed(names):
                gate.let_go(name)
                assert await calls[name] == name
            await group.leave()
            group.scope.close()

    async def test_a_caller_that_gives_up_cancels_its_call_and_no_other(self, opened: Open) -> None:
        gate = Gate()
        async with opened(gate) as pair:
            group = Group(pair.scope.child("callers"))
            first = group.start(pair.client.call("wait", b"1"), name="1")
            second = group.start(pair.client.call("wait", b"2"), name="2")
            await gate.until(lambda: len(gate.running) == 2)
            first.cancel()
            await gate.until(lambda: gate.cancelled == {b"1"})
            gate.let_go(b"2", b"3")
            assert await second == b"2"
            assert await pair.client.call("wait", b"3") == b"3"
            await group.leave()
            group.scope.close()

    async def test_progress_comes_in_order_before_the_answer_where_there_is_any(
        self, opened: Open, transport: Transport
    ) -> None:
        async def count(call: Call) -> bytes:
            for number in range(int(call.params)):
                await call.progress(str(number).encode())
            return b'"done"'

        seen: list[bytes] = []
        async with opened(count) as pair:
            assert await pair.client.call("count", b"5", on_progress=seen.append) == b'"done"'
        assert seen == ([b"0", b"1", b"2", b"3", b"4"] if transport.has_progress else [])

    async def test_an_error_reaches_its_caller_alone_and_says_what_happened(
        self, opened: Open
    ) -> None:
        async def fail(call: Call) -> bytes:
            match call.method:
                case "known":
                    raise CallError("no such thing", name="NotThereError")
                case "defect":
                    raise ZeroDivisionError("oops")
                case "no json":
                    return b"no json"
                case "half a character":
                    raise CallError("bad \udc80 name", name="\udc80")
                case "gives itself up":
                    raise asyncio.CancelledError
                case "nothing":
                    return b""
                case "good":
                    return b"1"
                case _:
                    return await no_calls(call) or b""

        async with opened(fail) as pair:

            async def caught(method: str) -> CallError:
                error = await failing(pair.client, method, b"1")
                assert isinstance(error, CallError)
                return error

            known = await caught("known")
            assert (known.message, known.name) == ("no such thing", "NotThereError")
            assert (await caught("defect")).message == "ZeroDivisionError: oops"
            assert (await caught("no json")).code == INTERNAL_ERROR
            assert (await caught("half a character")).message == "bad ? name"
            assert (await caught("gives itself up")).name == "ToolCancelledError"
            unknown = await caught("unheard of")
            assert (unknown.code, "unheard of" in unknown.message) == (METHOD_NOT_FOUND, True)
            assert await pair.client.call("nothing", b"1") == b"null"
            assert await pair.client.call("good", b"1") == b"1"

    async def test_a_big_value_goes_up_and_down(self, opened: Open) -> None:
        data = msgspec.json.encode("x" * BIG)
        async with opened(echo) as pair:
            assert await pair.client.call("echo", data) == data
            assert await pair.client.call("echo", b"1") == b"1"

    async def test_what_is_too_large_is_refused_with_a_reason(self, opened: Open) -> None:
        async def grow(call: Call) -> bytes:
            return b'"' + b"x" * int(call.params.strip(b'"')) + b'"'

        async with opened(grow, Limits(largest_frame=10_000)) as pair:
            error = await failing(pair.client, "grow", b"20000")
            assert "at most 10000" in str(error)
            assert len(await pair.client.call("grow", b"100")) == 102
            error = await failing(pair.client, "grow", b'"' + b"0" * 20_000 + b'1"')
            assert "larger than the 10000" in str(error)

    async def test_calls_past_the_bound_wait_and_are_all_answered(self, opened: Open) -> None:
        gate = Gate()
        names = [str(number).encode() for number in range(MANY)]
        async with opened(gate, Limits(most_in_flight=8)) as pair:
            group = Group(pair.scope.child("callers"))
            calls = [group.start(pair.client.call("wait", name), name="call") for name in names]
            await gate.until(lambda: len(gate.running) == 8)
            gate.let_go(*names)
            assert [await call for call in calls] == names
            await group.leave()
            group.scope.close()
        assert gate.most == 8
        assert set(gate.begun.values()) == {1}

    async def test_a_connection_can_be_given_a_number_of_calls(self, opened: Open) -> None:
        async with opened(echo, Limits(most_calls=3)) as pair:
            for _ in range(3):
                assert await pair.client.call("echo", b"1") == b"1"
            error = await failing(pair.client, "echo", b"1")
            assert isinstance(error, CallError)
            assert (error.code, "all" in error.message) == (LIMIT_REACHED, True)
            assert "3 calls" in str(await failing(pair.client, "echo", b"1"))

    async def test_the_call_past_the_number_takes_nothing_from_those_before_it(
        self, opened: Open
    ) -> None:
        gate = Gate()
        async with opened(gate, Limits(most_calls=2)) as pair:
            group = Group(pair.scope.child("callers"))
            calls = [group.start(pair.client.call("wait", name), name="c") for name in (b"1", b"2")]
            await gate.until(lambda: len(gate.running) == 2)
            assert "2 calls" in str(await failing(pair.client, "wait", b"3"))
            gate.let_go(b"1", b"2")
            assert [await call for call in calls] == [b"1", b"2"]
            await group.leave()
            group.scope.close()

    async def test_a_client_that_leaves_cancels_what_it_asked_for(self, opened: Open) -> None:
        gate = Gate()
        async with opened(gate) as pair:
            group = Group(pair.scope.child("callers"))
            calls = [
                group.start(failing(pair.client, "wait", name), name="call")
                for name in (b"1", b"2")
            ]
            await gate.until(lambda: len(gate.running) == 2)
            await pair.client.hang_up()
            for call in calls:
                assert isinstance(await call, PeerLostError)
            await gate.until(lambda: gate.cancelled == {b"1", b"2"})
            await group.leave()
            group.scope.close()

    async def test_a_server_that_closes_leaves_nobody_waiting(self, opened: Open) -> None:
        gate = Gate()
        async with opened(gate) as pair:
            group = Group(pair.scope.child("callers"))
            calls = [
                group.start(failing(pair.client, "wait", name), name="call")
                for name in (b"1", b"2")
            ]
            await gate.until(lambda: len(gate.running) == 2)
            await pair.close_server()
            for call in calls:
                assert "closed" in str(await call)
            assert gate.cancelled == {b"1", b"2"}
            assert isinstance(await failing(pair.client, "late", b"1"), PeerLostError)
            await group.leave()
            group.scope.close()
        assert b"late" not in gate.begun

    async def test_nothing_runs_twice_whoever_gives_up_when(self, opened: Open) -> None:
        gate = Gate()
        names = [str(number).encode() for number in range(200)]
        async with opened(gate, Limits(most_in_flight=50)) as pair:
            group = Group(pair.scope.child("callers"))
            calls = [group.start(pair.client.call("wait", name), name="call") for name in names]
            await gate.until(lambda: len(gate.running) == 50)
            given_up = calls[::3]
            for call in given_up:
                call.cancel()
            gate.let_go(*names)
            for call, name in zip(calls, names, strict=True):
                if call not in given_up:
                    assert await call == name
            await group.leave()
            group.scope.close()
            await gate.until(lambda: not gate.running)
        assert max(gate.begun.values()) == 1
