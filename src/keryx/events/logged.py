"""The facts of a session's log, as a table to be read from top to bottom.

A fact has a sequence number and stays. Large values are named by the hash of a blob.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from keryx.errors import ErrorKind
from keryx.events.fields import (
    AbandonCause,
    CallEffects,
    ContextSize,
    Envelope,
    Expiry,
    ForkPoint,
    NestedCall,
    NestedSum,
    NestedSummary,
    Offer,
    Opaque,
    ParentCall,
    Purpose,
    Replay,
    RiskLevel,
    TurnError,
    TurnOutcome,
    Usage,
)
from keryx.messages import (
    NO_NEEDS,
    ApprovalMode,
    Decision,
    File,
    Image,
    Mode,
    Needs,
    Outcome,
    Part,
    Reach,
    Reason,
    ToolCall,
)


class _Logged(Envelope, frozen=True, kw_only=True):
    """A fact. The sequence has no gaps."""

    seq: int


class _InTurn(_Logged, frozen=True, kw_only=True):
    """A fact of one turn; none follows that turn's `turn.finished`."""

    turn_id: str


class _AtWork(_Logged, frozen=True, kw_only=True):
    """A fact of a call or a step; no turn if a person ran the call or asked for the work."""

    turn_id: str | None


# -- session


class SessionOpened(_Logged, frozen=True, kw_only=True, tag="session.opened"):
    """The session exists, and this is what it starts with. An empty grant means no tools."""

    model: str
    profile: str
    place: str
    workspace: str
    tools: tuple[str, ...]
    effort: str | None = None
    personality: str | None = None
    title: str = ""
    pinned: bool = False
    archived: bool = False
    approvals: ApprovalMode | None = None
    read_only: bool = False
    parent: ParentCall | None = None
    fork: ForkPoint | None = None
    brought: tuple[str, ...] = ()
    """Its tools (`tool:NAME`) and model (`model:NAME`) that only the program has that made it."""


class SessionChanged(_Logged, frozen=True, kw_only=True, tag="session.changed"):
    """Somebody changed the session; only what changed is present."""

    by: str
    model: str | UnsetType = UNSET
    profile: str | UnsetType = UNSET
    place: str | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    tools: tuple[str, ...] | UnsetType = UNSET
    effort: str | UnsetType | None = UNSET
    personality: str | UnsetType | None = UNSET
    title: str | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    approvals: ApprovalMode | UnsetType | None = UNSET
    read_only: bool | UnsetType = UNSET


# -- message


class MessageAccepted(_Logged, frozen=True, kw_only=True, tag="message.accepted"):
    """A message is durable, and will be or join this turn."""

    message_id: str
    turn_id: str
    key: str | None
    by: str
    mode: Mode
    text: str
    workspace: str
    attachments: tuple[Image | File, ...] = ()
    wait: bool = False
    attended: bool = True
    """Whether a person is there who can answer what the turn asks."""
    schema: str | None = None
    """JSON text of a JSON schema that the answer must fit."""


class MessageChanged(_Logged, frozen=True, kw_only=True, tag="message.changed"):
    """A message that was not delivered yet is another now; only what changed is present.

    `before` names the message that it stands before in the queue, None its end.
    """

    message_id: str
    by: str
    turn_id: str | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    text: str | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    attachments: tuple[Image | File, ...] | UnsetType = UNSET
    before: str | UnsetType | None = UNSET


class MessageWithdrawn(_Logged, frozen=True, kw_only=True, tag="message.withdrawn"):
    """A message was taken back before it was delivered."""

    message_id: str
    by: str


class MessageDelivered(_InTurn, frozen=True, kw_only=True, tag="message.delivered"):
    """The message is part of the turn, from its next step on."""

    message_id: str


class MessageExpired(_InTurn, frozen=True, kw_only=True, tag="message.expired"):
    """The message will never be delivered: its turn was cancelled before it started."""

    message_id: str
    cause: Reason


# -- prompt


class PromptChanged(_Logged, frozen=True, kw_only=True, tag="prompt.changed"):
    """A part of the prompt that comes from outside is another now; None: it is gone."""

    part: str
    blob: str | None


