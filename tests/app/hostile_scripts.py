"""Runs a host in its own process with a hostile script: `python -m tests.app.hostile_scripts`.

It gets a folder and the name of a script, and prints as JSON by how many bytes the host grew at
most, and whether another session could still work meanwhile. The descriptor limit is the usual one.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from keryx.aio.loops import run_loop
from tests.app.scripting import Den, call, hosting, value

DESCRIPTORS: Final = 1024
MEGABYTE: Final = 1_000_000

PROLOGUE: Final = """
import json, os, resource, socket, struct, sys, time
path = os.environ["KERYX_TOOLS_ADDRESS"].partition(":")[2]
secret = os.environ["KERYX_TOOLS_SECRET"]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

def packet(**said):
    data = json.dumps({"jsonrpc": "2.0", **said}).encode()
    return struct.pack(">I", len(data)) + data

def call(number, tool, **arguments):
    params = {"tool": tool, "arguments": arguments}
    return packet(id=number, method="call", params=params)

def read(connection):
    with connection.makefile("rb") as file:
        (length,) = struct.unpack(">I", file.read(4))
        return json.loads(file.read(length))

def connect(known=True):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.settimeout(0.2)
    if known:
        connection.sendall(packet(id=1, method="hello", params={"secret": secret, "version": 1}))
        read(connection)
    return connection

def send(connection, data):
    "False once the host takes no more, or has hung up."
    try:
        connection.sendall(data)
    except OSError:
        return False
    return True

def over():
    "The host has done its worst; others may try to work until the gate opens."
    print("over", flush=True)
    with open("gate") as gate:
        gate.readline()
"""

ACTORS: Final = {
    "opens connections by the hundred": """
held, refused = [], 0
while len(held) < 1500 and refused < 300:
    one = socket.socket(socket.AF_UNIX)
    one.setblocking(False)
    try:
        one.connect(path)
        held.append(one)
    except OSError:  # those that wait there are as many as can wait
        refused += 1
        time.sleep(0.001)
over()
""",
    "says that a frame has a gigabyte": """
for _ in range(500):
    with connect(known=False) as bad:
        send(bad, struct.pack(">I", 1 << 30))
        send(bad, b"x" * 100_000)
over()
""",
    "knows no secret and sends huge frames": """
held = [connect(known=False) for _ in range(20)]
for one in held:
    send(one, struct.pack(">I", 250_000_000))
for _ in range(90):
    for one in held:
        send(one, b"x" * 1_000_000)
over()
""",
    "knows the secret and sends huge frames": """
held = [connect() for _ in range(20)]
for one in held:
    send(one, struct.pack(">I", 250_000_000))
for _ in range(90):
    for one in held:
        send(one, b"x" * 1_000_000)
over()
""",
    "has calls without end in flight": """
held = [connect() for _ in range(30)]
for one in held:
    for number in range(2, 1002):
        if not send(one, call(number, "process", action="wait", name="bg1", seconds=2)):
            break
over()
""",
    "reads no answer": """
with open("big", "w") as file:
    file.write(("x" * 99 + "\\n") * 900)
held = [connect() for _ in range(20)]
for number in range(2, 152):
    held = [one for one in held if send(one, call(number, "read_file", path="big"))]
over()
""",
    "sends a million notifications": """
one = connect()
some = packet(method="progress", params={"id": 5, "value": 1}) * 5000
some += packet(method="cancel", params={"id": 5}) * 5000
for _ in range(100):
    assert send(one, some)
over()
""",
    "sends much structure in few bytes": """
one = connect()
one.settimeout(30)
body = b'{"jsonrpc":"2.0","id":2,"method":"call","params":{"tool":"list_files","arguments":'
body += b'{"path":[' + b"[]," * 8_000_000 + b"[]]}}}"
send(one, struct.pack(">I", len(body)) + body)
read(one)
over()
""",
    "gives its result again and again": """
import keryx_tools
for _ in range(10):
    keryx_tools.finish("x" * 20_000_000)
over()
""",
    "prints a gigabyte": """
for _ in range(1000):
    sys.stdout.write("x" * 999_999 + "\\n")
over()
""",
    "is refused with a long name": """
one = connect()
one.settimeout(30)
for number in range(2, 7):
    send(one, call(number, "x" * 20_000_000))
    read(one)
over()
""",
}


async def main(den: Den, actor: str) -> None:
    gate = den.workspace / "gate"
    os.mkfifo(gate)
    door = os.open(gate, os.O_RDWR)
    async with hosting(den) as app:
        bad, good = [await app.open(approvals="never") for _ in range(2)]
        await call(bad, "terminal", command="sleep 1000", background=True)
        await call(bad, "execute_code", code="import keryx_tools; keryx_tools.list_files()")
        await call(good, "terminal", command="true")
        gc.collect()
        before = peak()
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            code = PROLOGUE + ACTORS[actor]
            work = call(bad, "execute_code", code=code, printed=set_when_over(over))
            acting = group.create_task(work)
            acting.add_done_callback(lambda _: over.set())  # it may have been ended for it
            await over.wait()
            beside = await call(good, "terminal", command="echo fine")
            os.write(door, b"go\n")
        grown = peak() - before
        ended = acting.result()
        again = value(await call(bad, "execute_code", code="print('fine')"))["output"]
    os.close(door)
    os.write(1, json.dumps(report(grown, beside, again, ended)).encode())


def report(grown: int, beside: Any, again: str, ended: Any) -> dict[str, Any]:
    return {
        "grown": grown,
        "beside": value(beside)["output"] if beside.outcome == "completed" else str(beside.result),
        "again": again,
        "ended": ended.outcome,
    }


def set_when_over(over: asyncio.Event) -> Callable[[str], None]:
    return lambda text: over.set() if "over" in text[-10:] else None


def peak() -> int:
    """Of this program alone; what `getrusage` says may be that of whoever started it."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    new_den = Den()
    os.environ["HOME"] = str(new_den.outside)
    try:
        run_loop(main(new_den, sys.argv[1]))
    finally:
        new_den.close()
