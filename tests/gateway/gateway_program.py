"""Run as `python -m tests.gateway.gateway_program HOME`: the gateway in a process of its own.

It runs until it is killed or its input ends. It is as the command, but faster and less patient.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from keryx import Keryx
from keryx.aio.loops import run_loop
from keryx.gateway.delivery.flood_gate import Pace
from keryx.gateway.gateway import running_gateway
from keryx.gateway.tuning import Tuning

FAST = Tuning(
    pace=Pace(
        private_interval=0.001,
        group_interval=0.001,
        everywhere_interval=0.0001,
        preview_interval=0.1,
        backoff=0.05,
        longest_backoff=0.5,
    ),
    join_window=0.2,
    request_timeout=0.5,
    poll_wait=2.0,
    poll_pause=0.05,
)


async def main(home: Path) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    workspace = str(home.parent / "workspace")
    async with (
        Keryx(home=home, workspace=workspace) as app,
        running_gateway(app.host_client, workspace=workspace, tuning=FAST),
    ):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        loop.add_reader(sys.stdin.fileno(), ended.set)
        await ended.wait()
        loop.remove_reader(sys.stdin.fileno())


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    run_loop(main(Path(sys.argv[1])))
