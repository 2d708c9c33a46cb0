"""Two peers in one process: what one writes, the other receives a moment later."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from keryx.aio.scope import Scope
from keryx.rpc.incoming_calls import LIMITS, Handler, Limits, PeerLostError, no_calls
from keryx.rpc.peer import Peer

# As for a socket: bytes that may wait before whoever produces them is asked to wait too.
HIGH_WATER: Final = 1 << 20


class Backlog:
    """Bytes that wait to be taken. Past a mark their peer is choked, until enough has gone."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._drained: asyncio.Future[None] | None = None
        self.unsent = 0
        self.peer: Peer | None = None

    async def drain(self) -> None:
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def _add(self, data: bytes) -> None:
        self._waiting.append(data)
        self.unsent += len(data)
        if self._drained is None and self.unsent > HIGH_WATER:
            self._drained = self._loop.create_future()
            if self.peer is not None:
                self.peer.choked(choked=True)

    def _taken(self) -> None:
        """The first of what waits has gone."""
        self.unsent -= len(self._waiting.popleft())

    def _drop_all(self) -> None:
        self._waiting.clear()
        self.unsent = 0

    def _go_on_if_drained(self) -> None:
        if self._drained is not None and self.unsent <= HIGH_WATER:
            self._drained.set_result(None)
            self._drained = None
            if self.peer is not None:
                self.peer.choked(choked=False)


class _Wire(Backlog):
    """One direction, and the end of the other."""

    def __init__(self) -> None:
        super().__init__()
        self._held = False
        self._ended = False
        self._scheduled = False
        self.other: _Wire | None = None

    def write(self, data: bytes) -> None:
        if not self._ended:
            self._add(data)
            self._schedule()

    def hold(self, *, held: bool) -> None:
        self._held = held
        if not held and self.other is not None:
            self.other._schedule()

    def close(self, *, linger: bool = False) -> None:
        del linger  # what was written waits in memory until it is read
        if not self._ended:
            self._ended = True
            self._schedule()

    def abort(self) -> None:
        self._waiting.clear()
        self.close()

    async def wait_closed(self) -> None:
        """There is nothing to close."""

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        there = self.other
        if there is None or there.peer is None:
            return
        while self._waiting and not there._held and not there.peer.is_lost:
            data = self._waiting[0]
            self._taken()
            there.peer.received(data)
        if self._ended or there.peer.is_lost:
            # Also if it is held: nobody will read the rest.
            self._drop_all()
            there.peer.lost(PeerLostError("the connection is lost: the other side closed it"))
        self._go_on_if_drained()


def pair(
    scope: Scope,
    handler: Handler,
    other_handler: Handler = no_calls,
    *,
    limits: Limits = LIMITS,
) -> tuple[Peer, Peer]:
    """Two peers that are connected; `handler` and the limits are the first one's."""
    here, there = _Wire(), _Wire()
    here.other, there.other = there, here
    here.peer = Peer(here, scope, handler, limits=limits)
    there.peer = Peer(there, scope, other_handler)
    return here.peer, there.peer
