"""Two connected peers in one process: what one writes, the other receives in a later callback."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from keryx.aio.scope import Scope
from keryx.rpc.incoming_calls import LIMITS, Handler, Limits, PeerLostError, no_calls
from keryx.rpc.peer import Peer

# As for a socket: bytes that may wait to be sent before their producer has to wait too.
HIGH_WATER: Final = 1 << 20


class WriteBuffer:
    """Bytes that wait to be sent. Past the high-water mark its peer stops writing for a while."""

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
                self.peer.set_writing_paused(paused=True)

    def _pop_first(self) -> None:
        """Remove the first piece: it was sent."""
        self.unsent -= len(self._waiting.popleft())

    def _drop_all(self) -> None:
        self._waiting.clear()
        self.unsent = 0

    def _resume_if_drained(self) -> None:
        if self._drained is not None and self.unsent <= HIGH_WATER:
            self._drained.set_result(None)
            self._drained = None
            if self.peer is not None:
                self.peer.set_writing_paused(paused=False)


class _Wire(WriteBuffer):
    """One direction of the connection."""

    def __init__(self) -> None:
        super().__init__()
        self._reading_paused = False
        self._ended = False
        self._scheduled = False
        self.other: _Wire | None = None

    def write(self, data: bytes) -> None:
        if not self._ended:
            self._add(data)
            self._schedule()

    def set_reading_paused(self, *, paused: bool) -> None:
        self._reading_paused = paused
        if not paused and self.other is not None:
            self.other._schedule()

    def close(self, *, linger: bool = False) -> None:
        del linger  # written data waits in memory until it is read
        if not self._ended:
            self._ended = True
            self._schedule()

    def abort(self) -> None:
        self._waiting.clear()
        self.close()

    async def wait_closed(self) -> None:
        """Return at once: there is nothing to close."""

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._scheduled = False
        receiver = self.other
        if receiver is None or receiver.peer is None:
            return
        while self._waiting and not receiver._reading_paused and not receiver.peer.is_lost:
            data = self._waiting[0]
            self._pop_first()
            receiver.peer.received(data)
        if self._ended or receiver.peer.is_lost:
            # Also if reading is paused: nobody will read the remaining data.
            self._drop_all()
            receiver.peer.lost(PeerLostError("the connection is lost: the other side closed it"))
        self._resume_if_drained()


def pair(
    scope: Scope,
    handler: Handler,
    other_handler: Handler = no_calls,
    *,
    limits: Limits = LIMITS,
) -> tuple[Peer, Peer]:
    """Return two connected peers; `handler` and the limits are the first one's."""
    first, second = _Wire(), _Wire()
    first.other, second.other = second, first
    first.peer = Peer(first, scope, handler, limits=limits)
    second.peer = Peer(second, scope, other_handler)
    return first.peer, second.peer
