"""Event streams (SSE) as raw ASGI: each event is encoded once for all its readers.

A stream has two tasks besides that of its request: one encodes events into a buffer, one waits for
the client to disconnect. The request's own task writes the whole buffer and waits for the socket.
If the client is slow, the buffer fills up and encoding stops; then the hub drops live events and
tells the reader to resync. So the memory of a reader is bounded, and no session waits for a reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, MutableMapping
from contextlib import aclosing
from typing import Any, Final, TypeVar

import msgspec

from keryx import events as ev
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.errors import KeryxError, SessionDeletedError
from keryx.ports.dispatch import Change
from keryx.server.guards import API_HEADERS

T = TypeVar("T")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BEAT: Final = 15.0
"""Seconds between heartbeats on an idle stream."""
FULL: Final = 64 * 1024
"""Bytes in the buffer of one reader; further events wait in the hub."""
CACHED_EVENTS: Final = 256
"""Encoded events that are cached for the other readers of a session."""
CACHED_BYTES: Final = 1024 * 1024

_BEAT_LINE: Final = b": beat\n\n"
_DELETED: Final = b"event: deleted\ndata: {}\n\n"
_HELLO: Final = b"retry: 1000\n\n"
_START: Final = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        *API_HEADERS,
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"x-accel-buffering", b"no"),
    ],
}
_log: Final = logging.getLogger("keryx.server")
_encode_row: Final = msgspec.json.Encoder().encode


# -- events as bytes


def encode_event(event: ev.Event) -> bytes:
    """Encode one event of a session; only logged events have an id, so it names the last one."""
    seq = getattr(event, "seq", None)
    tail = b"\n\n" if seq is None else b"\nid: %d\n\n" % seq
    return b"event: %b\ndata: %b%b" % (ev.type_of(event).encode(), _line(ev.encode(event)), tail)


def encode_change(change: Change) -> bytes:
    """Encode one change of the list of sessions."""
    if change.row is None:
        return b"event: deleted\ndata: %b\n\n" % _encode_row({"session_id": change.session_id})
    # A client that reconnects with this id has missed nothing before it.
    id_ = b"" if change.upto is None else b"id: %d\n" % change.upto
    return b"event: session\ndata: %b\n%b\n" % (_line(_encode_row(change.row)), id_)


def _line(data: bytes) -> bytes:
    """Return JSON on one line: JSON from providers and tools may hold line breaks."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


class Encodings:
    """A cache of one session's last events as bytes, by the identity of the event."""

    def __init__(self) -> None:
        self.readers = 0
        self._cache: OrderedDict[int, tuple[ev.Event, bytes]] = OrderedDict()
        self._size = 0

    def encode(self, event: ev.Event) -> bytes:
        if self.readers == 1:
            return encode_event(event)
        entry = self._cache.get(id(event))
        if entry is not None:
            return entry[1]
        data = encode_event(event)
        # The entry keeps the event alive, so that no other object can get the same id.
        self._cache[id(event)] = (event, data)
        self._size += len(data)
        while len(self._cache) > CACHED_EVENTS or self._size > CACHED_BYTES:
            self._size -= len(self._cache.popitem(last=False)[1][1])
        return data


# -- one reader


