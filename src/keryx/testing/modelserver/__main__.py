"""Runs the scripted model server as a program, so that it uses another core."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from keryx.aio.loops import run_loop
from keryx.decoding import decode_json
from keryx.testing.modelserver.answer import ReceivedRequest
from keryx.testing.modelserver.script import Reply, Script
from keryx.testing.modelserver.server import ModelServer


def main(argv: Sequence[str] | None = None) -> int:
    """Serve a script until SIGTERM or Ctrl+C."""
    parser = argparse.ArgumentParser(prog="python -m keryx.testing.modelserver")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--script", type=Path, required=True, help="replies, as JSON")
    parser.add_argument("--key", default=None, help="the key that must be given")
    options = parser.parse_args(argv)
    script = decode_json(options.script.read_bytes(), Script)
    with suppress(KeyboardInterrupt):
        run_loop(_serve(script, port=options.port, key=options.key))
    return 0


async def _serve(script: Script, *, port: int, key: str | None) -> None:
    replies = script.replies

    def repeat(request: ReceivedRequest) -> Reply:
        return replies[(request.number - 1) % len(replies)]

    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    answers = repeat if script.repeat else replies
    # Nobody can read the requests, and a long measurement would fill the memory.
    async with ModelServer(answers, key=key, port=port, keeps_asked=False) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await ended.wait()


if __name__ == "__main__":
    sys.exit(main())
