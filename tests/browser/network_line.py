"""A line between browser and server that a test cuts, lets go silent, and mends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Line:
    """Passes bytes on, both ways, while it is whole."""

    def __init__(self) -> None:
        self.address = ""
        """The host and port that a browser connects to."""
        self._target = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self._cut = False
        self._writers: set[asyncio.StreamWriter] = set()

    def leads_to(self, url: str) -> None:
        self._target = urlsplit(url).port or 0

    def cut(self) -> None:
        """Every connection is dropped, and so is every new one."""
        self._cut = True
        for writer in self._writers:
            writer.transport.abort()

    def fall_silent(self) -> None:
        """Nothing arrives any more, and nobody is told."""
        self._flows.clear()

    def mend(self) -> None:
        self._cut = False
        self._flows.set()

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        both = {writer, far_writer}
        self._writers |= both
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, far_writer))
                group.create_task(self._pass(far_reader, writer))
        finally:
            self._writers -= both
            for side in both:
                side.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.transport.abort()


@asynccontextmanager
async def line() -> AsyncGenerator[Line]:
    network = Line()
    server = await asyncio.start_server(network.meet, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    network.address = f"{host}:{port}"
    try:
        yield network
    finally:
        network.cut()
        network.mend()
        server.close()
        await server.wait_closed()
