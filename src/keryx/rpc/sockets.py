"""Peers over Unix sockets: a protocol of the loop, no streams between."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from keryx.aio.scope import Scope
from keryx.rpc.frames import LARGEST_FRAME
from keryx.rpc.peer import Handler, Peer, PeerLostError, no_calls

# Bytes that may wait to be sent before whoever produces them is asked to wait too.
HIGH_WATER: Final = 1 << 20


class _Wire(asyncio.Protocol):
    """One connection."""

    def __init__(self, made: Callable[[_Wire], Peer]) -> None:
        self._made = made
        self._transport: asyncio.Transport | None = None
        self._drained: asyncio.Future[None] | None = None
        self.peer: Peer | None = None

    # -- what the loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        self.peer = self._made(self)

    def data_received(self, data: bytes) -> None:
        assert self.peer is not None
        self.peer.received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.resume_writing()
        if self.peer is not None:
            self.peer.lost(PeerLostError(f"the connection is lost: {exc or 'it was closed'}"))

    def pause_writing(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    # -- what the peer asks

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    async def drain(self) -> None:
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def hold(self, *, held: bool) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return
        if held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def connect(
    path: str,
    scope: Scope,
    handler: Handler = no_calls,
    *,
    largest_frame: int = LARGEST_FRAME,
) -> Peer:
    """A connection to whoever listens at that path; `OSError` if nobody does."""
    _, wire = await asyncio.get_running_loop().create_unix_connection(
        lambda: _Wire(lambda made: Peer(made, scope, handler, largest_frame=largest_frame)), path
    )
    assert wire.peer is not None
    return wire.peer


class Listener:
    """Takes connections, and gives each a handler of its own."""

    def __init__(
        self,
        scope: Scope,
        handler: Callable[[], Handler],
        *,
        largest_frame: int = LARGEST_FRAME,
    ) -> None:
        self._scope = scope
        self._handler = handler
        self._largest = largest_frame
        self._server: asyncio.AbstractServer | None = None
        self._peers: set[Peer] = set()

    async def listen(self, listening: socket.socket) -> None:
        """Serve on this socket, which listens already."""
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: _Wire(self._made), sock=listening
        )

    def stop_listening(self) -> None:
        """Take no new connection; those there are go on."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def close(self) -> None:
        """Hang up on everybody, and wait for what ran for them."""
        self.stop_listening()
        for peer in tuple(self._peers):
            peer.close()
            await peer.wait_ended()
        self._peers.clear()

    def _made(self, wire: _Wire) -> Peer:
        self._peers = {peer for peer in self._peers if not peer.is_lost}
        peer = Peer(wire, self._scope, self._handler(), largest_frame=self._largest)
        self._peers.add(peer)
        return peer
