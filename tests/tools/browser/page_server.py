"""A web server on loopback for a real browser: its pages, and what was asked of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Self

NEVER = "/never"
"""What begins with this is never answered."""


@dataclass(frozen=True)
class Page:
    """What the server answers for one path."""

    body: str | bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])


class PageServer:
    """Serves pages, and remembers the path of every request."""

    def __init__(self, pages: dict[str, Page] | None = None) -> None:
        self.pages = pages or {}
        self.requests: list[str] = []
        self._changed = asyncio.Event()
        self._held: dict[str, asyncio.Event] = {}
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def wait_for_request(self, path: str) -> None:
        """Return once a browser has asked for this path."""
        while path not in self.requests:
            self._changed.clear()
            await self._changed.wait()

    def hold(self, path: str) -> None:
        """Answer this path only after its release."""
        self._held[path] = asyncio.Event()

    def release(self, path: str) -> None:
        self._held[path].set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the browser went away, or the test is over
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ", 2)[1].decode()
        self.requests.append(path)
        self._changed.set()
        if path.startswith(NEVER):
            await asyncio.Event().wait()
        if path in self._held:
            await self._held[path].wait()
        page = self.pages.get(path.partition("?")[0], Page("there is no such page", 404))
        body = page.body.encode() if isinstance(page.body, str) else page.body
        headers = {"Content-Type": "text/html; charset=utf-8", **page.headers}
        headers |= {"Content-Length": str(len(body)), "Connection": "close"}
        lines = [f"HTTP/1.1 {page.status} OK", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
