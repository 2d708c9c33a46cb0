"""A process that is reached only through its pipes, and does what it likes with them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from keryx.aio.capture import Capture
from keryx.aio.scope import Scope
from keryx.rpc import Call, Handler, Limits
from keryx.rpc.framing import frame
from keryx.rpc.incoming_calls import LIMITS
from keryx.rpc.pipe_transport import Pipes
from keryx.warden import Exit, Process, Warden
from tests.rpc.contract import Gate, echo, failing
from tests.rpc.folderguest import until
from tests.rpc.transports import PATIENCE, PeerClient

# A call as a process would write it; what follows is its script's own.
CALL = r"""
import os, struct, sys, time
def frame(data): return struct.pack('>I', len(data)) + data
def call(n, params='1'):
    os.write(1, frame(b'{"jsonrpc":"2.0","id":%d,"method":"c","params":%s}' % (n, params.encode())))
"""


class World:
    def __init__(self, pipes: Pipes, process: Process, errors: Capture) -> None:
        self.pipes = pipes
        self.process = process
        self.errors = errors

    async def lost(self) -> str:
        """Why the connection is gone, once it is."""
        error = await failing(PeerClient(self.pipes.peer), "wait", b"1")
        return str(error)


@asynccontextmanager
async def running(
    script: str, handler: Handler, *, limits: Limits = LIMITS
) -> AsyncGenerator[World]:
    scope = Scope("test")
    warden = Warden(scope)
    errors = Capture()
    pipes = Pipes(scope, handler, errors=errors, limits=limits)
    argv = [sys.executable, "-S", "-c", CALL + script]
    try:
        async with (
            asyncio.timeout(PATIENCE),
            await warden.spawn(argv, env={}, cwd="/", output=pipes, stdin=True) as process,
        ):
            pipes.carry(process)
            yield World(pipes, process, errors)
            await pipes.end()
    finally:
        await warden.close()
    assert (pipes.peer.in_flight, pipes.peer.held) == (0, 0)
    scope.close()


async def test_what_it_says_beside_its_frames_goes_where_it_belongs() -> None:
    script = "os.write(2, b'a word'); call(1); os.read(0, 100); os.write(2, b', and another')"
    async with running(script, echo) as world:
        await world.process.wait()
        assert world.errors.text() == "a word, and another"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("print('hello there'); sys.stdout.flush(); time.sleep(1000)", "is larger"),
        ("os.write(1, frame(b'no json')); time.sleep(1000)", "malformed"),
        ("os.write(1, struct.pack('>I', 1 << 30)); time.sleep(1000)", "1073741824 bytes"),
        ("call(5); call(5); time.sleep(1000)", "ids only grow"),
        ("sys.exit(3)", "the process ended with code 3"),
        ("os.kill(os.getpid(), 9)", "the process ended with signal 9"),
    ],
)
async def test_whatever_ends_the_connection_is_said(script: str, why: str) -> None:
    async with running(script, echo) as world:
        await until(lambda: world.pipes.peer.is_lost)
        assert why in await world.lost()
        assert why in world.pipes.peer.why_lost


async def test_a_process_that_dies_in_mid_call_cancels_it() -> None:
    gate = Gate()
    async with running("call(1); time.sleep(1000)", gate) as world:
        await gate.until(lambda: bool(gate.running))
        world.process.kill()
        await gate.until(lambda: gate.cancelled == {b"1"})
        await world.process.wait()
        assert "signal 9" in await world.lost()


async def test_an_answer_that_cannot_be_written_ends_the_connection_with_a_reason() -> None:
    gate = Gate()
    gate.let_go(b"1")
    script = "os.close(0); call(1); time.sleep(1000)"
    async with running(script, gate) as world:
        assert "closed its stdin" in await world.lost()


async def test_a_process_that_reads_no_answers_is_bounded_and_holds_up_nothing() -> None:
    answered = 0

    async def big(call: Call) -> bytes:
        nonlocal answered
        answered += 1
        return b'"' + b"x" * 1_000_000 + b'"'

    script = "for n in range(1, 100): call(n)\ntime.sleep(1000)"
    async with running(script, big, limits=Limits(most_in_flight=2)) as world:
        await until(lambda: world.pipes.peer.held > 1_000_000)
        for _ in range(50):
            await asyncio.sleep(0)
        assert answered <= 5


async def test_a_process_that_writes_on_and_on_is_cut_off() -> None:
    gate = Gate()
    script = "for n in range(1, 10**9): call(n, '\"' + 'x' * 50_000 + '\"')"
    limits = Limits(most_in_flight=1, most_held=3_000_000)
    async with running(script, gate, limits=limits) as world:
        await gate.until(lambda: bool(gate.cancelled))
        assert "hold more than 3000000 bytes" in world.pipes.peer.why_lost
    assert len(gate.begun) == 1


class Heard:
    """A process that keeps what it is told, and does not end."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.written = b""
        self.closed = False

    async def write(self, data: bytes) -> None:
        self.written += data
        self.told.set()

    def close_stdin(self) -> None:
        self.closed = True

    async def wait(self) -> Exit:
        await asyncio.Event().wait()
        raise AssertionError


async def test_calls_made_before_the_process_is_known_are_answered_then() -> None:
    scope = Scope("test")
    pipes = Pipes(scope, echo)
    pipes.feed("stdout", frame(b'{"jsonrpc":"2.0","id":1,"method":"c","params":1}'))
    process = Heard()
    pipes.carry(process)
    await process.told.wait()
    await pipes.end()
    assert process.closed
    assert process.written == frame(b'{"jsonrpc":"2.0","id":1,"result":1}')
    assert scope.children == ()
    scope.close()


async def test_pipes_whose_process_never_came_leave_nothing() -> None:
    scope = Scope("test")
    pipes = Pipes(scope, echo)
    await pipes.end()
    assert scope.children == ()
    assert pipes.peer.in_flight == 0
    scope.close()
