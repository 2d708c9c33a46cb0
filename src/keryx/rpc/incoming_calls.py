"""A call as its handler sees it, how its answer is encoded, and the limits of connections.

It knows nothing of what carried the call here.
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

# The names on the wire of the two outcomes that are no failures.
CANCELLED_NAME: Final = "ToolCancelledError"
UNKNOWN_NAME: Final = "ToolUnknownError"
RESTARTED: Final = "the server was restarted while the call ran; it is unknown how far it came"
LEFT_OVER: Final = "the server was closed, and the call did not end; it is unknown how far it came"

# Calls of one connection that may run here; more wait in the pipe, and so does their sender.
MOST_IN_FLIGHT: Final = 1024
# Calls of all connections with one capacity that may run; each call costs some kilobytes.
MOST_TOGETHER: Final = 2048
# Two of the largest frames: one arrives while another is answered.
MOST_HELD: Final = 2 * LARGEST_FRAME
# A greeting is small, and an unauthenticated client must not send more.
LARGEST_GREETING: Final = 64 * 1024
# Each connection costs a descriptor, and others in this process need some too.
MOST_CONNECTIONS: Final = 256


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What this side may run and hold for the other."""

    largest_frame: int = LARGEST_FRAME
    most_in_flight: int = MOST_IN_FLIGHT
    most_together: int = MOST_TOGETHER
    """How many calls may be in flight on all connections with one capacity."""
    most_calls: int | None = None
    """How many calls one connection may make in total; None: any number."""
    most_held: int = MOST_HELD
    """Bytes of calls that are not answered yet, and of answers that the other side did not read."""
    largest_greeting: int | None = None
    """Bytes of a frame from a client that has not authenticated. None: no client has to."""


LIMITS: Final = Limits()
GREETING_REQUIRED: Final = Limits(largest_greeting=LARGEST_GREETING)
"""For a listener that foreign programs can connect to."""


def affordable_connections() -> int:
    """Return how many connections to allow: a quarter of this process's descriptors at most."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(1, min(MOST_CONNECTIONS, soft // 4))


class Capacity:
    """The calls and bytes that this side runs and holds for one or several connections."""

    __slots__ = ("_most_running", "_running", "_waiting", "bytes_held", "most_bytes")

    def __init__(self, limits: Limits) -> None:
        self.most_bytes = limits.most_held
        self.bytes_held = 0
        self._most_running = limits.most_together
        self._running = 0
        self._waiting: dict[Callable[[], None], None] = {}

    @property
    def is_exceeded(self) -> bool:
        return self.bytes_held > self.most_bytes

    @property
    def is_full(self) -> bool:
        """Whether the most calls that are allowed run now."""
        return self._running >= self._most_running

    def begin(self) -> None:
        """Count a call that begins."""
        self._running += 1

    def end(self) -> None:
        """Count a call that has ended; resume the connections that wait, the longest first."""
        self._running -= 1
        while self._waiting and not self.is_full:
            resume = next(iter(self._waiting))
            del self._waiting[resume]
            resume()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once, when there is room for another call."""
        self._waiting[resume] = None

    def forget(self, resume: Callable[[], None]) -> None:
        self._waiting.pop(resume, None)


class ConnectionShare:
    """The part of a capacity that one connection uses."""

    __slots__ = ("capacity", "incoming", "unsent")

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.incoming = 0
        """Bytes that were received and are still in use."""
        self.unsent = 0
        """Bytes that the other side did not read, as last counted."""

    def add_received(self, size: int) -> None:
        self.incoming += size
        self.capacity.bytes_held += size

    def release(self, size: int) -> None:
        self.add_received(-size)

    def set_unsent(self, size: int) -> None:
        self.capacity.bytes_held += size - self.unsent
        self.unsent = size


class PeerLostError(NobodyMustActError):
    """The connection is lost; it is unknown what became of the calls in flight."""


class CallError(NobodyMustActError):
    """The other side answered with an error; `name` says of which kind."""

    def __init__(self, message: str, *, code: int = CALL_FAILED, name: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.name = name


class ProgressSender(Protocol):
    """Sends progress to a caller, if the transport can."""

    async def send_progress(self, call_id: int, value: bytes) -> None: ...


class Call:
    """A call that the other side makes. Answer it by returning JSON, or by raising `CallError`."""

    __slots__ = ("_progress_sender", "id", "is_authenticated", "method", "params")

    def __init__(
        self, progress_sender: ProgressSender, id_: int, method: str, params: bytes
    ) -> None:
        self._progress_sender = progress_sender
        self.id = id_
        self.method = method
        self.params = params
        self.is_authenticated = False

    def authenticate(self) -> None:
        """Count this connection as authenticated once this call is answered."""
        self.is_authenticated = True

    async def progress(self, value: bytes) -> None:
        """Send progress to the caller; waits while the other side reads slowly."""
        await self._progress_sender.send_progress(self.id, value)


Handler = Callable[[Call], Awaitable[bytes | None]]


async def no_calls(call: Call) -> bytes | None:
    """Refuse every call: the handler of a side that only calls."""
    raise CallError(f"there is no method {call.method!r}", code=METHOD_NOT_FOUND)


async def answer_to(handler: Handler, call: Call, id_: int | msgspec.Raw, *, largest: int) -> bytes:
    """Return the handler's answer, encoded; an exception of it becomes an error answer."""
    try:
        result = await handler(call)
        answer = packets.answer(id_, result)
    except CallError as error:
        return failure(id_, error)
    except Exception as error:  # noqa: BLE001 (every error of a handler is sent to its caller)
        text = f"{type(error).__name__}: {error}"
        return failure(id_, CallError(text, code=INTERNAL_ERROR))
    if len(answer) > largest:
        text = f"the answer has {len(answer)} bytes; at most {largest} are allowed"
        return failure(id_, CallError(text, code=LIMIT_REACHED))
    return answer


def failure(id_: int | msgspec.Raw, error: CallError) -> bytes:
    return packets.failure(id_, error.code, error.message, error.name)


def cancelled(why: str) -> CallError:
    return CallError(f"the call was cancelled: {why}", code=CANCELLED, name=CANCELLED_NAME)
