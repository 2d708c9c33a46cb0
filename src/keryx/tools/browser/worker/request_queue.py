"""Requests from the host: read from standard input, done one after the other, answered by id.

The frames are those of `keryx.rpc`: a length in four bytes, then JSON-RPC 2.0. The notification
`cancel` gives a request up; `progress` says that one begins. It knows nothing of browsers.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

FAILED = -32000
CANCELLED = -32800
BROKEN = -32603

Handler = Callable[[str, dict[str, Any]], Awaitable[Any]]


class ActionError(Exception):
    """A request that cannot be done. The text says why and what to do."""


class RequestQueue:
    """Does one request at a time. A cancelled one has ended before the next one begins."""

    def __init__(self, handler: Handler, answers: int) -> None:
        """`answers` is the descriptor for the answers."""
        self._handler = handler
        self._answers = answers
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._given_up: set[int] = set()
        self._running: tuple[int, asyncio.Task[Any]] | None = None

    async def read(self) -> None:
        """Read requests until the host closes the pipe."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        with os.fdopen(0, "rb") as stdin:
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
            while True:
                try:
                    size = int.from_bytes(await reader.readexactly(4), "big")
                    packet = json.loads(await reader.readexactly(size))
                except asyncio.IncompleteReadError:
                    return
                self._take(packet)

    def _take(self, packet: dict[str, Any]) -> None:
        if packet.get("method") != "cancel":
            self._waiting.put_nowait(packet)
            return
        given_up: int = packet["params"]["id"]
        if self._running is not None and self._running[0] == given_up:
            self._running[1].cancel()
        else:
            self._given_up.add(given_up)

    async def work(self) -> None:
        """Do the requests, in the order in which they came."""
        while True:
            packet = await self._waiting.get()
            id_: int = packet["id"]
            if id_ in self._given_up:
                self._given_up.discard(id_)
                self._fail(id_, CANCELLED, "its caller gave it up")
                continue
            handling = self._handler(packet["method"], packet.get("params") or {})
            task = asyncio.ensure_future(handling)  # noqa: TID251 (this process has no scopes)
            self._running = (id_, task)
            self._write({"jsonrpc": "2.0", "method": "progress", "params": {"id": id_, "value": 0}})
            await asyncio.wait([task])
            self._running = None
            self._given_up = {given_up for given_up in self._given_up if given_up > id_}
            self._answer(id_, task)

    def _answer(self, id_: int, task: asyncio.Future[Any]) -> None:
        if task.cancelled():
            self._fail(id_, CANCELLED, "its caller gave it up")
            return
        error = task.exception()
        if error is None:
            self._write({"jsonrpc": "2.0", "id": id_, "result": task.result()})
        elif isinstance(error, ActionError):
            self._fail(id_, FAILED, str(error))
        else:
            self._fail(id_, BROKEN, f"{type(error).__name__}: {error}")

    def _fail(self, id_: int, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self._write({"jsonrpc": "2.0", "id": id_, "error": error})

    def _write(self, packet: dict[str, Any]) -> None:
        # A page's text may hold half characters, which UTF-8 cannot encode.
        data = json.dumps(packet, ensure_ascii=False).encode(errors="replace")
        view = memoryview(len(data).to_bytes(4, "big") + data)
        while view:
            view = view[os.write(self._answers, view) :]
