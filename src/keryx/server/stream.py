"""Event streams (SSE) as raw ASGI: each event is encoded once, however many read it.

A stream has two tasks beside that of its request: one takes events and lines them up as bytes, one
waits for the reader to hang up. The request's own task writes what is lined up, all of it at once,
and waits for the socket. When that is slow, lining up stops, and the hub's own bound counts: the
reader is told to resync. So what a reader costs is bounded, and no session waits for one.
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
"""Seconds between signs of life on a stream that has nothing else to say."""
FULL: Final = 64 * 1024
"""Bytes that are lined up for one reader; more wait as events, in the hub."""
REMEMBERED: Final = 256
"""Encoded events that are kept for the other readers of a session."""
REMEMBERED_BYTES: Final = 1024 * 1024

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
    """One event of a session; only facts have an id, so that it always names the last one seen."""
    seq = getattr(event, "seq", None)
    tail = b"\n\n" if seq is None else b"\nid: %d\n\n" % seq
    return b"event: %b\ndata: %b%b" % (ev.type_of(event).encode(), _line(ev.encode(event)), tail)


def encode_change(change: Change) -> bytes:
    """One change of the list of sessions."""
    if change.row is None:
        return b"event: deleted\ndata: %b\n\n" % _encode_row({"session_id": change.session_id})
    # Who comes back with this id has missed nothing that came before it.
    id_ = b"" if change.upto is None else b"id: %d\n" % change.upto
    return b"event: session\ndata: %b\n%b\n" % (_line(_encode_row(change.row)), id_)


def _line(data: bytes) -> bytes:
    """What a provider or a tool wrote is passed on as it is, and may hold breaks between values."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data


class Encodings:
    """The last events of one session as bytes, by the identity of the event."""

    def __init__(self) -> None:
        self.readers = 0
        self._known: OrderedDict[int, tuple[ev.Event, bytes]] = OrderedDict()
        self._size = 0

    def encode(self, event: ev.Event) -> bytes:
        if self.readers == 1:
            return encode_event(event)
        found = self._known.get(id(event))
        if found is not None:
            return found[1]
        data = encode_event(event)
        # The event is held too: its identity is its own for as long as it is known here.
        self._known[id(event)] = (event, data)
        self._size += len(data)
        while len(self._known) > REMEMBERED or self._size > REMEMBERED_BYTES:
            self._size -= len(self._known.popitem(last=False)[1][1])
        return data


# -- one reader


class Line:
    """What is lined up for one reader. Its two futures exist only while somebody waits."""

    __slots__ = ("_ended", "_parts", "_room", "_size", "_still_wanted", "_woken")

    def __init__(self, still_wanted: Callable[[], bool]) -> None:
        self._parts: list[bytes] = [_HELLO]
        self._size = 0
        self._ended = False
        self._woken: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._still_wanted = still_wanted

    @property
    def is_full(self) -> bool:
        return self._size >= FULL

    def put(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        _wake(self._woken)

    def beat(self) -> None:
        """A sign of life, unless there is something to say; or the end for who may read no more."""
        if not self._still_wanted():
            self.end()
        elif not self._parts:
            self.put(_BEAT_LINE)

    def end(self) -> None:
        self._ended = True
        _wake(self._woken)
        _wake(self._room)

    async def wait_room(self) -> None:
        """Return once what was lined up is on its way."""
        while self.is_full and not self._ended:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    async def write(self, send: Send) -> None:
        """Write what is lined up, all that there is at a time, until the end."""
        while not self._ended:
            if self._parts:
                body = b"".join(self._parts)
                self._parts.clear()
                self._size = 0
                _wake(self._room)
                await send({"type": "http.response.body", "body": body, "more_body": True})
            else:
                self._woken = asyncio.get_running_loop().create_future()
                await self._woken
                self._woken = None
        await send({"type": "http.response.body", "body": b"".join(self._parts)})


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


# -- all of them


class Streams:
    """The open streams of a server. Belongs to one loop; `close` it before the host ends."""

    def __init__(self, scope: Scope, refresh: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`refresh` learns who may read no more, before streams ask."""
        self._group = Group(scope.child("streams"), on_error=_log_error)
        self._refresh = refresh
        self._lines: set[Line] = set()
        self._encodings: dict[str, Encodings] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._lines)

    async def session(
        self,
        session_id: str,
        events: AsyncGenerator[ev.Event],
        receive: Receive,
        send: Send,
        still_wanted: Callable[[], bool],
    ) -> None:
        """Send what a session says until one of the two sides ends it."""
        shared = self._encodings.setdefault(session_id, Encodings())
        shared.readers += 1
        try:
            await self._serve(events, shared.encode, receive, send, still_wanted)
        finally:
            shared.readers -= 1
            if shared.readers == 0:
                del self._encodings[session_id]

    async def changes(
        self,
        changes: AsyncGenerator[Change],
        receive: Receive,
        send: Send,
        still_wanted: Callable[[], bool],
    ) -> None:
        """Send which sessions change."""
        await self._serve(changes, encode_change, receive, send, still_wanted)

    async def close(self) -> None:
        """End all streams; their readers come back to whoever serves next."""
        if self._timer is not None:
            self._timer.cancel()
        for line in self._lines:
            line.end()
        await self._group.leave()
        self._group.scope.close()

    async def _serve(
        self,
        items: AsyncGenerator[T],
        encode: Callable[[T], bytes],
        receive: Receive,
        send: Send,
        still_wanted: Callable[[], bool],
    ) -> None:
        line = Line(still_wanted)
        self._lines.add(line)
        self._keep_beating()
        try:
            tasks = (
                self._group.start(_line_up(items, encode, line), name="stream"),
                self._group.start(_hung_up(receive, line), name="hang-up"),
            )
        except KeryxError:
            await items.aclose()
            self._lines.discard(line)
            raise
        try:
            await asyncio.sleep(0)  # the reading has begun: what happens from here on is told
            await send(_START)
            await line.write(send)
        finally:
            self._lines.discard(line)
            for task in tasks:
                task.cancel()

    def _keep_beating(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BEAT, self._beat)

    def _beat(self) -> None:
        self._timer = None
        for line in self._lines:
            line.beat()
        if self._lines:
            self._group.start(self._refresh(), name="refresh")
            self._keep_beating()


def _log_error(name: str, error: BaseException) -> None:
    """What fails beside one stream is no other stream's affair."""
    _log.error("%s of a stream failed", name, exc_info=error)


async def _line_up(items: AsyncGenerator[T], encode: Callable[[T], bytes], line: Line) -> None:
    """Nothing is raised from here: the streams of others live in the same group."""
    try:
        async with aclosing(items):
            async for item in items:
                line.put(encode(item))
                if line.is_full:
                    await line.wait_room()
    except SessionDeletedError:
        # Said here, for whoever came back would be told that there is no such session.
        line.put(_DELETED)
    except KeryxError as error:
        # Its log failed, say. Whoever reads comes back and is told.
        _log.info("a stream ends: %s", error)
    except Exception as error:  # noqa: BLE001 (whatever it is, it ends this stream alone)
        _log.error("a stream ends", exc_info=error)
    finally:
        line.end()


async def _hung_up(receive: Receive, line: Line) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    line.end()
