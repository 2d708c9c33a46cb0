"""Peers over Unix sockets: a protocol of the loop, no streams between."""

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
from keryx.rpc.incoming_calls import LIMITS, Handler, Limits, PeerLostError, Room, no_calls
from keryx.rpc.peer import Peer

# Bytes that may wait to be sent before whoever produces them is asked to wait too.
HIGH_WATER: Final = 1 << 20
# How long nothing is accepted when no descriptor is left.
NO_DESCRIPTORS: Final = 0.1
# How long the other side may take to read the last words; it reads them at once or not at all.
LINGER: Final = 1.0
# How often a connection that is not read is looked at: an end that nobody reads is not told.
HELD_LOOK: Final = 0.1
# A program connects when it has something to say.
FIRST_CALL: Final = 30.0
# And when it has to greet, it does so at once.
GREETING: Final = 10.0

_GONE: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class _Wire(asyncio.Protocol):
    """One connection."""

    def __init__(self, scope: Scope, made: Callable[[_Wire], Peer | bytes]) -> None:
        """`made` gives the peer, or the packet that says why there is none."""
        self._scope = scope
        self._made = made
        self._transport: asyncio.Transport | None = None
        self._drained: asyncio.Future[None] | None = None
        self._closing: Deadline | None = None
        self._looking: Deadline | None = None
        self._closed = asyncio.get_running_loop().create_future()
        self.peer: Peer | None = None
        self.on_closed: Callable[[], None] | None = None

    # -- what the loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        self._transport.set_write_buffer_limits(high=HIGH_WATER)
        made = self._made(self)
        if isinstance(made, bytes):
            self._transport.write(frame(made))
            self._transport.close()
        else:
            self.peer = made

    def data_received(self, data: bytes) -> None:
        if self.peer is not None:
            self.peer.received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        for deadline in (self._closing, self._looking):
            if deadline is not None:
                self._scope.deadlines.drop(deadline)
        self._drain_ends()
        if self.peer is not None:
            self.peer.lost(PeerLostError(f"the connection is lost: {exc or 'it was closed'}"))
        if not self._closed.done():
            self._closed.set_result(None)
        if self.on_closed is not None:
            self.on_closed()

    def pause_writing(self) -> None:
        self._drained = asyncio.get_running_loop().create_future()
        if self.peer is not None:
            self.peer.choked(choked=True)

    def resume_writing(self) -> None:
        self._drain_ends()
        if self.peer is not None:
            self.peer.choked(choked=False)

    def _drain_ends(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    # -- what the peer asks

    @property
    def unsent(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
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
            self._look_later()
        else:
            self._transport.resume_reading()
            if self._looking is not None:
                self._scope.deadlines.drop(self._looking)
                self._looking = None

    def close(self, *, linger: bool = False) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if linger:
            # Whoever still writes would find the pipe broken, and never read why.
            self.hold(held=False)
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

    # -- the end of a connection that is not read

    def _look_later(self) -> None:
        if self._looking is None:
            at = self._scope.clock.monotonic() + HELD_LOOK
            self._looking = self._scope.deadlines.add(at, self._look)

    def _look(self) -> None:
        self._looking = None
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        looked = select.poll()
        looked.register(transport.get_extra_info("socket").fileno(), _GONE)
        if looked.poll(0):
            self.abort()
        else:
            self._look_later()


async def connect(
    path: str,
    scope: Scope,
    handler: Handler = no_calls,
    *,
    limits: Limits = LIMITS,
) -> Peer:
    """A connection to whoever listens at that path; `OSError` if nobody does."""
    _, wire = await asyncio.get_running_loop().create_unix_connection(
        lambda: _Wire(scope, lambda made: Peer(made, scope, handler, limits=limits)), path
    )
    assert wire.peer is not None
    return wire.peer


class Listener:
    """Takes connections, and gives each a handler of its own.

    All connections share one room: opening more of them gives nobody more of this side's memory.

    It accepts by itself: a server of asyncio that is closed while it accepts forgets the connection
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
        """A connection that has not called in time, or not greeted if it has to, is closed.

        Unless it is said how many connections there may be, others are left most descriptors.
        """
        self._scope = scope
        self._handler = handler
        self._limits = limits
        self._room = Room(limits)
        self._most = most_connections or incoming_calls.affordable_connections()
        self._first_call = FIRST_CALL if limits.largest_greeting is None else GREETING
        self._loop = asyncio.get_running_loop()
        self._group = Group(scope.child("accepting"))
        self._listening: socket.socket | None = None
        self._wires: set[_Wire] = set()
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
        for wire in (wires := tuple(self._wires)):
            if wire.peer is not None and not wire.peer.is_lost:
                wire.peer.close()
            else:
                wire.abort()  # it has had its last words
        for peer in tuple(self._peers):
            await peer.wait_ended()
        for wire in wires:
            await wire.wait_closed()

    def _accept(self) -> None:
        if self._group.scope.is_cancelled:
            self.stop_listening()  # whom it listens for is being stopped
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
        if (listening := self._listening) is not None:
            self._loop.add_reader(listening.fileno(), self._accept)

    async def _take(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: _Wire(self._scope, self._made), connection
            )
        except OSError:
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    def _made(self, wire: _Wire) -> Peer | bytes:
        if self._closed:
            return packets.goodbye("nobody listens here any more")  # it was on its way then
        if len(self._wires) >= self._most:
            why = f"there are {self._most} connections already; close one first"
            return packets.goodbye(why, packets.CROWDED)
        peer = Peer(
            wire,
            self._scope,
            self._handler(),
            limits=self._limits,
            room=self._room,
            on_over=lambda: self._peers.discard(peer),
        )
        self._peers.add(peer)
        until = self._scope.clock.monotonic() + self._first_call
        silent = self._scope.deadlines.add(until, lambda: self._check_spoken(peer))

        def forget() -> None:
            self._scope.deadlines.drop(silent)
            self._wires.discard(wire)

        wire.on_closed = forget
        self._wires.add(wire)
        return peer

    def _check_spoken(self, peer: Peer) -> None:
        if not peer.has_spoken:
            what = "call" if self._limits.largest_greeting is None else "greeting"
            peer.hang_up(f"no {what} came within {self._first_call:g} s")
