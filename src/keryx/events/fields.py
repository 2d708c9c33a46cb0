"""The types of the fields of events, and the fields that all events have."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from keryx.errors import ErrorKind
from keryx.messages import VERSION, HookAction, Outcome, Reach

RiskLevel = Literal["none", "low", "high"]
Replay = Literal["never", "safe", "keyed"]
Stream = Literal["stdout", "stderr"]
TurnOutcome = Literal["completed", "cancelled", "failed", "parked"]
Purpose = Literal[
    "title",
    "compaction",
    "vision",
    "extraction",
    "search",
    "mixture",
    "image",
    "speech",
    "transcription",
    "agent",
    "sampling",
]
"""What usage outside of steps was for; `agent`: the turns of a child agent;
`sampling`: a request of an MCP server."""

Expiry = Literal["timeout", "undelivered", "interrupt", "steer", "shutdown", "parent"]
"""Why a request expired. timeout: nobody answered; undelivered: nobody could be asked."""

AbandonCause = Literal["crash", "error", "interrupt", "steer", "timeout", "shutdown", "parent"]
"""Why a reply was abandoned. A steer or an interrupt abandons only a reply without text."""


MOST_TOKENS: Final = 1 << 40
"""Far more than any reply has; a server that reports more does not count tokens."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the provider counted them; cached and reasoning ones are included."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def is_possible(self) -> bool:
        """Whether these can be counts of one reply; sums of others could not be stored."""
        counts = (self.input_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens)
        return all(0 <= count <= MOST_TOKENS for count in counts)


class ContextSize(msgspec.Struct, frozen=True, kw_only=True):
    """How full the model's context is; None: unknown."""

    window: int | None
    compact_at: int | None
    last_prompt_tokens: int | None


class Offer(msgspec.Struct, frozen=True):
    """A way to approve more than one call: its reach, and a text that says what it covers.

    `patterns` may contain * and ?; each part of a call must match one of them. `workspace` is the
    folder of the sessions that it covers; None: any.
    """

    reach: Reach
    says: str
    patterns: tuple[str, ...]
    workspace: str | None = None


class TurnError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a turn failed, and what to do about it."""

    kind: ErrorKind
    message: str
    hint: str


class ParentCall(msgspec.Struct, frozen=True, kw_only=True):
    """The call, in another session, that opened a child agent's session."""

    session_id: str
    call_id: str


class ForkPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The session that was forked, and the last of its facts that the fork shares."""

    session_id: str
    up_to: int


class CallAccess(msgspec.Struct, frozen=True, kw_only=True):
    """One path tree or named resource that a call uses."""

    kind: Literal["path", "resource"]
    name: str
    writes: bool
    peers: str | None = None


class CallEffects(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a call uses; `exclusive`: it may use anything."""

    accesses: tuple[CallAccess, ...] = ()
    exclusive: bool = False


class NestedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One nested call; `start` is in seconds after the start of its container."""

    call_id: str
    tool: str
    start: float
    duration: float
    outcome: Outcome
    preview: str = ""
    hooks: tuple[HookAction, ...] | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET
    """Of a command that ended with another code than 0."""


class NestedSum(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of the nested calls of one tool that are not listed one by one."""

    tool: str
    calls: int
    duration: float
    completed: int
    ended: dict[Outcome, int] = {}
    """The number of ended calls, by outcome."""


class NestedCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the blob that a `NestedSummary` names."""

    calls: tuple[NestedCall, ...] = ()
    sums: tuple[NestedSum, ...] = ()


class NestedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The number of nested calls of a container, and the blob that lists them."""

    calls: int
    completed: int
    blob: str


class NestedProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A nested call that began (no outcome) or ended.

    If many similar calls begin or end at once, they share one event with their number in `count`,
    which names only their container. One of them that still runs after a while gets an event of its
    own with a `count` of 0, since it was counted before, and with its `duration` so far. Its end
    then gets an event of its own too.
    """

    tool: str
    preview: str = ""
    outcome: Outcome | None = None
    duration: float | None = None
    count: int = 1
    exit_code: int | UnsetType = UNSET


class ShownNested(msgspec.Struct, frozen=True, kw_only=True):
    """One nested call of a running container; no outcome: it still runs."""

    call_id: str
    tool: str
    start: float
    """In seconds after the start of the container."""
    preview: str = ""
    outcome: Outcome | None = None
    duration: float | None = None
    exit_code: int | UnsetType = UNSET


class ShownTool(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of the nested calls of one tool in a running container so far."""

    tool: str
    began: int
    ended: dict[Outcome, int]
    """The number of ended calls, by outcome."""
    first: float
    """When the first and the last call were seen, in seconds after the start of the container."""
    last: float


class RunningNested(msgspec.Struct, frozen=True, kw_only=True):
    """The nested calls of a running container so far."""

    began: int = 0
    ended: int = 0
    completed: int = 0
    calls: tuple[ShownNested, ...] = ()
    """All of them, if they are few; otherwise the running ones that got events of their own."""
    tools: tuple[ShownTool, ...] = ()
    """The sums of all of them, by tool."""


class RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """A running call, for a late reader; `output` is the last part of its output."""

    call_id: str
    tool: str
    output: str = ""
    done: float | None = None
    total: float | None = None
    note: str = ""
    nested: RunningNested | None = None


class Envelope(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """`at` is in seconds of the wall clock, for people; it does not define the order."""

    session_id: str
    at: float
    v: int = VERSION


class Logged(Envelope, frozen=True, kw_only=True):
    """A fact. The sequence has no gaps."""

    seq: int


class InTurn(Logged, frozen=True, kw_only=True):
    """A fact of one turn; none follows that turn's `turn.finished`."""

    turn_id: str


class AtWork(Logged, frozen=True, kw_only=True):
    """A fact of a call or a step; no turn if a person ran the call or requested the work."""

    turn_id: str | None
