"""What the warden costs: `/bin/true` under it against a plain spawn and wait, interleaved."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time

import uvloop

from keryx.aio.capture import Capture
from keryx.aio.scope import Scope
from keryx.warden import Warden

LIMIT = 2.0
WARM_UP = 30
ROUNDS = 300
PROGRAM = "/bin/true"


async def under_warden(warden: Warden, output: Capture | None) -> None:
    process = await warden.spawn([PROGRAM], env={}, cwd="/", output=output)
    await process.wait()


def plain() -> None:
    os.waitpid(os.posix_spawn(PROGRAM, [PROGRAM], {}), 0)


async def measure() -> tuple[float, float, float]:
    """The medians in microseconds: plain, under the warden, and there with its output read."""
    warden = Warden(Scope("benchmark"))
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    try:
        for _ in range(WARM_UP + ROUNDS):
            start = time.perf_counter()
            plain()
            spawned = time.perf_counter()
            await under_warden(warden, None)
            kept = time.perf_counter()
            await under_warden(warden, Capture())
            end = time.perf_counter()
            times[0].append(spawned - start)
            times[1].append(kept - spawned)
            times[2].append(end - kept)
    finally:
        await warden.close()
    bare, kept, captured = (statistics.median(column[WARM_UP:]) * 1e6 for column in times)
    return bare, kept, captured


def main() -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        bare, kept, captured = runner.run(measure())
    ratio = kept / bare
    print(f"plain posix_spawn + waitpid   {bare:7.0f} us")
    print(f"under the warden              {kept:7.0f} us  ratio {ratio:.2f}")
    print(f"under the warden, output read {captured:7.0f} us  ratio {captured / bare:.2f}")
    print(f"limit {LIMIT:.1f}: {'met' if ratio <= LIMIT else 'MISSED'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
