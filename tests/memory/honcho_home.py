"""Providers of a strict Honcho server, each over a file of memories in a folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.memory.memory_file import MemoryFile
from keryx.memory.providers.honcho.provider import HonchoProvider
from tests.memory.honcho_server.process import KEY, HonchoServer

CONFIGURED = "keryx"
WORKSPACE = "keryx-default"
"""The workspace at Honcho of the profile `default`."""
SETTLE = 0.3


@contextmanager
def honcho_server(folder: Path) -> Generator[HonchoServer]:
    server = HonchoServer(folder / "honcho.db")
    try:
        yield server
    finally:
        server.kill()


def provider_of(
    server: HonchoServer, file: MemoryFile, bridge: Bridge, **settings: Any
) -> HonchoProvider:
    # Only tests about time reach their limit: on a full machine an answer may take long.
    defaults: dict[str, Any] = {"timeout": 30.0, "settle": SETTLE, "api_key": KEY}
    return HonchoProvider(
        file, bridge, url=server.url, workspace=CONFIGURED, **{**defaults, **settings}
    )


@asynccontextmanager
async def memories_of(folder: Path) -> AsyncGenerator[tuple[MemoryFile, Bridge]]:
    """Open a file of memories, and the threads that it needs."""
    scope = Scope("test")
    bridge = Bridge(scope)
    file = MemoryFile(folder / "memory.db", bridge)
    try:
        yield file, bridge
    finally:
        await file.close()
        await bridge.close()
        scope.close()
