"""What a process of its own costs: a warm call, a cold one, one in a thread; and cancelling one.

Calls are whole ones, through the executor, interleaved. Cold is a call whose worker has to be
started, confined and unconfined, under a warm warden.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from keryx.app import Runtime
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallView, NoHooks
from keryx.messages import ToolCall
from keryx.sandbox import Bounds, LocalPlace
from keryx.sandbox.workers import Workers
from parts import workertools

ROUNDS = 300
WARM_UP = 20
COLD_ROUNDS = 10
CANCELS = 5
LARGE = 10_000_000
LIMIT_CANCEL = 300.0
"""Milliseconds until control is back."""

TOOLS = (workertools.echo, workertools.threaded, workertools.fail, *workertools.HANGS)


class Watch(NoHooks):
    """Tells when a tool hangs."""

    def __init__(self) -> None:
        self.hangs = asyncio.Event()

    def output(self, call: CallView, stream: str, text: str) -> None:
        self.hangs.set()


class Bench:
    """One session with workers, and a stop watch."""

    def __init__(self, runtime: Runtime, workspace: Path, *, confined: bool) -> None:
        self._runtime = runtime
        bounds = Bounds(mode="on" if confined else "off", user_home=Path.home())
        self._place = LocalPlace(runtime.warden, runtime.bridge, bounds, workspace=workspace)
        self._workspace = workspace
        self.workers = Workers(runtime.scope.child("workers"))

    def environment(self, watch: Watch | None = None) -> CallEnvironment:
        environment = self._runtime.call_environment(
            "bench", TOOLS, workspace=self._workspace, hooks=watch, place=self._place
        )
        environment.workers = self.workers
        return environment

    async def call(self, tool: str, arguments: str = "{}") -> float:
        """Milliseconds of one call."""
        scope = self._runtime.scope.child("turn")
        began = time.perf_counter()
        (outcome,) = await self._runtime.executor.run(
            self.environment(), [ToolCall("c", tool, arguments)], scope
        )
        took = (time.perf_counter() - began) * 1e3
        assert outcome.outcome == ("failed" if tool == "fail" else "completed"), outcome
        return took

    async def cancel(self, tool: str) -> float:
        """Milliseconds from the cancel to the outcome, when all of it is dead."""
        watch, scope = Watch(), self._runtime.scope.child("turn")
        batch = self._runtime.executor.start(self.environment(watch), [ToolCall("c", tool)], scope)
        await watch.hangs.wait()
        began = time.perf_counter()
        scope.cancel("interrupt")
        (outcome,) = await batch.outcomes()
        took = (time.perf_counter() - began) * 1e3
        assert outcome.outcome == "cancelled", outcome
        return took


async def compare(bench: Bench) -> tuple[float, float]:
    warm: list[float] = []
    thread: list[float] = []
    for _ in range(WARM_UP + ROUNDS):
        warm.append(await bench.call("plain", '{"text": "x"}'))
        thread.append(await bench.call("threaded", '{"text": "x"}'))
    return statistics.median(warm[WARM_UP:]), statistics.median(thread[WARM_UP:])


async def cold(bench: Bench) -> float:
    times: list[float] = []
    for _ in range(COLD_ROUNDS):
        await bench.call("fail")
        times.append(await bench.call("plain", '{"text": "x"}'))
    return statistics.median(times)


async def measure(workspace: Path) -> None:
    runtime = Runtime()
    open_, confined = (
        Bench(runtime, workspace, confined=is_confined) for is_confined in (False, True)
    )
    try:
        warm, thread = await compare(open_)
        print(f"in a thread               {thread:8.2f} ms")
        print(f"in a warm worker          {warm:8.2f} ms  {warm - thread:+.2f} ms")
        walled, _ = await compare(confined)
        print(f"the same, confined        {walled:8.2f} ms")
        large = '{"text": "' + "x" * LARGE + '"}'
        process_ms = await bench_large(open_, large, "plain")
        thread_ms = await bench_large(open_, large, "threaded")
        print(f"10 MB there and back      {process_ms:8.2f} ms  in a thread {thread_ms:.2f} ms")
        print(f"in a cold worker          {await cold(open_):8.2f} ms")
        print(f"the same, confined        {await cold(confined):8.2f} ms")
        slowest = 0.0
        for tool in workertools.HANGS:
            took = [await open_.cancel(tool.name) for _ in range(CANCELS)]
            slowest = max(slowest, *took)
            print(f"cancelling `{tool.name}`{'':{12 - len(tool.name)}} {max(took):9.2f} ms")
    finally:
        await open_.workers.close()
        await confined.workers.close()
        await runtime.close()
    is_met = slowest <= LIMIT_CANCEL
    print(f"limit {LIMIT_CANCEL:.0f} ms to get control back: {'met' if is_met else 'MISSED'}")


async def bench_large(bench: Bench, arguments: str, tool: str) -> float:
    return statistics.median([await bench.call(tool, arguments) for _ in range(5)])


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(measure(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
