"""A call as its handler sees it, how its answer is made, and what a connection may cost.

It refuses to know what carried the call here.
"""

from __future__ import annotations

import resource
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from keryx.errors import NobodyMustActError
from keryx.rpc import packets
from keryx.rpc.framing import LARGEST_FRAME

METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603
INVALID: Final = -32600
CALL_FAILED: Final = -32000
CANCELLED: Final = -32800
LIMIT_REACHED: Final = -32001

# What the wire calls the two outcomes that are nobody's failure.
CANCELLED_NAME: Final = "ToolCancelledError"
UNKNOWN_NAME: Final = "ToolUnknownError"
RESTARTED: Final = "the server was restarted while it ran; nobody knows how far it came"
LEFT_OVER: Final = "the server was closed, and the call did not end; nobody knows how far it comes"

# What one connection may have running here; more wait in the pipe, and so does their sender.
MOST_IN_FLIGHT: Final = 1024
# What all connections that share a room may have running; each call costs some kilobytes.
MOST_TOGETHER: Final = 2048
# Two of the largest frames: one that comes while another is answered.
MOST_HELD: Final = 2 * LARGEST_FRAME
# A greeting is small, and a stranger need not be able to say more.
LARGEST_GREETING: Final = 64 * 1024
# Each connection costs a descriptor, and others in this process need some too.
MOST_CONNECTIONS: Final = 256


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the other side may make this one do and hold."""

    largest_frame: int = LARGEST_FRAME
    most_in_flight: int = MOST_IN_FLIGHT
    most_together: int = MOST_TOGETHER
    """How many calls may be in flight on all connections that share a room."""
    most_calls: int | None = None
    """How many calls one connection may make in all; None: any number."""
    most_held: int = MOST_HELD
    """Bytes: what came and is not done with, and what was not taken when it was sent."""
    largest_greeting: int | None = None
    """Bytes of a frame from a stranger: one of whom no call was welcomed. None: there are none."""


LIMITS: Final = Limits()
GREETED: Final = Limits(largest_greeting=LARGEST_GREETING)
"""For whoever listens where strangers can connect."""


def affordable_connections() -> int:
    """A quarter of the descriptors that this process may have: others are left theirs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, soft // 4))


class Room:
    """What the other side, on one or several connections, makes this one hold and run."""

    __slots__ = ("_most_running", "_running", "_waiting", "most", "taken")

    def __init__(self, limits: Limits) -> None:
        self.most = limits.most_held
        self.taken = 0
        self._most_running = limits.most_together
        self._running = 0
        self._waiting: dict[Callable[[], None], None] = {}

    @property
    def is_exceeded(self) -> bool:
        return self.taken > self.most

    @property
    def is_full(self) -> bool:
        """Whether as many calls run as may."""
        return self._running >= self._most_running

    def begin(self) -> None:
        """A call begins."""
        self._running += 1

    def end(self) -> None:
        """A call has ended; whoever waits longest may go on, before whoever made that call."""
        self._running -= 1
        while self._waiting and not self.is_full:
            go_on = next(iter(self._waiting))
            del self._waiting[go_on]
            go_on()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Be called, once, when there is room for another call."""
        self._waiting[go_on] = None

    def forget(self, go_on: Callable[[], None]) -> None:
        self._waiting.pop(go_on, None)


class Share:
    """What one connection takes of a room."""

    __slots__ = ("incoming", "room", "unsent")

    def __init__(self, room: Room) -> None:
        self.room = room
        self.incoming = 0
        """What came and is not done with."""
        self.unsent = 0
        """What was sent and is not taken, as last counted."""

    def came(self, size: int) -> None:
        self.incoming += size
        self.room.taken += size

    def done_with(self, size: int) -> None:
        self.came(-size)

    def stuck(self, size: int) -> None:
        self.room.taken += size - self.unsent
        self.unsent = size


class PeerLostError(NobodyMustActError):
    """The connection is gone; nobody can tell what became of the calls in flight."""


class CallError(NobodyMustActError):
    """The other side answered with an error; `name` says of which kind."""

    def __init__(self, message: str, *, code: int = CALL_FAILED, name: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.name = name


class Teller(Protocol):
    """What takes progress to the caller, where there is a way to it."""

    async def tell(self, call_id: int, value: bytes) -> None: ...


class Call:
    """A call that the other side makes. Answer it by returning JSON, or by raising `CallError`."""

    __slots__ = ("_teller", "id", "method", "params", "welcomed")

    def __init__(self, teller: Teller, id_: int, method: str, params: bytes) -> None:
        self._teller = teller
        self.id = id_
        self.method = method
        self.params = params
        self.welcomed = False

    def welcome(self) -> None:
        """Whoever makes this call is no stranger from its answer on."""
        self.welcomed = True

    async def progress(self, value: bytes) -> None:
        """Say something passing; waits while the other side does not keep up."""
        await self._teller.tell(self.id, value)


Handler = Callable[[Call], Awaitable[bytes | None]]


async def no_calls(call: Call) -> bytes | None:
    """The handler of a side that answers nothing."""
    raise CallError(f"there is no method {call.method!r}", code=METHOD_NOT_FOUND)


async def answer_to(handler: Handler, call: Call, id_: int | msgspec.Raw, *, largest: int) -> bytes:
    """What the handler answers, encoded; whatever it raises is an answer too."""
    try:
        result = await handler(call)
        answer = packets.answer(id_, result)
    except CallError as error:
        return failure(id_, error)
    except Exception as error:  # noqa: BLE001 (whatever a handler raises is its caller's to hear)
        text = f"{type(error).__name__}: {error}"
        return failure(id_, CallError(text, code=INTERNAL_ERROR))
    if len(answer) > largest:
        text = f"the answer has {len(answer)} bytes; at most {largest} are carried"
        return failure(id_, CallError(text, code=LIMIT_REACHED))
    return answer


def failure(id_: int | msgspec.Raw, error: CallError) -> bytes:
    return packets.failure(id_, error.code, error.message, error.name)


def cancelled(why: str) -> CallError:
    return CallError(f"the call was cancelled: {why}", code=CANCELLED, name=CANCELLED_NAME)
