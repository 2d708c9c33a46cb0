"""What the executor costs: batches of waiting tools, a trivial call against a bare task, memory."""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import uvloop

from keryx import NO_EFFECTS, tool
from keryx.app import Runtime
from keryx.messages import ToolCall

PAUSE = 0.1
BATCH = 50
CALLS = 2_000
MEMORY_CALLS = 10_000


@tool(effects=NO_EFFECTS)
def wait_blocking() -> None:
    """Block for a while."""
    threading.Event().wait(PAUSE)


@tool(effects=NO_EFFECTS)
async def wait_async() -> None:
    """Await for a while."""
    await asyncio.sleep(PAUSE)


@tool(effects=NO_EFFECTS)
async def trivial(value: int) -> int:
    """Return the value."""
    return value


def calls(name: str, count: int, arguments: str = "{}") -> list[ToolCall]:
    return [ToolCall(str(number), name, arguments) for number in range(count)]


async def batch(runtime: Runtime, each: str) -> float:
    """Seconds for a batch of waiting tools, best of five."""
    environment = runtime.call_environment(
        "bench", [wait_blocking, wait_async], workspace=Path("/")
    )
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        await runtime.executor.run(environment, calls(each, BATCH), runtime.scope)
        best = min(best, time.perf_counter() - began)
    return best


async def overhead(runtime: Runtime) -> tuple[float, float]:
    """Median microseconds of a trivial call through the executor, and of a bare task."""
    environment = runtime.call_environment("bench", [trivial], workspace=Path("/"))
    turn = runtime.scope.child("turn")
    through, bare = list[float](), list[float]()
    loop = asyncio.get_running_loop()
    one = [ToolCall("c", "trivial", '{"value": 1}')]
    for _ in range(CALLS):
        began = time.perf_counter()
        await runtime.executor.run(environment, one, turn)
        middle = time.perf_counter()
        await loop.create_task(trivial(1))
        bare.append(time.perf_counter() - middle)
        through.append(middle - began)
    turn.close()
    return statistics.median(through) * 1e6, statistics.median(bare) * 1e6


async def memory(runtime: Runtime) -> float:
    """Bytes per call that stay behind after many calls."""
    environment = runtime.call_environment("bench", [trivial], workspace=Path("/"))
    turn = runtime.scope.child("turn")
    some = calls("trivial", 100, '{"value": 1}')
    tracemalloc.start()
    before = 0
    for _ in range(2):  # tables find their size in the first round
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(MEMORY_CALLS // 100):
            await runtime.executor.run(environment, some, turn)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    turn.close()
    return grown / MEMORY_CALLS


def verdict(name: str, value: float, limit: float, unit: str) -> None:
    said = "met" if value <= limit else "MISSED"
    print(f"{name:<44} {value:8.1f} {unit:<5} limit {limit:6.1f}: {said}")


async def main() -> None:
    async with Runtime() as runtime:
        verdict(
            "50 blocking tools of 100 ms", await batch(runtime, "wait_blocking") * 1e3, 120, "ms"
        )
        verdict("50 async tools of 100 ms", await batch(runtime, "wait_async") * 1e3, 115, "ms")
        through, bare = await overhead(runtime)
        print(f"{'a trivial call · a bare task':<44} {through:8.1f} us    {bare:.1f} us")
        verdict("a trivial call above a bare task", through - bare, 60, "us")
        verdict("bytes that stay behind per call", await memory(runtime), 1, "bytes")


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    sys.exit(0)
