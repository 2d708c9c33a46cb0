"""Calls from a script: how many a second, above a bare socket, and how time grows with size.

The script is a process of its own. The *floor* is the same frames between a socket and a protocol
that does nothing but answer; then `keryx_tools` calls that protocol, `keryx.rpc`, and at last real
tools of a session through `execute_code` and the executor, confined as always.
`--peer hermes-agent=PYTHON` adds what that package does with the same scripts.

Script and server have a core each where there are two: left alone, the scheduler puts them on one
or on two, and the floor alone differs by a factor of three. Rounds alternate between the rows; what
is printed is the median with the least and the most, and on a busy machine these lie far apart.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from keryx.aio.loops import LoopThread
from keryx.aio.scope import Scope
from keryx.rpc import Call, Listener
from parts.peers import SCRIPT_PROGRAMS, requested_peers
from parts.script_session import NAPS, READS, TRIVIAL, ScriptSession, naps_without_tools, written
from parts.script_session import TASKS as TRIVIAL_TASKS

SECRET: Final = "benchmark"
GRANTED: Final = [
    {
        "name": "echo",
        "description": "Say it again.",
        "parameters": {"properties": {"text": {"type": "string"}}, "required": ["text"]},
        "positional": ["text"],
    }
]
CORES: Final = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}

ROUNDS: Final = 5
PEER_SECONDS: Final = 5.0
"""A call may take it long; with less, there would be nothing to count."""

RAW: Final = """
import socket, struct
def raw():
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(os.environ["KERYX_TOOLS_ADDRESS"][5:])
    body = b'{"jsonrpc":"2.0","id":1,"method":"call","params":{"text":"x"}}'
    frame = struct.pack(">I", len(body)) + body
    def call():
        connected.sendall(frame)
        return connected.recv(65536)
    return call
print(json.dumps([calls_per_second(raw, callers) for callers in (1, 50)]))
"""
TOOLS: Final = """
from keryx_tools import echo
print(json.dumps([calls_per_second(lambda: lambda: echo("x"), callers) for callers in (1, 50)]))
"""
TASKS: Final = """
import asyncio
from keryx_tools.aio import echo
async def main():
    await echo("x")
    began, count = time.perf_counter(), 0
    until = began + SECONDS
    async def work():
        nonlocal count
        while time.perf_counter() < until:
            await echo("x")
            count += 1
    await asyncio.gather(*(work() for _ in range(50)))
    return count / (time.perf_counter() - began)
print(json.dumps([asyncio.run(main())]))
"""
SIZES: Final = """
from keryx_tools import echo
times = []
for megabytes in (1, 10, 100):
    text, best = "x" * (megabytes << 20), 1e9
    for _ in range(3):
        began = time.perf_counter()
        assert len(echo(text).text) == len(text)
        best = min(best, time.perf_counter() - began)
    times.append(best)
print(json.dumps(times))
"""


class _Params(msgspec.Struct):
    arguments: dict[str, Any] = {}


class _Packet(msgspec.Struct):
    id: int
    params: _Params


class Bare(asyncio.Protocol):
    """Answers each frame with one, and knows nothing else."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(_Packet).decode
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        packet = self._decode(data[4:])
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{"text":"x","value":null}}' % packet.id
        assert self._transport is not None
        self._transport.write(len(answer).to_bytes(4, "big") + answer)


async def handle(call: Call) -> bytes:
    """The trivial handler."""
    if call.method == "hello":
        return b'{"version":1}'
    params = msgspec.json.decode(call.params, type=_Params)
    text = params.arguments["text"]
    return msgspec.json.encode({"text": text, "value": None, "outcome": "completed"})


def listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1024)
    return server


