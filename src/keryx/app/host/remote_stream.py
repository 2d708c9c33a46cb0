"""Streams from a host in another process, each over a connection of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Final, Generic, Self, TypeVar

from keryx import errors
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host import socket_protocol
from keryx.errors import KeryxError, UserMustActError
from keryx.events import Event, decode
from keryx.rpc import CallError, Peer, PeerLostError

T = TypeVar("T")

# Events that are buffered here for a slow reader; more stay in the socket, and then at the host.
MAX_BUFFERED: Final = 1_000


async def hang_up(peer: Peer) -> None:
    """Close the connection."""
    peer.close()
    await peer.wait_ended()


def to_local_error(error: CallError) -> KeryxError:
    """Return the error that the host raised, as the same class if that is possible."""
    kind = getattr(errors, error.name, None)
    if not (isinstance(kind, type) and issubclass(kind, KeryxError)):
        kind = UserMustActError
    try:
        return kind(error.message)
    except TypeError:
        return UserMustActError(error.message)


class RemoteStream(Generic[T]):
    """A stream of items over a connection of its own."""

    def __init__(
        self, peer: Peer, scope: Scope, method: str, params: bytes, decode: Callable[[bytes], T]
    ) -> None:
        self._peer = peer
        self._method, self._params = method, params
        self._decode = decode
        self._group = Group(scope.child(method))
        self._items: deque[bytes] = deque()
        self._woken: asyncio.Future[None] | None = None
        self._is_paused = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await hang_up(self._peer)
        await self._group.leave()
        self._group.scope.close()

    async def __aiter__(self) -> AsyncGenerator[T]:
        receiving = self._group.start(self._receive(), name=self._method)
        receiving.add_done_callback(lambda _: self._wake())
        while True:
            while self._items:
                item = self._decode(self._items.popleft())
                self._continue()
                yield item
            if receiving.done():
                if (error := receiving.result()) is not None:
                    raise error
                return
            self._woken = asyncio.get_running_loop().create_future()
            await self._woken

    async def _receive(self) -> KeryxError | None:
        """Wait for the end of the stream; return the error, so that the reader gets it last."""
        try:
            await self._peer.call(self._method, self._params, on_progress=self._take)
        except PeerLostError as error:
            return error
        except CallError as error:
            return to_local_error(error)
        return None

    def _take(self, item: bytes) -> None:
        self._items.append(item)
        if len(self._items) >= MAX_BUFFERED and not self._is_paused:
            self._is_paused = True
            self._peer.wire.set_reading_paused(paused=True)
        self._wake()

    def _continue(self) -> None:
        if self._is_paused and len(self._items) < MAX_BUFFERED // 2:
            self._is_paused = False
            self._peer.wire.set_reading_paused(paused=False)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


class RemoteReader(RemoteStream[Event]):
    """Reads one session's events, and knows the sequence number of the last one."""

    def __init__(self, peer: Peer, request: socket_protocol.WatchRequest, scope: Scope) -> None:
        super().__init__(
            peer,
            scope,
            socket_protocol.WATCH,
            socket_protocol.encode_value(request),
            self._decode_event,
        )
        self.seen = request.after

    def _decode_event(self, item: bytes) -> Event:
        event = decode(item)
        self.seen = getattr(event, "seq", self.seen)
        return event
