"""What events are made of: the words and small values in their fields, and what all carry.

It refuses to know the events themselves.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from keryx.errors import ErrorKind
from keryx.messages import VERSION, Outcome, Reach

RiskLevel = Literal["none", "low", "high"]
Replay = Literal["never", "safe", "keyed"]
Stream = Literal["stdout", "stderr"]
TurnOutcome = Literal["completed", "cancelled", "failed", "parked"]
Purpose = Literal["title", "compaction", "vision", "extraction", "search", "mixture"]

Expiry = Literal["timeout", "undelivered", "interrupt", "steer", "shutdown", "parent"]
"""Why nobody can answer any more. timeout: nobody did; undelivered: nobody could be asked."""

AbandonCause = Literal["crash", "error", "interrupt", "steer", "timeout", "shutdown", "parent"]
"""Why a reply never came whole. A steer or an interrupt abandons only what had no text yet."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the provider counted them; cached and reasoning ones are part of the sums."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class ContextSize(msgspec.Struct, frozen=True, kw_only=True):
    """How full the model's context is; None is what nobody knows."""

    window: int | None
    compact_at: int | None
    last_prompt_tokens: int | None


class Offer(msgspec.Struct, frozen=True):
    """A way to consent to more than one call: how far it goes, and in words what it covers.

    `patterns` may hold * and ?; one of them must fit each part of a call. `workspace` is the folder
    that the session must work in; None: any.
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
    """The session that a fork began as, and the last of its facts that the fork shares."""

    session_id: str
    up_to: int


class Opaque(msgspec.Struct, frozen=True, kw_only=True):
    """An item to be given back unread, and only to the provider that it came from."""

    provider: str
    item: msgspec.Raw


class CallAccess(msgspec.Struct, frozen=True, kw_only=True):
    """One path tree or named resource that a call touches."""

    kind: Literal["path", "resource"]
    name: str
    writes: bool
    peers: str | None = None


class CallEffects(msgspec.Struct, frozen=True, kw_only=True):
    """All that a call touches; exclusive stands for "anything"."""

    accesses: tuple[CallAccess, ...] = ()
    exclusive: bool = False


class NestedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that a script or a container made; `start` counts from the container's own."""

    call_id: str
    tool: str
    start: float
    duration: float
    outcome: Outcome
    preview: str = ""


class NestedSum(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of one tool add up to, past those that are listed one by one."""

    tool: str
    calls: int
    duration: float
    completed: int
    ended: dict[Outcome, int] = {}
    """How many ended, by how they did."""


class NestedCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the blob that a `NestedSummary` names."""

    calls: tuple[NestedCall, ...] = ()
    sums: tuple[NestedSum, ...] = ()


class NestedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls a container made, and the blob that tells of them."""

    calls: int
    completed: int
    blob: str


class NestedProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A nested call that began (no outcome) or ended.

    Of a crowd, `count` alike ones share one event, which names their container and none of them.
    One of them that still runs after a while is named by a `count` of 0, for it was counted before;
    `duration` is how long it has run. The end of one that was named by itself is told so too.
    """

    tool: str
    preview: str = ""
    outcome: Outcome | None = None
    duration: float | None = None
    count: int = 1


class ShownNested(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a container that is under way; without an outcome while it runs itself."""

    call_id: str
    tool: str
    start: float
    """Since the container's own start, in seconds."""
    preview: str = ""
    outcome: Outcome | None = None
    duration: float | None = None


class ShownTool(msgspec.Struct, frozen=True, kw_only=True):
    """What the calls of one tool by a container that is under way add up to so far."""

    tool: str
    began: int
    ended: dict[Outcome, int]
    """How many ended, by how they did."""
    first: float
    """When the first was told of, and the last, in seconds since the container's own start."""
    last: float


class RunningNested(msgspec.Struct, frozen=True, kw_only=True):
    """What calls a container that is under way made so far."""

    began: int = 0
    ended: int = 0
    completed: int = 0
    calls: tuple[ShownNested, ...] = ()
    """Each of them, as long as they are few; then those that run and were named by themselves."""
    tools: tuple[ShownTool, ...] = ()
    """All of them, added up."""


class RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call under way, as a late reader is shown it; the output is the end of what there is."""

    call_id: str
    tool: str
    output: str = ""
    done: float | None = None
    total: float | None = None
    note: str = ""
    nested: RunningNested | None = None


class Envelope(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """`at` is in seconds of the wall clock; it is for people, and nothing is ordered by it."""

    session_id: str
    at: float
    v: int = VERSION
