"""What confinement costs: `sh -c true` behind all walls, without a policy, and by a plain spawn.

The three are interleaved. A cold start is that of a keeper with its walls, under a warm warden.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import uvloop

from keryx.aio.capture import Capture
from keryx.aio.scope import Scope
from keryx.sandbox import Limits, Policy
from keryx.warden import Warden

LIMIT_WARM = 6.0
LIMIT_COLD = 30.0
WARM_UP = 20
ROUNDS = 200
COLD_ROUNDS = 30
ARGV = ["/bin/sh", "-c", "true"]


async def under_warden(warden: Warden, policy: object) -> None:
    process = await warden.spawn(ARGV, env={}, cwd="/", output=Capture(), policy=policy)
    await process.wait()


def plain() -> None:
    os.waitpid(os.posix_spawn(ARGV[0], ARGV, {}), 0)


async def measure(policy: Policy) -> tuple[str, float, list[float]]:
    """How far it was confined; the median of a cold start; those of the three warm ones."""
    warden = Warden(Scope("benchmark"))
    wire = policy.wire()
    columns: list[list[float]] = [[], [], []]
    cold: list[float] = []
    try:
        level = (await warden.confinement(wire)).level
        for number in range(COLD_ROUNDS):
            other = msgspec.structs.replace(policy, limits=Limits(open_files=1000 + number)).wire()
            start = time.perf_counter()
            await warden.confinement(other)
            cold.append(time.perf_counter() - start)
        for _ in range(WARM_UP + ROUNDS):
            start = time.perf_counter()
            plain()
            spawned = time.perf_counter()
            await under_warden(warden, None)
            kept = time.perf_counter()
            await under_warden(warden, wire)
            end = time.perf_counter()
            for column, seconds in zip(
                columns, (spawned - start, kept - spawned, end - kept), strict=True
            ):
                column.append(seconds)
    finally:
        await warden.close()
    warm = [statistics.median(column[WARM_UP:]) * 1e3 for column in columns]
    return level, statistics.median(cold) * 1e3, warm


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        policy = Policy.build(workspace, home=Path.home())
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            level, cold, (bare, kept, confined) = runner.run(measure(policy))
    extra = confined - bare
    print(f"confinement: {level}")
    print(f"plain posix_spawn + waitpid   {bare:6.2f} ms")
    print(f"under the warden, output read {kept:6.2f} ms")
    print(f"the same, confined            {confined:6.2f} ms  {extra:+.2f} ms against plain")
    print(f"limit {LIMIT_WARM:.0f} ms more: {'met' if extra <= LIMIT_WARM else 'MISSED'}")
    print(f"a new keeper with its walls   {cold:6.2f} ms")
    print(f"limit {LIMIT_COLD:.0f} ms: {'met' if cold <= LIMIT_COLD else 'MISSED'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