def script(text: str, path: Path) -> Any:
    """What the script measured."""
    done = subprocess.run(
        [sys.executable, "-c", written(text, max(CORES))],
        env={
            **os.environ,
            "KERYX_TOOLS_ADDRESS": f"unix:{path}",
            "KERYX_TOOLS_SECRET": SECRET,
            "KERYX_TOOLS_GRANTED": json.dumps(GRANTED),
        },
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def row(name: str, values: list[float], floor: float, least: float | None = None) -> None:
    middle = statistics.median(values)
    verdict = (
        ""
        if least is None
        else f"  at least {least:,.0f}: {'met' if middle >= least else 'MISSED'}"
    )
    span = f"({min(values):,.0f} to {max(values):,.0f})"
    print(f"{name:<36} {middle:8,.0f} calls/s {span:<20} {middle / floor:5.2f} x floor{verdict}")


def measured(bare: Path, served: Path) -> tuple[tuple[float, float], float]:
    plan = {
        "bare socket": (RAW, bare),
        "keryx_tools, bare server": (TOOLS, bare),
        "keryx_tools, keryx.rpc": (TOOLS, served),
        "keryx_tools.aio, keryx.rpc": (TASKS, served),
    }
    rounds = {name: list[list[float]]() for name in plan}
    for number in range(ROUNDS):
        for name in plan if number % 2 else reversed(plan):
            rounds[name].append(script(*plan[name]))
    one, fifty = ([values[at] for values in rounds["bare socket"]] for at in (0, 1))
    floors = statistics.median(one), statistics.median(fifty)
    for name in plan:
        columns = list(zip(*rounds[name], strict=True))
        if len(columns) == 1:
            row(f"{name}, 50 tasks", list(columns[0]), floors[1])
            continue
        least = 7_000 if name == "keryx_tools, bare server" else None
        row(f"{name}, one caller", list(columns[0]), floors[0], least)
        row(f"{name}, 50 threads", list(columns[1]), floors[1])
    for megabytes, seconds in zip((1, 10, 100), script(SIZES, served), strict=True):
        milliseconds = seconds * 1e3 / megabytes
        print(
            f"{megabytes:4} MB up and down {seconds * 1e3:24,.1f} ms  {milliseconds:6.2f} ms per MB"
        )
    return floors, statistics.median(one for one, _ in rounds["keryx_tools, bare server"])


def whole_way(folder: Path, thread: LoopThread, floors: tuple[float, float], guest: float) -> None:
    """`guest`: what `keryx_tools` reaches with one caller at the bare server."""
    core = max(CORES)
    workspace = folder / "workspace"
    workspace.mkdir()
    session = ScriptSession(folder / "home", workspace)
    thread.call(session.open)
    try:
        plan = {"trivial": TRIVIAL, "tasks": TRIVIAL_TASKS, "reads": READS, "naps": NAPS}
        rounds = {name: list[list[float]]() for name in plan}
        naps = list[float]()
        for number in range(ROUNDS):
            for name in plan if number % 2 else reversed(plan):
                rounds[name].append(thread.call(session.run, written(plan[name], core)))
            naps.append(thread.call(naps_without_tools))
    finally:
        thread.call(session.close)
    one, fifty = map(list[float], zip(*rounds["trivial"], strict=True))
    row("trivial tool, one caller", one, floors[0], guest / 2)
    row("trivial tool, 50 threads", fifty, floors[1], 8_000)
    row("trivial tool, 50 tasks", [rate for (rate,) in rounds["tasks"]], floors[1], 8_000)
    one, fifty = map(list[float], zip(*rounds["reads"], strict=True))
    row("read_file, one caller", one, floors[0], 2_000)
    row("read_file, 50 threads", fifty, floors[1], 2_000)
    ten = statistics.median(seconds for (seconds,) in rounds["naps"])
    verdict = "met" if ten <= 0.36 else "MISSED"
    floor = statistics.median(naps)
    print(f"ten terminals of 0.3 s {ten:10.3f} s  (bare {floor:.3f})  at most 0.36: {verdict}")


def peers(folder: Path) -> None:
    for peer in requested_peers(SCRIPT_PROGRAMS):
        for name, text, unit in (("read_file", READS, "calls/s"), ("ten terminals", NAPS, "s")):
            file = folder / "workspace" / "script.py"
            file.write_text(written(text, max(CORES), PEER_SECONDS))
            home = Path(tempfile.mkdtemp(dir=folder))
            print(f"{peer.name}: {name} {peer.run_script(file, home)} {unit}")


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(CORES)})
    with tempfile.TemporaryDirectory() as folder, LoopThread() as thread:
        bare, served = Path(folder, "bare"), Path(folder, "served")
        scopes: list[Scope] = []
        listeners: list[Listener] = []

        async def opened() -> asyncio.AbstractServer:
            scopes.append(Scope("benchmark"))
            listeners.append(Listener(scopes[0], lambda: handle))
            listeners[0].listen(listening(served))
            return await asyncio.get_running_loop().create_unix_server(Bare, sock=listening(bare))

        async def closed(server: asyncio.AbstractServer) -> None:
            server.close()
            await listeners[0].close()
            scopes[0].close()

        server = thread.call(opened)
        try:
            floors, guest = measured(bare, served)
            whole_way(Path(folder), thread, floors, guest)
            peers(Path(folder))
        finally:
            thread.call(closed, server)


if __name__ == "__main__":
    main()
