"""Run as `python -m tests.seeds.traffic_program HOME`: a gateway that says what it holds.

It answers each line of its input with one line: how many HTTP clients exist, by loop; how many
threads; and its resident memory in KB, with all garbage collected. It ends with its input.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from pathlib import Path
from typing import Any

import aiohttp

from keryx import Keryx
from keryx.aio.loops import run_loop
from keryx.gateway.gateway import running_gateway
from tests.gateway.gateway_program import FAST


def descriptors() -> dict[str, int]:
    """Count the open descriptors by what they are: `socket`, `pipe`, or the name of a file."""
    counts: dict[str, int] = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            name = str(entry.readlink()).partition(":[")[0].rpartition("/")[2]
        except OSError:
            continue  # of this very listing
        counts[name] = counts.get(name, 0) + 1
    return counts


def holdings() -> dict[str, Any]:
    gc.collect()
    by_loop: dict[int, int] = {}
    for candidate in gc.get_objects():
        # type(), because asking an object for its class runs code of lazy modules
        if type(candidate) is aiohttp.ClientSession and not candidate.closed:
            loop = id(candidate._loop)  # pyright: ignore[reportPrivateUsage] (`loop` is deprecated)
            by_loop[loop] = by_loop.get(loop, 0) + 1
    status = Path("/proc/self/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return {
        "clients": sorted(by_loop.values()),
        "threads": threading.active_count(),
        "descriptors": descriptors(),
        "kilobytes": int(resident.split()[1]),
    }


async def main(home: Path) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    workspace = str(home.parent / "workspace")

    def answer() -> None:
        if sys.stdin.buffer.raw.read(1):  # type: ignore[attr-defined] (it is always a file here)
            sys.stdout.write(json.dumps(holdings()) + "\n")
            sys.stdout.flush()
        else:
            ended.set()

    async with (
        Keryx(home=home, workspace=workspace) as app,
        running_gateway(app.host_client, workspace=workspace, tuning=FAST),
    ):
        loop.add_reader(sys.stdin.fileno(), answer)
        await ended.wait()
        loop.remove_reader(sys.stdin.fileno())


if __name__ == "__main__":
    run_loop(main(Path(sys.argv[1])))
