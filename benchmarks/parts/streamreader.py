"""Reads many event streams in its own process and prints how old each token was on arrival.

`python streamreader.py CORE` reads one line of JSON from its stdin: host, port, headers, paths and
stamps. It opens a stream for each path, says `ready`, and after so many stamps in all it prints the
ages in microseconds, as JSON. With no stamps to wait for it holds them until its stdin ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from typing import Any, Final, cast

import uvloop

_STAMP: Final = re.compile(rb" (\d{12,})")


class Reader(asyncio.Protocol):
    """Reads one stream. It looks at the events and keeps none."""

    def __init__(self, request: bytes, ages: list[int], opened: asyncio.Future[None]) -> None:
        self._request = request
        self._ages = ages
        self._opened = opened
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        if not self._opened.done():
            if not data.startswith(b"HTTP/1.1 200"):
                self._opened.set_exception(AssertionError(data[:500].decode()))
                return
            self._opened.set_result(None)
        *events, self._buffer = (self._buffer + data).split(b"\n\n")
        # Only deltas: the fact at the end repeats the whole text.
        new = (event for event in events if b"event: text.delta" in event)
        self._ages += [now - int(stamp) for event in new for stamp in _STAMP.findall(event)]


async def read(options: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    ages: list[int] = []
    head = "".join(f"{name}: {value}\r\n" for name, value in options["headers"].items())
    for path in options["paths"]:
        opened: asyncio.Future[None] = loop.create_future()
        request = f"GET {path} HTTP/1.1\r\n{head}Accept: text/event-stream\r\n\r\n".encode()
        make = lambda request=request, opened=opened: Reader(request, ages, opened)  # noqa: E731
        await loop.create_connection(make, options["host"], options["port"])
        await opened
    print("ready", flush=True)
    if not options["stamps"]:
        await loop.run_in_executor(None, sys.stdin.read)
        return
    while len(ages) < options["stamps"]:  # noqa: ASYNC110 (an event for each token would be measured)
        await asyncio.sleep(0.1)
    print(json.dumps([age // 1000 for age in ages]), flush=True)


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(sys.argv[1])})
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(read(json.loads(sys.stdin.readline())))
