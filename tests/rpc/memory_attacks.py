"""A host and a hostile client in one process: `python -m tests.rpc.memory_attacks HOW`.

It prints by how many bytes the process has grown at most. The limits are small, and the client
sends or requests many times as much.
"""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import struct
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from keryx.aio.loops import run_loop
from keryx.aio.scope import Scope
from keryx.rpc import Call, Limits, Listener

LIMITS = Limits(largest_frame=8_000_000, most_held=16_000_000, most_in_flight=64)
# The bytes that the client tries to make the host hold.
WANTED = 400_000_000
PIECE = 200_000
# Time for the host to grow.
SETTLED = 0.5


async def handle(call: Call) -> bytes:
    if call.method == "big":
        return b'"' + b"x" * PIECE + b'"'
    await asyncio.Event().wait()
    return b"1"


class Actor:
    """One connection that never reads."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.setblocking(False)
        self._socket.connect(path)

    async def send(self, data: bytes) -> bool:
        """False once the host takes no more, or has hung up."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(0.3):
                await loop.sock_sendall(self._socket, data)
        except (TimeoutError, OSError):
            return False
        return True

    def close(self) -> None:
        self._socket.close()


def packet(number: int, method: str, params: bytes = b"1") -> bytes:
    data = b'{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}' % (
        number,
        method.encode(),
        params,
    )
    return struct.pack(">I", len(data)) + data


async def reads_no_answers(path: str) -> list[Actor]:
    actor = Actor(path)
    for number in range(1, WANTED // PIECE):
        if not await actor.send(packet(number, "big")):
            break
    return [actor]


async def many_read_no_answers(path: str) -> list[Actor]:
    actors = [Actor(path) for _ in range(100)]
    for number in range(1, WANTED // PIECE // len(actors)):
        for actor in actors:
            await actor.send(packet(number, "big"))
    return actors


async def sends_a_huge_frame_slowly(path: str) -> list[Actor]:
    actors = [Actor(path) for _ in range(60)]
    for actor in actors:
        await actor.send(struct.pack(">I", LIMITS.largest_frame))
    for _ in range(35):
        for actor in actors:
            await actor.send(b"x" * PIECE)
    return actors


async def sends_calls_that_never_end(path: str) -> list[Actor]:
    actor = Actor(path)
    for number in range(1, WANTED // PIECE):
        if not await actor.send(packet(number, "wait", b'"' + b"x" * PIECE + b'"')):
            break
    return [actor]


HOW: dict[str, Callable[[str], Awaitable[list[Actor]]]] = {
    act.__name__: act
    for act in (
        reads_no_answers,
        many_read_no_answers,
        sends_a_huge_frame_slowly,
        sends_calls_that_never_end,
    )
}


async def main(how: str, path: str) -> None:
    scope = Scope("hoarding")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(200)
    listener = Listener(scope, lambda: handle, limits=LIMITS)
    listener.listen(listening)
    gc.collect()
    before = peak()
    actors = await HOW[how](path)
    await asyncio.sleep(SETTLED)
    sys.stdout.write(f"{peak() - before}\n")
    for actor in actors:
        actor.close()
    await listener.close()


def peak() -> int:
    """Return the peak memory of this program; `getrusage` may report that of its parent."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        run_loop(main(sys.argv[1], f"{folder}/s"))