# -- turn


class TurnStarted(_InTurn, frozen=True, kw_only=True, tag="turn.started"):
    """The agent works on these messages."""

    message_ids: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """What is amiss and does not stop it, for people to read."""


class TurnResumed(_InTurn, frozen=True, kw_only=True, tag="turn.resumed"):
    """The turn goes on after a crash, for the nth time."""

    attempt: int


class TurnSuspended(_InTurn, frozen=True, kw_only=True, tag="turn.suspended"):
    """The host was stopped; the turn goes on at the next start, and that is no new attempt."""


class TurnCancelling(_InTurn, frozen=True, kw_only=True, tag="turn.cancelling"):
    """The turn is to end; no crash revives it."""

    reason: Reason
    by: str


class TurnUndone(_Logged, frozen=True, kw_only=True, tag="turn.undone"):
    """Projections skip this turn from now on. The one fact that names a turn that is over."""

    turn_id: str
    by: str


class TurnFinished(_InTurn, frozen=True, kw_only=True, tag="turn.finished"):
    """The turn is over. There is exactly one for each turn, and it is the turn's last fact.

    `usage` sums what was reported; a cost of None means that a part of it is unknown.
    """

    outcome: TurnOutcome
    usage: Usage
    cost: float | None
    reason: Reason | Literal["no_progress"] | None = None
    started: bool = True
    left_over: tuple[str, ...] = ()
    error: TurnError | None = None


# -- step


class StepStarted(_InTurn, frozen=True, kw_only=True, tag="step.started"):
    """The model is being asked."""

    step_id: str
    model: str
    effort: str | None = None


class StepAbandoned(_InTurn, frozen=True, kw_only=True, tag="step.abandoned"):
    """The model's reply is given up and leaves no message."""

    step_id: str
    cause: AbandonCause
    asked: bool = False
    """Whether the model had been asked: then it may cost something, and nobody knows what."""