class Buffer:
    """The bytes that wait for one reader. Its futures exist only while a task waits for them."""

    __slots__ = ("_ended", "_has_data", "_has_room", "_may_read", "_parts", "_size")

    def __init__(self, may_read: Callable[[], bool], hello: bytes = _HELLO) -> None:
        self._parts: list[bytes] = [hello]
        self._size = 0
        self._ended = False
        self._has_data: asyncio.Future[None] | None = None
        self._has_room: asyncio.Future[None] | None = None
        self._may_read = may_read

    @property
    def is_full(self) -> bool:
        return self._size >= FULL

    def put(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        _wake(self._has_data)

    def beat(self) -> None:
        """Add a heartbeat if the buffer is empty; end the stream if its login has ended."""
        if not self._may_read():
            self.end()
        elif not self._parts:
            self.put(_BEAT_LINE)

    def end(self) -> None:
        self._ended = True
        _wake(self._has_data)
        _wake(self._has_room)

    async def wait_room(self) -> None:
        """Return once the buffer has room again."""
        while self.is_full and not self._ended:
            self._has_room = asyncio.get_running_loop().create_future()
            await self._has_room

    async def write(self, send: Send) -> None:
        """Write the buffer to the client whenever it has data, until the stream ends."""
        while not self._ended:
            if self._parts:
                body = b"".join(self._parts)
                self._parts.clear()
                self._size = 0
                _wake(self._has_room)
                await send({"type": "http.response.body", "body": body, "more_body": True})
            else:
                self._has_data = asyncio.get_running_loop().create_future()
                await self._has_data
                self._has_data = None
        await send({"type": "http.response.body", "body": b"".join(self._parts)})


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


# -- all readers


class Streams:
    """The open streams of a server. Belongs to one loop; `close` it before the host ends."""

    def __init__(self, scope: Scope, refresh: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`refresh` reads the revoked tokens again; streams check theirs afterwards."""
        self.group: Final = Group(scope.child("streams"), on_error=_log_error)
        self.is_closing = False
        self._refresh = refresh
        self._buffers: set[Buffer] = set()
        self._encodings: dict[tuple[str, str], Encodings] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._buffers)

    async def session(
        self,
        key: tuple[str, str],
        events: AsyncGenerator[ev.Event],
        receive: Receive,
        send: Send,
        may_read: Callable[[], bool],
    ) -> None:
        """Send the events of a session until the client or the server ends the stream.

        The key is the user and the session: two users may have sessions of the same id.
        """
        shared = self._encodings.setdefault(key, Encodings())
        shared.readers += 1
        try:
            await self.send(events, shared.encode, receive, send, may_read)
        finally:
            shared.readers -= 1
            if shared.readers == 0:
                del self._encodings[key]

    async def changes(
        self,
        changes: AsyncGenerator[Change],
        receive: Receive,
        send: Send,
        may_read: Callable[[], bool],
    ) -> None:
        """Send the changes of the list of sessions."""
        await self.send(changes, encode_change, receive, send, may_read)

    async def close(self) -> None:
        """End all streams; clients reconnect to the next server."""
        self.is_closing = True
        if self._timer is not None:
            self._timer.cancel()
        for buffer in self._buffers:
            buffer.end()
        await self.group.leave()
        self.group.scope.close()

    async def send(
        self,
        items: AsyncGenerator[T],
        encode: Callable[[T], bytes],
        receive: Receive,
        send: Send,
        may_read: Callable[[], bool],
        hello: bytes = _HELLO,
    ) -> None:
        buffer = Buffer(may_read, hello)
        self._buffers.add(buffer)
        self._keep_beating()
        try:
            tasks = (
                self.group.start(_fill(items, encode, buffer), name="stream"),
                self.group.start(_wait_disconnect(receive, buffer), name="disconnect"),
            )
        except KeryxError:
            await items.aclose()
            self._buffers.discard(buffer)
            raise
        try:
            await asyncio.sleep(0)  # lets the subscription begin before the client sees the answer
            await send(_START)
            await buffer.write(send)
        finally:
            self._buffers.discard(buffer)
            for task in tasks:
                task.cancel()

    def _keep_beating(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BEAT, self._beat)

    def _beat(self) -> None:
        self._timer = None
        for buffer in self._buffers:
            buffer.beat()
        if self._buffers:
            self.group.start(self._refresh(), name="refresh")
            self._keep_beating()


def _log_error(name: str, error: BaseException) -> None:
    """Log an error of one stream; it must not end the others."""
    _log.error("%s of a stream failed", name, exc_info=error)


async def _fill(items: AsyncGenerator[T], encode: Callable[[T], bytes], buffer: Buffer) -> None:
    """Encode items into the buffer. It raises nothing: other streams are in the same group."""
    try:
        async with aclosing(items):
            async for item in items:
                buffer.put(encode(item))
                if buffer.is_full:
                    await buffer.wait_room()
    except SessionDeletedError:
        # A client that reconnected would only learn that the session does not exist.
        buffer.put(_DELETED)
    except KeryxError as error:
        # For example a log that cannot be read. The client reconnects and gets the error.
        _log.info("a stream ends: %s", error)
    except Exception as error:  # noqa: BLE001 (whatever it is, it ends this stream alone)
        _log.error("a stream ends", exc_info=error)
    finally:
        buffer.end()


async def _wait_disconnect(receive: Receive, buffer: Buffer) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    buffer.end()
