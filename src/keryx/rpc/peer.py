"""One side of a connection: it calls the other and answers its calls, any number at once.

JSON-RPC 2.0, with two notifications of our own: `cancel` (the caller gives a call up) and
`progress` (something passing, before the answer). Answers are matched by id and come in any order.
Ids only grow, so a call that was seen is never run again. A lost connection cancels what it asked
for and fails what it awaits.

It refuses to know what carries the bytes (`Wire`) and what the calls mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.errors import NobodyMustActError
from keryx.rpc.frames import LARGEST_FRAME, FrameError, FrameReader, frame

# What one connection may have running here; more wait in the pipe, and so does their sender.
MOST_IN_FLIGHT: Final = 1024

METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
CALL_FAILED: Final = -32000


class PeerLostError(NobodyMustActError):
    """The connection is gone; nobody can tell what became of the calls in flight."""


class CallError(NobodyMustActError):
    """The other side answered with an error; `name` says of which kind."""

    def __init__(self, message: str, *, code: int = CALL_FAILED, name: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.name = name


class _Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    code: int
    message: str
    data: str = ""


class _Packet(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    jsonrpc: str = ""
    id: int | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: _Fault | None = None


class _Progress(msgspec.Struct, frozen=True):
    id: int
    value: msgspec.Raw


class _Cancel(msgspec.Struct, frozen=True):
    id: int


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Packet).decode
_decode_progress: Final = msgspec.json.Decoder(_Progress).decode
_decode_cancel: Final = msgspec.json.Decoder(_Cancel).decode
_NULL: Final = b"null"


class Wire(Protocol):
    """What carries the bytes."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        """Return once the other side keeps up."""
        ...

    def hold(self, *, held: bool) -> None:
        """Read nothing more for a while, or go on."""
        ...

    def close(self) -> None: ...


class Call:
    """A call that the other side makes. Answer it by returning JSON, or by raising `CallError`."""

    __slots__ = ("_peer", "id", "method", "params")

    def __init__(self, peer: Peer, id_: int, method: str, params: bytes) -> None:
        self._peer = peer
        self.id = id_
        self.method = method
        self.params = params

    async def progress(self, value: bytes) -> None:
        """Say something passing; waits while the other side does not keep up."""
        self._peer.send_progress(self.id, value)
        await self._peer.wire.drain()


Handler = Callable[[Call], Awaitable[bytes | None]]


async def no_calls(call: Call) -> bytes | None:
    """The handler of a side that answers nothing."""
    raise CallError(f"there is no method {call.method!r}", code=METHOD_NOT_FOUND)


class _Asked:
    """A call of ours that is not answered yet."""

    __slots__ = ("answer", "on_progress")

    def __init__(
        self, answer: asyncio.Future[bytes], on_progress: Callable[[bytes], None] | None
    ) -> None:
        self.answer = answer
        self.on_progress = on_progress


class Peer:
    """This side. Belongs to one loop; the wire feeds it with `received` and `lost`."""

    def __init__(
        self,
        wire: Wire,
        scope: Scope,
        handler: Handler = no_calls,
        *,
        largest_frame: int = LARGEST_FRAME,
        most_in_flight: int = MOST_IN_FLIGHT,
    ) -> None:
        self.wire = wire
        self._handler = handler
        # A tree of its own: a handler that fails, or a lost connection, is nobody else's affair.
        self._scope = scope.child("connection")
        self._group = Group(self._scope)
        self._frames = FrameReader(largest_frame)
        self._most = most_in_flight
        self._last_asked = 0
        self._last_seen = 0
        self._asked: dict[int, _Asked] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._lost: PeerLostError | None = None

    # -- calls that this side makes

    async def call(
        self, method: str, params: bytes, *, on_progress: Callable[[bytes], None] | None = None
    ) -> bytes:
        """Call the other side; giving up (a cancel, a timeout) tells it so."""
        if self._lost is not None:
            raise PeerLostError(str(self._lost))
        self._last_asked += 1
        id_ = self._last_asked
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[id_] = _Asked(answer, on_progress)
        self._send(_Packet(jsonrpc="2.0", id=id_, method=method, params=msgspec.Raw(params)))
        try:
            return await answer
        except asyncio.CancelledError:
            if id_ in self._asked and self._lost is None:
                self._notify("cancel", _encode(_Cancel(id_)))
            raise
        finally:
            self._asked.pop(id_, None)

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    def close(self) -> None:
        """Hang up: calls in flight, in both directions, are over."""
        self.wire.close()
        self.lost(PeerLostError("this side closed the connection"))

    async def wait_ended(self) -> None:
        """Return once nothing runs for the other side any more, or the grace is over."""
        await self._group.leave()
        self._scope.close()

    # -- what the wire says

    def received(self, data: bytes) -> None:
        """Bytes came. Nothing here waits for a handler."""
        try:
            for packet in self._frames.feed(data):
                self._take(packet)
        except (FrameError, msgspec.DecodeError) as error:
            self.wire.close()
            self.lost(PeerLostError(f"the other side sent what is no call: {error}"))

    def lost(self, error: PeerLostError) -> None:
        """Nothing comes any more."""
        if self._lost is not None:
            return
        self._lost = error
        for asked in self._asked.values():
            if not asked.answer.done():
                asked.answer.set_exception(PeerLostError(str(error)))
        self._scope.cancel("parent", by="the connection is lost")
        self._close_when_quiet()

    # -- packets

    def _take(self, data: bytes) -> None:
        packet = _decode(data)
        if packet.method is None:
            self._take_answer(packet)
        elif packet.id is not None:
            self._begin(packet.id, packet.method, bytes(packet.params))
        elif packet.method == "progress":
            progress = _decode_progress(packet.params)
            asked = self._asked.get(progress.id)
            if asked is not None and asked.on_progress is not None:
                asked.on_progress(bytes(progress.value))
        elif packet.method == "cancel":
            running = self._running.get(_decode_cancel(packet.params).id)
            if running is not None:
                running.cancel()

    def _take_answer(self, packet: _Packet) -> None:
        asked = self._asked.get(packet.id or 0)
        if asked is None or asked.answer.done():
            return  # it was given up
        if packet.error is None:
            asked.answer.set_result(bytes(packet.result) or _NULL)
        else:
            fault = packet.error
            asked.answer.set_exception(CallError(fault.message, code=fault.code, name=fault.data))

    def _begin(self, id_: int, method: str, params: bytes) -> None:
        if id_ <= self._last_seen:
            raise FrameError(f"call {id_} came after call {self._last_seen}; ids only grow")
        self._last_seen = id_
        call = Call(self, id_, method, params)
        self._running[id_] = self._group.start(self._answer(call), name=f"{method} {id_}")
        if len(self._running) >= self._most:
            self.wire.hold(held=True)

    async def _answer(self, call: Call) -> None:
        packet: _Packet | None = None
        try:
            result = await self._handler(call)
            packet = _Packet(jsonrpc="2.0", id=call.id, result=msgspec.Raw(result or _NULL))
        except CallError as error:
            packet = _failed(call, error)
        except Exception as error:  # noqa: BLE001 (whatever a handler raises is its caller's to hear)
            text = f"{type(error).__name__}: {error}"
            packet = _failed(call, CallError(text, code=INTERNAL_ERROR))
        finally:
            self._running.pop(call.id, None)
            if packet is not None and self._lost is None:
                self._send(packet)
            if len(self._running) == self._most - 1:
                self.wire.hold(held=False)
            self._close_when_quiet()

    def _close_when_quiet(self) -> None:
        if self._lost is not None and not self._running:
            self._scope.close()

    def send_progress(self, id_: int, value: bytes) -> None:
        if self._lost is None:
            self._notify("progress", _encode(_Progress(id_, msgspec.Raw(value))))

    def _notify(self, method: str, params: bytes) -> None:
        self._send(_Packet(jsonrpc="2.0", method=method, params=msgspec.Raw(params)))

    def _send(self, packet: _Packet) -> None:
        self.wire.write(frame(_encode(packet)))


def _failed(call: Call, error: CallError) -> _Packet:
    fault = _Fault(error.code, error.message, error.name)
    return _Packet(jsonrpc="2.0", id=call.id, error=fault)
