"""Run as `python -m tests.gateway.gateway_program HOME`: gateways in processes of their own.

A line of input with a number starts one, as a copy of this process that has everything imported. It
kills itself after it has stored something that often, or when it rests because there was less to
store; 0: never. A line `kill` kills it, and `wait` waits until it is dead. It is as the command,
but faster and less patient.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from keryx import Keryx
from keryx.aio.loops import run_loop
from keryx.gateway.delivery.flood_gate import Pace
from keryx.gateway.gateway import running_gateway
from keryx.gateway.tuning import Tuning
from keryx.sqlite_file import SqliteFile, Work

HEAVY = ("aiogram", "aiogram.client.session.aiohttp", "aiogram.types", "aiohttp", "markdown_it")
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


AT_REST = 10
"""Seconds until a gateway has stored all that there is, most likely. On a busy machine one may be
killed before, which it has to survive as well."""

# On a busy machine, the answer of the server may take longer than a fault in other tests.
PATIENT = msgspec.structs.replace(FAST, request_timeout=2.0)


async def main(home: Path) -> None:
    """Run the gateway until it is killed."""
    workspace = str(home.parent / "workspace")
    async with (
        Keryx(home=home, workspace=workspace) as app,
        running_gateway(app.host_client, workspace=workspace, tuning=PATIENT),
    ):
        await asyncio.get_running_loop().create_future()


def die_after(count: int) -> None:
    """Kill this process as soon as it has written into the file of the gateway that often."""
    write, left = SqliteFile.write, count

    async def counted(file: SqliteFile, change: Work[Any]) -> Any:
        nonlocal left
        result = await write(file, change)
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    SqliteFile.write = counted  # pyright: ignore[reportAttributeAccessIssue] (a fault)


def start(home: Path, writes: int) -> int:
    """Return the id of a new process that is the gateway of this home."""
    process_id = os.fork()
    if process_id:
        return process_id
    try:
        # The input belongs to the first process.
        os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
        if writes:
            die_after(writes)
            signal.alarm(AT_REST)  # nobody handles it, so it ends the process as a kill does
        run_loop(main(home))
    finally:
        os._exit(1)


def serve(home: Path) -> None:
    process_id: int | None = None
    try:
        for line in sys.stdin:
            match line.strip():
                case "kill" | "wait" as order:
                    assert process_id is not None
                    end(process_id, is_killed=order == "kill")
                    process_id = None
                case writes:
                    process_id = start(home, int(writes))
            sys.stdout.write("done\n")
            sys.stdout.flush()
    finally:
        if process_id is not None:
            end(process_id, is_killed=True)


def end(process_id: int, *, is_killed: bool) -> None:
    if is_killed:
        os.kill(process_id, signal.SIGKILL)
    os.waitpid(process_id, 0)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    for name in HEAVY:
        importlib.import_module(name)
    assert threading.active_count() == 1, "a process with threads cannot be copied"
    serve(Path(sys.argv[1]))
