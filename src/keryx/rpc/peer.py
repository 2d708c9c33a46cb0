"""One side of a connection: it calls the other and answers its calls, any number at once.

Answers are matched by id and come in any order. Ids only grow, so a call that was seen is never
run again. Every call is answered once, also one that was given up; a lost connection cancels what
it asked for and fails what it awaits.

The other side may be a bad actor: what it can make this side run and hold is bounded. Past a bound
that it can wait for, nothing more is read; past any other, the connection ends with a reason.

It refuses to know what carries the bytes (`Wire`) and what the calls mean.
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
    Handler,
    Limits,
    PeerLostError,
    Room,
    Share,
    answer_to,
    cancelled,
    failure,
    no_calls,
)
from keryx.rpc.pending import OnProgress, PendingCalls

__all__ = ["METHOD_NOT_FOUND", "Handler", "Peer"]


class _Running(NamedTuple):
    """A call of theirs that is not answered yet, and the bytes in which it came."""

    call: Call
    task: asyncio.Task[bytes]
    size: int


class Peer:
    """This side. Belongs to one loop; the wire feeds it with `received`, `choked` and `lost`."""

    def __init__(
        self,
        wire: Wire,
        scope: Scope,
        handler: Handler = no_calls,
        *,
        limits: Limits = LIMITS,
        room: Room | None = None,
        on_over: Callable[[], None] | None = None,
    ) -> None:
        """Connections that share a room are bounded together.

        `on_over` is called when the connection is lost and nothing runs for it any more.
        """
        self.wire = wire
        self._handler = handler
        self._on_over = on_over
        self._limits = limits
        # A tree of its own: a handler that fails, or a lost connection, is nobody else's affair.
        self._scope = scope.child("connection")
        self._group = Group(self._scope)
        self._frames = FrameReader(limits.largest_greeting or limits.largest_frame)
        self._waiting: deque[bytes] = deque()
        self._room = room or Room(limits)
        self._share = Share(self._room)
        self._stranger = limits.largest_greeting is not None
        self._choked = False
        self._held = False
        self._last_seen = 0
        self._calls = 0
        self._asked = PendingCalls()
        self._running: dict[int, _Running] = {}
        self._lost: PeerLostError | None = None

    # -- calls that this side makes

    async def call(
        self, method: str, params: bytes, *, on_progress: OnProgress | None = None
    ) -> bytes:
        """Call the other side; giving up (a cancel, a timeout) tells it so."""
        while self._choked and self._lost is None:
            await self.wire.drain()
        if self._lost is not None:
            raise PeerLostError(str(self._lost))
        id_ = self._asked.next_id
        data = packets.call(id_, method, params)
        if len(data) > self._limits.largest_frame:
            largest = self._limits.largest_frame
            raise FrameError(f"the call has {len(data)} bytes; at most {largest} are carried")
        answer = self._asked.open(on_progress)
        self._write(data)
        if self._waiting or self._held:
            self._go_on()  # an answer is awaited now, so nothing may hold up the reading
        try:
            return await answer
        except asyncio.CancelledError:
            if self._lost is None and answer.cancelled():
                self._write(packets.cancel(id_))
            raise
        finally:
            self._asked.close(id_)
            self._hold_or_not()

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    @property
    def why_lost(self) -> str:
        """Why the connection is gone; empty while it is not."""
        return "" if self._lost is None else str(self._lost)

    @property
    def has_spoken(self) -> bool:
        """Whether the other side has made a call, and one that was welcome if that is needed."""
        return self._last_seen > 0 and not self._stranger

    @property
    def in_flight(self) -> int:
        """How many calls, in both directions, are not answered yet."""
        return len(self._asked) + len(self._running) + len(self._waiting)

    @property
    def held(self) -> int:
        """How many bytes the other side makes this one hold."""
        return self._share.incoming + self._share.unsent

    def close(self) -> None:
        """Hang up: calls in flight, in both directions, are over."""
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
        """Return once nothing runs for the other side any more, or the grace is over."""
        await self._group.leave()
        self._scope.close()
        if self._lost is not None:
            await self.wire.wait_closed()

    # -- what the wire says

    def received(self, data: bytes) -> None:
        """Bytes came. Nothing here waits for a handler."""
        if self._lost is not None:
            return
        self._share.came(len(data))
        try:
            self._waiting.extend(self._frames.feed(data))
        except FrameError as error:
            self.hang_up(f"the other side sent what is no call: {error}")
            return
        self._go_on()
        self._check_room()

    def choked(self, *, choked: bool) -> None:
        """The other side does not take what it is sent, or does again."""
        self._choked = choked
        self._count_unsent()
        self._go_on()

    def lost(self, error: PeerLostError) -> None:
        """Nothing comes any more."""
        if self._lost is not None:
            return
        self._lost = error
        self._waiting.clear()
        self._room.forget(self._go_on)
        self._frames.clear()
        running = sum(call.size for call in self._running.values())
        self._share.done_with(self._share.incoming - running)
        self._share.stuck(0)
        self._asked.fail_all(error)
        self._scope.cancel("parent", by="the connection is lost")
        self._close_when_quiet()

    # -- how much at once

    def _go_on(self) -> None:
        """Take what has come, as far as there is room for it.

        While this side awaits an answer, that must not wait behind calls that have no room, or two
        sides could wait for each other; then such calls are refused.
        """
        try:
            while self._waiting and self._lost is None and (self._asked or not self._is_full):
                self._take(self._waiting.popleft())
        except (FrameError, msgspec.DecodeError, RecursionError) as error:
            self.hang_up(f"the other side sent what is no call: {error}")
        if not self._running and self._is_spent:
            self.hang_up(self._spent())
        if self._waiting and self._room.is_full:
            self._room.wait(self._go_on)
        self._hold_or_not()

    @property
    def _has_room(self) -> bool:
        if self._last_seen == 0:
            return True  # who greets is answered, whatever the other connections do
        return len(self._running) < self._limits.most_in_flight and not self._room.is_full

    @property
    def _is_full(self) -> bool:
        if self._last_seen == 0:
            return False
        if self._choked or (self._waiting and self._room.is_full):
            return True
        if not self._running:
            return False
        # Past half of the room, what runs must end first; a frame that is half here may go on.
        return not self._has_room or self._share.incoming > self._limits.most_held // 2

    def _hold_or_not(self) -> None:
        held = not self._asked and self._is_full
        if held != self._held and self._lost is None:
            self._held = held
            self.wire.hold(held=held)

    def _count_unsent(self) -> None:
        """Only what is really stuck counts: below the wire's own mark nobody tells when it goes."""
        if self._lost is None:
            self._share.stuck(self.wire.unsent if self._choked else 0)
            self._check_room()

    def _check_room(self) -> None:
        if self._room.is_exceeded and self._lost is None:
            why = f"the other side made this one hold more than {self._room.most} bytes"
            if self._choked:
                # It does not read; to wait until it has would be to hold on to all of it.
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
        self._share.done_with(size)
        if packet.method is None:
            self._take_answer(packet)
        elif packet.method == "progress":
            self._asked.take_progress(packets.decode_progress(packet.params))
        elif packet.method == "cancel":
            running = self._running.get(packets.decode_cancel(packet.params).id)
            if running is not None:
                running.task.cancel()

    def _take_answer(self, packet: packets.Packet) -> None:
        if packet.id is not None:
            self._asked.take_answer(packet.id, packet)
            return
        why = "it sent an answer to nothing" if packet.error is None else packet.error.message
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
        if self._is_spent or not has_room:
            self._share.done_with(size)
            self._refuse(id_)
            return
        call = Call(self, id_, method, params)
        largest = self._limits.largest_frame
        work = answer_to(self._handler, call, id_, largest=largest)
        task = self._group.start(work, name=f"{method[:100]} {id_}")
        self._running[id_] = _Running(call, task, size)
        self._room.begin()
        # A task that is cancelled before its first step runs nothing of its own, also no finally.
        task.add_done_callback(partial(self._ended, id_))

    @property
    def _is_spent(self) -> bool:
        return self._limits.most_calls is not None and self._calls > self._limits.most_calls

    def _spent(self) -> str:
        return f"this connection has made all of its {self._limits.most_calls} calls"

    def _refuse(self, id_: int) -> None:
        most = min(self._limits.most_in_flight, self._limits.most_together)
        why = self._spent() if self._is_spent else f"{most} calls are in flight already"
        self._answer(failure(id_, CallError(why, code=LIMIT_REACHED)))

    def _ended(self, id_: int, task: asyncio.Task[bytes]) -> None:
        ended = self._running.pop(id_)
        self._share.done_with(ended.size)
        self._room.end()
        if ended.call.welcomed:
            self._stranger = False
            self._frames.largest = self._limits.largest_frame
        if self._lost is None:
            if not task.cancelled():
                self._answer(task.result())
            elif not self._scope.is_cancelled:
                why = "its caller gave it up" if task.cancelling() else "by what it waited for"
                self._answer(failure(id_, cancelled(why)))
            elif not self._running:
                self.hang_up("this side is ending")
            self._go_on()
        self._close_when_quiet()

    def _close_when_quiet(self) -> None:
        if self._lost is not None and not self._running:
            self._scope.close()
            if self._on_over is not None:
                self._on_over()

    async def tell(self, call_id: int, value: bytes) -> None:
        """Take progress to the caller."""
        if self._lost is None:
            self._answer(packets.progress(call_id, value))
            await self.wire.drain()

    def _answer(self, data: bytes) -> None:
        self._write(data)
        if self._choked:
            self._count_unsent()

    def _write(self, data: bytes) -> None:
        self.wire.write(frame(data))
