"""Peers over Unix sockets: a protocol of the loop, no streams between."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc.frames import LARGEST_FRAME
from keryx.rpc.peer import Handler, Peer, PeerLostError, no_calls

# Bytes that may wait to be sent before whoever produces them is asked to wait too.
HIGH_WATER: Final = 1 << 20
# How long nothing is accepted when no descriptor is left.
NO_DESCRIPTORS: Final = 0.1


class _Wire(asyncio.Protocol):
    """One connection."""

    def __init__(self, made: Callable[[_Wire], Peer | None]) -> None:
        self._made = made
        self._transport: asyncio.Transport | None = None
        self._drained: asyncio.Future[None] | None = None
        self.peer: Peer | None = None

    # -- what the loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        self.peer = self._made(self)
        if self.peer is None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
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
    """Takes connections, and gives each a handler of its own.

    It accepts by itself: a server of asyncio that is closed while it accepts forgets the connection
    and leaves the other side waiting for ever.
    """

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
        self._loop = asyncio.get_running_loop()
        self._group = Group(scope.child("accepting"))
        self._listening: socket.socket | None = None
        self._peers: set[Peer] = set()
        self._closed = False

    def listen(self, listening: socket.socket) -> None:
        """Serve on this socket, which listens already."""
        listening.setblocking(False)
        self._listening = listening
        self._loop.add_reader(listening.fileno(), self._accept)

    def stop_listening(self) -> None:
        """Take no new connection; those there are go on."""
        listening, self._listening = self._listening, None
        if listening is not None:
            self._loop.remove_reader(listening.fileno())
            listening.close()

    async def close(self) -> None:
        """Hang up on everybody, and wait for what ran for them."""
        self.stop_listening()
        self._closed = True
        await self._group.leave()
        self._group.scope.close()
        for peer in tuple(self._peers):
            peer.close()
            await peer.wait_ended()
        self._peers.clear()

    def _accept(self) -> None:
        if self._listening is None:
            return
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            # Too many descriptors are open: whoever waits, waits until some are closed.
            self._loop.remove_reader(self._listening.fileno())
            pause = self._scope.clock.monotonic() + NO_DESCRIPTORS
            self._scope.deadlines.add(pause, self._accept_again)
            return
        self._group.start(self._take(connection), name="accept")

    def _accept_again(self) -> None:
        if self._listening is not None:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    async def _take(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: _Wire(self._made), connection)
        except OSError:
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    def _made(self, wire: _Wire) -> Peer | None:
        if self._closed:
            return None  # it was on its way when the listener was closed
        self._peers = {peer for peer in self._peers if not peer.is_lost}
        peer = Peer(wire, self._scope, self._handler(), largest_frame=self._largest)
        self._peers.add(peer)
        return peer
