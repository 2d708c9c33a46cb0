"""Scripts through the whole way: `execute_code`, the executor, a session with its log.

`READS` and `NAPS` are written for either kind of runtime: they import `hermes_tools`.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.messages import Json
from keryx.ports.tool import Tool
from keryx.sandbox.scripts import ExecuteCode
from keryx.tools.toolsets import built_in

NAP: Final = 0.3

PINNED: Final = """
import json, os, threading, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {CORE})
"""
# What a script does to measure calls: each caller makes one for itself, and calls it for a while.
RATE: Final = """
def calls_per_second(make, callers, seconds=SECONDS):
    go, ready, counts, until = threading.Event(), threading.Semaphore(0), [], 0
    def work():
        call, count = make(), 0
        call()
        ready.release()
        go.wait()
        while time.perf_counter() < until:
            call()
            count += 1
        counts.append(count)
    threads = [threading.Thread(target=work) for _ in range(callers)]
    for thread in threads: thread.start()
    for thread in threads: ready.acquire()
    began = time.perf_counter()
    until = began + seconds
    go.set()
    for thread in threads: thread.join()
    return sum(counts) / (time.perf_counter() - began)
"""
TRIVIAL: Final = """
from keryx_tools import trivial
print(json.dumps([calls_per_second(lambda: lambda: trivial("x"), callers) for callers in (1, 50)]))
"""
TASKS: Final = """
import asyncio
from keryx_tools.aio import trivial
async def main():
    await trivial("x")
    began, count = time.perf_counter(), 0
    until = began + SECONDS
    async def work():
        nonlocal count
        while time.perf_counter() < until:
            await trivial("x")
            count += 1
    await asyncio.gather(*(work() for _ in range(50)))
    return count / (time.perf_counter() - began)
print(json.dumps([asyncio.run(main())]))
"""
READS: Final = """
import itertools
from hermes_tools import read_file
numbers = itertools.count()
def each():
    read_file(f"small/{next(numbers) % 5000}.txt")
print(json.dumps([calls_per_second(lambda: each, callers) for callers in (1, 50)]))
"""
NAPS: Final = """
from concurrent.futures import ThreadPoolExecutor
from hermes_tools import terminal
terminal("true")
with ThreadPoolExecutor(10) as pool:
    began = time.perf_counter()
    list(pool.map(lambda _: terminal("sleep 0.3", timeout=10), range(10)))
    print(json.dumps([time.perf_counter() - began]))
"""


@tool(effects=NO_EFFECTS)
async def trivial(text: str) -> str:
    """Say it again."""
    return text


def written(text: str, core: int, seconds: float = 0.5) -> str:
    """A whole script."""
    head = PINNED.replace("CORE", str(core))
    return head + (RATE + text).replace("SECONDS", str(seconds))


class ScriptSession:
    """A host with a session, in which scripts run."""

    def __init__(self, home: Path, workspace: Path) -> None:
        # Many, for some runtimes answer the second reading of a file from memory.
        (workspace / "small").mkdir()
        for number in range(5_000):
            (workspace / f"small/{number}.txt").write_text(f"the small file {number}\n")
        tools: list[Tool] = [tool for group in built_in(Path.home()).values() for tool in group]
        tools += [ExecuteCode(), trivial]
        self._app = Keryx(home=home, workspace=workspace, tools=tools, resume=False)

    async def open(self) -> None:
        await self._app.__aenter__()
        self._session = await self._app.open(approvals="never")

    async def close(self) -> None:
        await self._app.__aexit__(None, None, None)

    async def run(self, code: str) -> list[float]:
        """What the script measured and printed as JSON."""
        arguments = msgspec.json.encode({"code": code}).decode()
        async for event in self._session.run("execute_code", arguments):
            if isinstance(event, ev.CallFinished):
                return _printed(event)
        raise AssertionError("the script did not end")


def _printed(ended: ev.CallFinished) -> list[float]:
    for part in ended.result:
        if isinstance(part, Json):
            result: dict[str, Any] = json.loads(bytes(part.value))
            return json.loads(result["output"])
    raise AssertionError(f"the script failed: {ended}")


async def naps_without_tools() -> float:
    """The floor of ten naps: the same processes, started by nobody but the loop."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    started = [
        await asyncio.create_subprocess_exec("sleep", str(NAP), stdout=asyncio.subprocess.DEVNULL)
        for _ in range(10)
    ]
    for process in started:
        await process.wait()
    return loop.time() - began
