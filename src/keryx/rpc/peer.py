"""One side of a connection: it calls the other and answers its calls, any number at once.

Answers are matched by id and come in any order. Ids only grow, so no call runs twice. Every call
is answered once, also one that its caller gave up. If the connection is lost, calls of the other
side are cancelled and calls of this side fail.

The other side may be hostile: the calls and bytes that this side holds for it are limited. At a
limit that clears with time this side stops reading; at any other it closes with a reason.

It knows nothing of what carries the bytes (`Wire`) and what the calls mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.rpc import packets
from keryx.rpc.framing import PREFIX, FrameError, FrameReader, Wire, frame
from keryx.rpc.incoming_calls import (
    LIMIT_REACHED,
    LIMITS,
    METHOD_NOT_FOUND,
    Call,
    CallError,
    Capacity,
    ConnectionShare,
    Handler,
    Limits,
    PeerLostError,
    answer_to,
    cancelled,
    failure,
    no_calls,
)
from keryx.rpc.pending import OnProgress, PendingCalls

__all__ = ["METHOD_NOT_FOUND", "Handler", "Peer"]


class _Running(NamedTuple):
    """A call of the other side that is not answered yet, and its size in bytes."""

    call: Call
    task: asyncio.Task[bytes]
    size: int


class Peer:
    """This side of a connection. Belongs to one loop.

    The wire calls `received`, `set_writing_paused` and `lost`.
    """

    def __init__(
        self,
        wire: Wire,
        scope: Scope,
        handler: Handler = no_calls,
        *,
        limits: Limits = LIMITS,
        capacity: Capacity | None = None,
        on_ended: Callable[[], None] | None = None,
    ) -> None:
        """Connections with the same `capacity` are limited together.

        `on_ended` is called when the connection is lost and none of its calls runs any more.
        """
        self.wire = wire
        self._handler = handler
        self._on_ended = on_ended
        self._limits = limits
        # A scope of its own: a failed handler or a lost connection must not affect others.
        self._scope = scope.child("connection")
        self._group = Group(self._scope)
        self._frames = FrameReader(limits.largest_greeting or limits.largest_frame)
        self._waiting: deque[bytes] = deque()
        self._capacity = capacity or Capacity(limits)
        self._share = ConnectionShare(self._capacity)
        self._needs_greeting = limits.largest_greeting is not None
        self._writing_paused = False
        self._reading_paused = False
        self._last_seen = 0
        self._calls = 0
        self._pending = PendingCalls()
        self._running: dict[int, _Running] = {}
        self._lost: PeerLostError | None = None

    # -- calls that this side makes

    async def call(
        self, method: str, params: bytes, *, on_progress: OnProgress | None = None
    ) -> bytes:
        """Call the other side; if the caller is cancelled, the other side is told to cancel."""
        while self._writing_paused and self._lost is None:
            await self.wire.drain()
        if self._lost is not None:
            raise PeerLostError(str(self._lost))
        id_ = self._pending.next_id
        data = packets.call(id_, method, params)
        if len(data) > self._limits.largest_frame:
            largest = self._limits.largest_frame
            raise FrameError(f"the call has {len(data)} bytes; at most {largest} are allowed")
        answer = self._pending.open(on_progress)
        self._write(data)
        if self._waiting or self._reading_paused:
            self._process_waiting()  # an answer is awaited now, so reading must not be paused
        try:
            return await answer
        except asyncio.CancelledError:
            if self._lost is None and answer.cancelled():
                self._write(packets.cancel(id_))
            raise
        finally:
            self._pending.close(id_)
            self._update_reading_paused()

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    @property
    def why_lost(self) -> str:
        """Why the connection is lost; empty while it is open."""
        return "" if self._lost is None else str(self._lost)

    @property
    def has_called(self) -> bool:
        """Whether the other side has made a call, and has authenticated if it has to."""
        return self._last_seen > 0 and not self._needs_greeting

    @property
    def in_flight(self) -> int:
        """The number of calls, in both directions, that are not answered yet."""
        return len(self._pending) + len(self._running) + len(self._waiting)

    @property
    def held(self) -> int:
        """The number of bytes that this side holds for the other."""
        return self._share.incoming + self._share.unsent

    def close(self) -> None:
        """Close the connection; calls in flight, in both directions, end."""
        if self._lost is None:
            self.wire.close()
            self.lost(PeerLostError("this side closed the connection"))

    def hang_up(self, why: str) -> None:
        """Close, and tell the other side why."""
        if self._lost is None:
            self._write(packets.goodbye(why))
            self.wire.close(linger=True)
            self.lost(PeerLostError(why))

    async def wait_ended(self) -> None:
        """Return once no call of the other side runs any more, or the grace is over."""
        await self._group.leave()
        self._scope.close()
        if self._lost is not None:
            await self.wire.wait_closed()

    # -- called by the wire

    def received(self, data: bytes) -> None:
        """Process received bytes. This never waits for a handler."""
        if self._lost is not None:
            return
        self._share.add_received(len(data))
        try:
            self._waiting.extend(self._frames.feed(data))
        except FrameError as error:
            self.hang_up(f"the other side sent data that is not a call: {error}")
            return
        self._process_waiting()
        self._check_room()

    def set_writing_paused(self, *, paused: bool) -> None:
        """Note that the other side does not read what it is sent, or reads again."""
        self._writing_paused = paused
        self._count_unsent()
        self._process_waiting()

    def lost(self, error: PeerLostError) -> None:
        """End the calls in both directions: the connection is lost."""
        if self._lost is not None:
            return
        self._lost = error
        self._waiting.clear()
        self._capacity.forget(self._process_waiting)
        self._frames.clear()
        running = sum(call.size for call in self._running.values())
        self._share.release(self._share.incoming - running)
        self._share.set_unsent(0)
        self._pending.fail_all(error)
        self._scope.cancel("parent", by="the connection is lost")
        self._close_if_idle()

    # -- limits

    def _process_waiting(self) -> None:
        """Process received frames, as far as the limits allow.

        While this side awaits an answer, calls over the limit are refused: the answer must not
        wait behind them, or two sides could wait for each other.
        """
        try:
            while self._waiting and self._lost is None and (self._pending or not self._is_full):
                self._take(self._waiting.popleft())
        except (FrameError, msgspec.DecodeError, RecursionError) as error:
            self.hang_up(f"the other side sent data that is not a call: {error}")
        if not self._running and self._calls_used_up:
            self.hang_up(self._used_up_text())
        if self._waiting and self._capacity.is_full:
            self._capacity.wait(self._process_waiting)
        self._update_reading_paused()

    @property
    def _has_room(self) -> bool:
        if self._last_seen == 0:
            return True  # a greeting is answered, whatever the other connections do
        return len(self._running) < self._limits.most_in_flight and not self._capacity.is_full

    @property
    def _is_full(self) -> bool:
        if self._last_seen == 0:
            return False
        if self._writing_paused or (self._waiting and self._capacity.is_full):
            return True
        if not self._running:
            return False
        # Past half of the limit, running calls must end first; the rest is for unfinished frames.
        return not self._has_room or self._share.incoming > self._limits.most_held // 2

    def _update_reading_paused(self) -> None:
        paused = not self._pending and self._is_full
        if paused != self._reading_paused and self._lost is None:
            self._reading_paused = paused
            self.wire.set_reading_paused(paused=paused)

    def _count_unsent(self) -> None:
        """Count unsent bytes only above the wire's high-water mark: below it we get no updates."""
        if self._lost is None:
            self._share.set_unsent(self.wire.unsent if self._writing_paused else 0)
            self._check_room()

    def _check_room(self) -> None:
        if self._capacity.is_exceeded and self._lost is None:
            why = f"the other side made this one hold more than {self._capacity.most_bytes} bytes"
            if self._writing_paused:
                # The other side does not read; waiting for it would keep all these bytes.
                self.wire.abort()
                self.lost(PeerLostError(why))
            else:
                self.hang_up(why)

    # -- packets

    def _take(self, data: bytes) -> None:
        packet = packets.decode(data)
        size = PREFIX + len(data)
        if packet.method is not None and packet.id is not None:
            self._begin(packet.id, packet.method, bytes(packet.params), size)
            return
        self._share.release(size)
        if packet.method is None:
            self._take_answer(packet)
        elif packet.method == "progress":
            self._pending.take_progress(packets.decode_progress(packet.params))
        elif packet.method == "cancel":
            running = self._running.get(packets.decode_cancel(packet.params).id)
            if running is not None:
                running.task.cancel()

    def _take_answer(self, packet: packets.Packet) -> None:
        if packet.id is not None:
            self._pending.take_answer(packet.id, packet)
            return
        why = "it sent an answer without an id" if packet.error is None else packet.error.message
        self.wire.abort()
        self.lost(PeerLostError(f"the connection is lost: the other side hung up: {why}"))

    def _begin(self, id_: int, method: str, params: bytes, size: int) -> None:
        if id_ <= self._last_seen:
            raise FrameError(f"call {id_} came after call {self._last_seen}; ids only grow")
        has_room, self._last_seen = self._has_room, id_
        self._calls += 1
        if self._scope.is_cancelled:
            self.hang_up("this side is ending")
            return
        if self._calls_used_up or not has_room:
            self._share.release(size)
            self._refuse(id_)
            return
        call = Call(self, id_, method, params)
        largest = self._limits.largest_frame
        work = answer_to(self._handler, call, id_, largest=largest)
        task = self._group.start(work, name=f"{method[:100]} {id_}")
        self._running[id_] = _Running(call, task, size)
        self._capacity.begin()
        # A task that is cancelled before its first step runs no code at all, not even a finally.
        task.add_done_callback(partial(self._ended, id_))

    @property
    def _calls_used_up(self) -> bool:
        return self._limits.most_calls is not None and self._calls > self._limits.most_calls

    def _used_up_text(self) -> str:
        return f"this connection has made all of its {self._limits.most_calls} calls"

    def _refuse(self, id_: int) -> None:
        most = min(self._limits.most_in_flight, self._limits.most_together)
        why = self._used_up_text() if self._calls_used_up else f"{most} calls are in flight already"
        self._answer(failure(id_, CallError(why, code=LIMIT_REACHED)))

    def _ended(self, id_: int, task: asyncio.Task[bytes]) -> None:
        ended = self._running.pop(id_)
        self._share.release(ended.size)
        self._capacity.end()
        if ended.call.is_authenticated:
            self._needs_greeting = False
            self._frames.largest = self._limits.largest_frame
        if self._lost is None:
            if not task.cancelled():
                self._answer(task.result())
            elif not self._scope.is_cancelled:
                why = "its caller gave it up" if task.cancelling() else "by what it waited for"
                self._answer(failure(id_, cancelled(why)))
            elif not self._running:
                self.hang_up("this side is ending")
            self._process_waiting()
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._lost is not None and not self._running:
            self._scope.close()
            if self._on_ended is not None:
                self._on_ended()

    async def send_progress(self, call_id: int, value: bytes) -> None:
        """Send progress to the caller; waits while the other side reads slowly."""
        if self._lost is None:
            self._answer(packets.progress(call_id, value))
            await self.wire.drain()

    def _answer(self, data: bytes) -> None:
        self._write(data)
        if self._writing_paused:
            self._count_unsent()

    def _write(self, data: bytes) -> None:
        self.wire.write(frame(data))