class StepReplied(_InTurn, frozen=True, kw_only=True, tag="step.replied"):
    """The model's reply; `cut` if it was ended early, and then this is what was visible.

    A usage of None was not reported, a cost of None is not known; neither means nothing.
    """

    step_id: str
    text: str
    usage: Usage | None
    cost: float | None
    context: ContextSize
    stop_reason: str | None
    reasoning: str = ""
    opaque: tuple[Opaque, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False


# -- call


class CallStarted(_AtWork, frozen=True, kw_only=True, tag="call.started"):
    """The call may act from now on; `overlaps` names left-overs that it may meet.

    Of long arguments only the beginning is here, and `arguments_blob` names the whole.
    """

    call_id: str
    step_id: str | None
    by: str
    tool: str
    arguments: str
    preview: str
    effects: CallEffects
    replay: Replay
    overlaps: tuple[str, ...] = ()
    arguments_blob: str | None = None


class NestedFinished(_AtWork, frozen=True, kw_only=True, tag="nested.finished"):
    """Calls that a container made and that have ended: what is known of them after a crash.

    `calls` are those since the last such fact; `sums`, `total` and `completed` tell of all. The
    container's own end names a blob with the whole.
    """

    call_id: str
    """The container."""
    calls: tuple[NestedCall, ...] = ()
    sums: tuple[NestedSum, ...] = ()
    total: int
    completed: int


class CallFinished(_AtWork, frozen=True, kw_only=True, tag="call.finished"):
    """How the call ended. There is exactly one for each call, started or not."""

    call_id: str
    tool: str
    outcome: Outcome
    reason: str | None
    started: bool
    result: tuple[Part, ...]
    duration: float
    left_over: tuple[str, ...] = ()
    overlaps: tuple[str, ...] = ()
    nested: NestedSummary | None = None


class CallSettled(_Logged, frozen=True, kw_only=True, tag="call.settled"):
    """A left-over has ended at last. It belongs to no turn: its own is over."""

    call_id: str
    duration: float


# -- files


class FilesChanged(_AtWork, frozen=True, kw_only=True, tag="files.changed"):
    """A file is about to be replaced: the blob that it was, the hash that it will have.

    None before: there was no file; None after: there will be none. No call: a revert did it.
    What it was is not kept if it was very large; then it cannot be taken back.
    """

    call_id: str | None
    path: str
    before: str | None
    after: str | None
    kept: bool = True
    workspace: str = ""
    """Where the session worked when it did this; logs from before this field say nothing."""


# -- approval


class ApprovalAsked(_AtWork, frozen=True, kw_only=True, tag="approval.asked"):
    """A call waits for a person; `parent` is the container of a nested call."""

    approval_id: str
    call_id: str
    what: str
    why: str
    risk: RiskLevel
    expires: float | None
    parent: str | None = None
    tool: str = ""
    patterns: tuple[str, ...] | None = None
    """What of the tool it is, for `session` and `always`. None: the tool as a whole is meant;
    empty: only this very call can be consented to."""
    needs: Needs = NO_NEEDS
    """What it needs beyond the session's confinement; consent grants exactly that."""
    workspace: str = ""
    offers: tuple[Offer, ...] = ()
    """What `session` and `always` can cover, the narrowest first."""


class ApprovalAnswered(_AtWork, frozen=True, kw_only=True, tag="approval.answered"):
    """The first answer, which is the answer; `follows` names the approval whose answer matched."""

    approval_id: str
    call_id: str
    decision: Decision
    by: str
    where: str
    follows: str | None = None
    reach: Reach | None = None
    """Of `session` and `always`: which offer was taken. None: all that was asked about."""


class ApprovalExpired(_AtWork, frozen=True, kw_only=True, tag="approval.expired"):
    """Nobody can answer any more."""

    approval_id: str
    call_id: str
    cause: Expiry


# -- question


class QuestionAsked(_AtWork, frozen=True, kw_only=True, tag="question.asked"):
    """A call waits for a person's words; the choices are offers, not limits."""

    question_id: str
    call_id: str
    text: str
    expires: float | None
    choices: tuple[str, ...] = ()
    parent: str | None = None


class QuestionAnswered(_AtWork, frozen=True, kw_only=True, tag="question.answered"):
    """The first answer, which is the answer."""

    question_id: str
    call_id: str
    answer: str
    by: str
    where: str


class QuestionExpired(_AtWork, frozen=True, kw_only=True, tag="question.expired"):
    """Nobody can answer any more."""

    question_id: str
    call_id: str
    cause: Expiry


# -- model


class ModelRetried(_InTurn, frozen=True, kw_only=True, tag="model.retried"):
    """The model could not answer and is asked again after the delay, in seconds."""

    step_id: str
    cause: ErrorKind
    message: str
    delay: float


class ModelSwitched(_InTurn, frozen=True, kw_only=True, tag="model.switched"):
    """Another model takes over the step."""

    step_id: str
    cause: ErrorKind
    from_: str = msgspec.field(name="from")
    to: str


# -- context and usage


class ContextCompacted(_AtWork, frozen=True, kw_only=True, tag="context.compacted"):
    """The summary stands for all facts up to that seq in what the model is sent."""

    summary: str
    up_to: int
    tokens_before: int
    tokens_after: int


class UsageRecorded(_Logged, frozen=True, kw_only=True, tag="usage.recorded"):
    """What was spent outside steps, maybe by a call. No turn: a title may come after its end."""

    purpose: Purpose
    model: str
    usage: Usage | None
    cost: float | None
    call_id: str | None = None


LoggedEvent = (
    SessionOpened
    | SessionChanged
    | MessageAccepted
    | MessageChanged
    | MessageWithdrawn
    | MessageDelivered
    | MessageExpired
    | PromptChanged
    | TurnStarted
    | TurnResumed
    | TurnSuspended
    | TurnCancelling
    | TurnUndone
    | TurnFinished
    | StepStarted
    | StepAbandoned
    | StepReplied
    | CallStarted
    | NestedFinished
    | CallFinished
    | CallSettled
    | FilesChanged
    | ApprovalAsked
    | ApprovalAnswered
    | ApprovalExpired
    | QuestionAsked
    | QuestionAnswered
    | QuestionExpired
    | ModelRetried
    | ModelSwitched
    | ContextCompacted
    | UsageRecorded
)
