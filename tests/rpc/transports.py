"""Every transport, as the contract sees it: a client on one side, a handler on the other."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.rpc import Handler, Limits, Listener, Peer, connect
from keryx.rpc.file_transport import FileTransport
from keryx.rpc.memory_transport import pair
from keryx.rpc.pipe_transport import Pipes
from keryx.warden import Warden
from tests.rpc.folderguest import FolderGuest

PATIENCE = 20.0  # long enough for any machine; only reached by a test that fails
RELAY = Path(__file__).with_name("relay.py")


class Client(Protocol):
    async def call(
        self, method: str, params: bytes, *, on_progress: Callable[[bytes], None] | None = None
    ) -> bytes: ...

    async def hang_up(self) -> None:
        """Leave; what this client asked for is given up."""
        ...


@dataclass
class Pair:
    client: Client
    close_server: Callable[[], Awaitable[None]]
    scope: Scope


class Transport(Protocol):
    has_progress: bool

    def pair(
        self, handler: Handler, tmp_path: Path, limits: Limits | None = None
    ) -> AbstractAsyncContextManager[Pair]: ...


class PeerClient:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.call = peer.call

    async def hang_up(self) -> None:
        self.peer.close()
        await self.peer.wait_ended()


class Memory:
    has_progress = True

    @asynccontextmanager
    async def pair(
        self, handler: Handler, tmp_path: Path, limits: Limits | None = None
    ) -> AsyncGenerator[Pair]:
        scope = Scope("test")
        server, client = pair(scope, handler, limits=limits or Limits())

        async def close() -> None:
            server.close()
            await server.wait_ended()

        yield Pair(PeerClient(client), close, scope)
        client.close()
        await close()
        await client.wait_ended()
        assert server.in_flight == client.in_flight == 0
        assert scope.children == ()
        scope.close()


def listening_at(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    return listening


class Sockets:
    has_progress = True

    @asynccontextmanager
    async def pair(
        self, handler: Handler, tmp_path: Path, limits: Limits | None = None
    ) -> AsyncGenerator[Pair]:
        scope = Scope("test")
        listener = Listener(scope, lambda: handler, limits=limits or Limits())
        listener.listen(listening_at(tmp_path / "s"))
        client = await connect(str(tmp_path / "s"), scope)
        yield Pair(PeerClient(client), listener.close, scope)
        client.close()
        await client.wait_ended()
        await listener.close()
        assert client.in_flight == 0
        assert scope.children == ()
        scope.close()


class Ready:
    """What the relay says on stderr."""

    def __init__(self) -> None:
        self.is_ready = asyncio.Event()

    def feed(self, stream: str, data: bytes) -> None:
        assert (stream, data) == ("stderr", b"ready\n")
        self.is_ready.set()


class Stdio:
    has_progress = True

    @asynccontextmanager
    async def pair(
        self, handler: Handler, tmp_path: Path, limits: Limits | None = None
    ) -> AsyncGenerator[Pair]:
        scope = Scope("test")
        warden = Warden(scope)
        errors = Ready()
        pipes = Pipes(scope, handler, errors=errors, limits=limits or Limits())
        argv = [sys.executable, "-S", str(RELAY), str(tmp_path / "s")]
        process = await warden.spawn(argv, env={}, cwd="/", output=pipes, stdin=True)
        pipes.carry(process)
        async with process:
            await errors.is_ready.wait()
            client = await connect(str(tmp_path / "s"), scope)
            yield Pair(PeerClient(client), pipes.end, scope)
            await pipes.end()
            client.close()
            await client.wait_ended()
        assert pipes.peer.in_flight == client.in_flight == 0
        await warden.close()
        scope.close()


class Files:
    has_progress = False

    @asynccontextmanager
    async def pair(
        self, handler: Handler, tmp_path: Path, limits: Limits | None = None
    ) -> AsyncGenerator[Pair]:
        scope = Scope("test")
        bridge = Bridge(scope)
        folder = tmp_path / "shared"
        server = await FileTransport.open(folder, scope, bridge, handler, limits=limits or Limits())
        closed = False

        async def close() -> None:
            nonlocal closed
            if not closed:
                closed = True
                await server.close()

        yield Pair(FolderGuest(folder), close, scope)
        await close()
        assert server.in_flight == 0
        left = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*"))
        assert [path for path in left if not path.startswith("rep/")] == []
        await bridge.close()
        for child in scope.children:
            child.close()
        scope.close()
