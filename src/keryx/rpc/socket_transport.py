"""Peers over Unix sockets, as a protocol of the event loop."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Final, cast

from keryx.aio.clock import Deadline
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc import incoming_calls, packets
from keryx.rpc.framing import frame
from keryx.rpc.incoming_calls import LIMITS, Capacity, Handler, Limits, PeerLostError, no_calls
from keryx.rpc.peer import Peer

# Bytes that may wait to be sent before their producer has to wait too.
HIGH_WATER: Final = 1 << 20
# How long to accept no connection when no descriptor is left.
NO_DESCRIPTORS: Final = 0.1
# How long the other side may take to read the goodbye; it reads it at once or not at all.
LINGER: Final = 1.0
# How often a paused connection is checked: while it is not read, the loop does not see its end.
PAUSED_CHECK: Final = 0.1
# A program connects when it has a call to make.
FIRST_CALL: Final = 30.0
# A program that has to greet does so at once.
GREETING: Final = 10.0

_CLOSED_EVENTS: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class _Wire(asyncio.Protocol):
    """One connection."""

    def __init__(self, scope: Scope, open_peer: Callable[[_Wire], Peer | bytes]) -> None:
        """`open_peer` returns the peer, or the packet that says why there is none."""
        self._scope = scope
        self._open_peer = open_peer
        self._transport: asyncio.Transport | None = None
        self._drained: asyncio.Future[None] | None = None
        self._closing: Deadline | None = None
        self._closed_check: Deadline | None = None
        self._closed = asyncio.get_running_loop().create_future()
        self.peer: Peer | None = None
        self.on_closed: Callable[[], None] | None = None

    # -- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        peer_or_refusal = self._open_peer(self)
        if isinstance(peer_or_refusal, bytes):
            self._transport.write(frame(peer_or_refusal))
            self._transport.close()
        else:
            self.peer = peer_or_refusal

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self.peer.received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        for deadline in (self._closing, self._closed_check):
            if deadline is not None:
                self._scope.deadlines.drop(deadline)
        self._end_drain()
        if self.peer is not None:
            self.peer.lost(PeerLostError(f"the connection is lost: {exc or 'it was closed'}"))
        if not self._closed.done():
            self._closed.set_result(None)
        if self.on_closed is not None:
            self.on_closed()

    def pause_writing(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()
        if self.peer is not None:
            self.peer.set_writing_paused(paused=True)

    def resume_writing(self) -> None:
        self._end_drain()
        if self.peer is not None:
            self.peer.set_writing_paused(paused=False)

    def _end_drain(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    # -- called by the peer

    @property
    def unsent(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def set_reading_paused(self, *, paused: bool) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return
        if paused:
            self._transport.pause_reading()
            self._check_closed_later()
        else:
            self._transport.resume_reading()
            if self._closed_check is not None:
                self._scope.deadlines.drop(self._closed_check)
                self._closed_check = None

    def close(self, *, linger: bool = False) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if linger:
            # A side that still writes would get a broken pipe, and never read the reason.
            self.set_reading_paused(paused=False)
            transport.write_eof()
        else:
            transport.close()
        if self._closing is None:
            until = self._scope.clock.monotonic() + LINGER
            self._closing = self._scope.deadlines.add(until, self.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        await asyncio.shield(self._closed)

    # -- seeing the end of a connection whose reading is paused

    def _check_closed_later(self) -> None:
        if self._closed_check is None:
            at = self._scope.clock.monotonic() + PAUSED_CHECK
            self._closed_check = self._scope.deadlines.add(at, self._check_closed)

    def _check_closed(self) -> None:
        self._closed_check = None
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        poll = select.poll()
        poll.register(transport.get_extra_info("socket").fileno(), _CLOSED_EVENTS)
        if poll.poll(0):
            self.abort()
        else:
            self._check_closed_later()


async def connect(
    path: str,
    scope: Scope,
    handler: Handler = no_calls,
    *,
    limits: Limits = LIMITS,
) -> Peer:
    """Connect to the listener at that path; raise `OSError` if there is none."""
    _, wire = await asyncio.get_running_loop().create_unix_connection(
        lambda: _Wire(scope, lambda wire: Peer(wire, scope, handler, limits=limits)), path
    )
    assert wire.peer is not None
    return wire.peer


class Listener:
    """Accepts connections, and gives each a handler of its own.

    All connections share one capacity: a program that opens more of them gets no more memory.

    It accepts by itself: an asyncio server that is closed while it accepts forgets the connection
    and leaves the other side waiting for ever.
    """

    def __init__(
        self,
        scope: Scope,
        handler: Callable[[], Handler],
        *,
        limits: Limits = LIMITS,
        most_connections: int | None = None,
    ) -> None:
        """Connections that do not call in time, or greet if they have to, are closed.

        By default connections take at most a quarter of the process's descriptors.
        """
        self._scope = scope
        self._handler = handler
        self._limits = limits
        self._capacity = Capacity(limits)
        self._most_connections = most_connections or incoming_calls.affordable_connections()
        self._first_call = FIRST_CALL if limits.largest_greeting is None else GREETING
        self._loop = asyncio.get_running_loop()
        self._group = Group(scope.child("accepting"))
        self._listening: socket.socket | None = None
        self._wires: set[_Wire] = set()
        self._peers: set[Peer] = set()
        self._closed = False

    def listen(self, listening: socket.socket) -> None:
        """Serve on this socket, which must already be listening."""
        listening.setblocking(False)
        self._listening = listening
        self._loop.add_reader(listening.fileno(), self._accept)

    def stop_listening(self) -> None:
        """Accept no new connections; open ones continue."""
        listening, self._listening = self._listening, None
        if listening is not None:
            self._loop.remove_reader(listening.fileno())
            listening.close()

    async def close(self) -> None:
        """Close all connections, and wait for the calls that ran for them."""
        self.stop_listening()
        self._closed = True
        await self._group.leave()
        self._group.scope.close()
        for wire in (wires := tuple(self._wires)):
            if wire.peer is not None and not wire.peer.is_lost:
                wire.peer.close()
            else:
                wire.abort()  # its goodbye was sent already
        for peer in tuple(self._peers):
            await peer.wait_ended()
        for wire in wires:
            await wire.wait_closed()

    def _accept(self) -> None:
        if self._group.scope.is_cancelled:
            self.stop_listening()  # the owner is being stopped
        if self._listening is None:
            return
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            # Too many descriptors are open: new connections wait until some are closed.
            self._loop.remove_reader(self._listening.fileno())
            pause = self._scope.clock.monotonic() + NO_DESCRIPTORS
            self._scope.deadlines.add(pause, self._accept_again)
            return
        self._group.start(self._open_connection(connection), name="accept")

    def _accept_again(self) -> None:
        if (listening := self._listening) is not None:
            self._loop.add_reader(listening.fileno(), self._accept)

    async def _open_connection(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: _Wire(self._scope, self._open_peer), connection
            )
        except OSError:
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    def _open_peer(self, wire: _Wire) -> Peer | bytes:
        if self._closed:
            return packets.goodbye("the server is closed")  # it connected just before
        if len(self._wires) >= self._most_connections:
            why = f"there are {self._most_connections} connections already; close one first"
            return packets.goodbye(why, packets.TOO_MANY_CONNECTIONS)
        peer = Peer(
            wire,
            self._scope,
            self._handler(),
            limits=self._limits,
            capacity=self._capacity,
            on_ended=lambda: self._peers.discard(peer),
        )
        self._peers.add(peer)
        until = self._scope.clock.monotonic() + self._first_call
        first_call_deadline = self._scope.deadlines.add(until, lambda: self._check_first_call(peer))

        def forget() -> None:
            self._scope.deadlines.drop(first_call_deadline)
            self._wires.discard(wire)

        wire.on_closed = forget
        self._wires.add(wire)
        return peer

    def _check_first_call(self, peer: Peer) -> None:
        if not peer.has_called:
            missing = "call" if self._limits.largest_greeting is None else "greeting"
            peer.hang_up(f"no {missing} came within {self._first_call:g} s")
