"""The facts of a session's log.

Every fact has a sequence number. Large values are stored as blobs and named by their hash.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from keryx.events.fields import (
    AbandonCause,
    AtWork,
    CallEffects,
    ContextSize,
    Expiry,
    ForkPoint,
    InTurn,
    Logged,
    NestedCall,
    NestedSum,
    NestedSummary,
    Offer,
    ParentCall,
    Replay,
    RiskLevel,
    TurnError,
    TurnOutcome,
    Usage,
)
from keryx.events.memory import MemoryChanged, MemoryRecalled
from keryx.events.models import (
    ContextCompacted,
    ModelRetried,
    ModelSwitched,
    ToolsLoaded,
    UsageRecorded,
)
from keryx.messages import (
    NO_NEEDS,
    ApprovalMode,
    CallAnswer,
    Decision,
    File,
    HookAction,
    Image,
    Mode,
    Needs,
    Opaque,
    Outcome,
    Part,
    Reach,
    Reason,
    ToolCall,
    TurnOptions,
)

# -- session


class SessionOpened(Logged, frozen=True, kw_only=True, tag="session.opened"):
    """A session was created with these settings. No `tools`: it may use none."""

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
    tags: tuple[str, ...] = ()
    parent: ParentCall | None = None
    fork: ForkPoint | None = None
    brought: tuple[str, ...] = ()
    """Those of its tools (`tool:NAME`) and its model (`model:NAME`) that only its program has."""
    person: str | None = None
    """For whom the session is, such as `telegram:42`: it reaches their memories and sessions only.
    It never changes. None: the owner of the home."""


class SessionChanged(Logged, frozen=True, kw_only=True, tag="session.changed"):
    """Somebody changed the session; only the changed fields are present."""

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
    tags: tuple[str, ...] | UnsetType = UNSET


# -- message


class MessageAccepted(Logged, frozen=True, kw_only=True, tag="message.accepted"):
    """A message is durable, and starts or joins this turn."""

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
    """Whether a person can answer the approval requests and questions of the turn."""
    schema: str | None = None
    """The text of a JSON schema that the answer must match."""
    options: TurnOptions | None = None
    """What the sender wants for the turn that the message starts."""
    variants: tuple[str, ...] = ()
    """The turns that its turn replaces, oldest first: earlier answers to the same message."""


class MessageChanged(Logged, frozen=True, kw_only=True, tag="message.changed"):
    """A message that is not yet delivered was changed; only the changed fields are present.

    `before` names the message that now follows it in the queue; None: it is the last one.
    """

    message_id: str
    by: str
    turn_id: str | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    text: str | UnsetType = UNSET
    workspace: str | UnsetType = UNSET
    attachments: tuple[Image | File, ...] | UnsetType = UNSET
    before: str | UnsetType | None = UNSET


class MessageWithdrawn(Logged, frozen=True, kw_only=True, tag="message.withdrawn"):
    """A message was withdrawn before it was delivered."""

    message_id: str
    by: str


class MessageDelivered(InTurn, frozen=True, kw_only=True, tag="message.delivered"):
    """The message is part of the turn, from its next step on."""

    message_id: str


class MessageExpired(InTurn, frozen=True, kw_only=True, tag="message.expired"):
    """The message will never be delivered: its turn was cancelled before it started."""

    message_id: str
    cause: Reason


# -- prompt


class PromptChanged(Logged, frozen=True, kw_only=True, tag="prompt.changed"):
    """A part of the prompt has changed; None: the part was removed."""

    part: str
    blob: str | None


# -- turn


class TurnStarted(InTurn, frozen=True, kw_only=True, tag="turn.started"):
    """The agent works on these messages."""

    message_ids: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """Problems that do not stop the turn, for people."""


class TurnResumed(InTurn, frozen=True, kw_only=True, tag="turn.resumed"):
    """The turn goes on after a crash, for the nth time."""

    attempt: int


class TurnSuspended(InTurn, frozen=True, kw_only=True, tag="turn.suspended"):
    """The host was stopped. The turn goes on at the next start, which is not a new attempt."""


class TurnCancelling(InTurn, frozen=True, kw_only=True, tag="turn.cancelling"):
    """The turn is being cancelled; it is not resumed after a crash."""

    reason: Reason
    by: str


class TurnUndone(Logged, frozen=True, kw_only=True, tag="turn.undone"):
    """The turn was removed from the transcript. It has ended, as that of `turn.restored`."""

    turn_id: str
    by: str
    branch: str | None = None
    """The turn that was replaced: it or one before this turn. None: nothing can bring it back."""


class TurnRestored(Logged, frozen=True, kw_only=True, tag="turn.restored"):
    """A turn that was replaced is in the transcript again, and the one that replaced it is not."""

    turn_id: str
    by: str
    variants: tuple[str, ...] = ()
    """The turns that replaced each other, oldest first; empty if it only followed such a turn."""


class TurnFinished(InTurn, frozen=True, kw_only=True, tag="turn.finished"):
    """The turn has ended. There is exactly one for each turn, and it is the turn's last fact.

    `usage` is the sum of what was reported; a cost of None: a part of it is unknown.
    """

    outcome: TurnOutcome
    usage: Usage
    cost: float | None
    reason: Reason | Literal["no_progress"] | None = None
    started: bool = True
    left_over: tuple[str, ...] = ()
    error: TurnError | None = None


# -- step


class StepStarted(InTurn, frozen=True, kw_only=True, tag="step.started"):
    """A request is sent to the model."""

    step_id: str
    model: str
    effort: str | None = None


class StepAbandoned(InTurn, frozen=True, kw_only=True, tag="step.abandoned"):
    """The model's reply is abandoned and leaves no message."""

    step_id: str
    cause: AbandonCause
    asked: bool = False
    """Whether the request was sent: then it may cost something unknown."""


class StepReplied(InTurn, frozen=True, kw_only=True, tag="step.replied"):
    """The model's reply; `cut`: it was ended early, and `text` is what was visible.

    A usage of None was not reported, a cost of None is unknown; neither is zero.
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
    first_token: float | None = None
    """Seconds from the request until the first piece of the reply; None: there was none."""


# -- call


class CallStarted(AtWork, frozen=True, kw_only=True, tag="call.started"):
    """The call starts; `overlaps` names left-over calls that it may conflict with.

    Of long arguments only the beginning is here, and `arguments_blob` has all of it.
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


class CallAmended(AtWork, frozen=True, kw_only=True, tag="call.amended"):
    """Hooks changed the input of a call: it is judged, and runs, with these arguments."""

    call_id: str
    tool: str
    hooks: tuple[HookAction, ...]
    arguments: str
    arguments_blob: str | None = None


class CallsAnswered(InTurn, frozen=True, kw_only=True, tag="calls.answered"):
    """The client gave the results of calls of its own tools."""

    answers: tuple[CallAnswer, ...]
    client_tools: tuple[str, ...]
    """The names of all tools of the client in this turn."""
    by: str
    request: str = ""
    """What the client wants to read again about its request."""


class NestedFinished(AtWork, frozen=True, kw_only=True, tag="nested.finished"):
    """Nested calls that have ended, so that they are known after a crash.

    `calls` are those since the last such fact; `sums`, `total` and `completed` include all. The
    `call.finished` of the container names a blob with all of them.
    """

    call_id: str
    """The container."""
    calls: tuple[NestedCall, ...] = ()
    sums: tuple[NestedSum, ...] = ()
    total: int
    completed: int


class CallFinished(AtWork, frozen=True, kw_only=True, tag="call.finished"):
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
    hooks: tuple[HookAction, ...] = ()
    """What hooks did about the call."""


class CallSettled(Logged, frozen=True, kw_only=True, tag="call.settled"):
    """A left-over call has ended. It belongs to no turn, since its turn has ended."""

    call_id: str
    duration: float


# -- files


class FilesChanged(AtWork, frozen=True, kw_only=True, tag="files.changed"):
    """A file is about to be replaced: the blob of its content before, and the hash after.

    None before: there was no file; None after: it is deleted. No call: a revert changed it. The
    content of a very large file is not kept; then the change cannot be reverted.
    """

    call_id: str | None
    path: str
    before: str | None
    after: str | None
    kept: bool = True
    workspace: str = ""
    """The workspace at the time of the change; empty in logs of earlier versions."""


# -- approval


class ApprovalAsked(AtWork, frozen=True, kw_only=True, tag="approval.asked"):
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
    """The kind of call, for `session` and `always`. None: every call of the tool; empty: only
    this one call can be approved."""
    needs: Needs = NO_NEEDS
    """What it needs beyond the session's confinement; an approval grants exactly that."""
    workspace: str = ""
    offers: tuple[Offer, ...] = ()
    """What `session` and `always` can cover, the narrowest first."""
    arguments: str = ""
    """What the call gets, as JSON; `arguments_blob` has the whole if this is only the beginning."""
    arguments_blob: str | None = None


class ApprovalAnswered(AtWork, frozen=True, kw_only=True, tag="approval.answered"):
    """The answer; `follows` names another request whose answer covered this one too."""

    approval_id: str
    call_id: str
    decision: Decision
    by: str
    where: str
    follows: str | None = None
    reach: Reach | None = None
    """For `session` and `always`: the offer that was chosen. None: the whole request."""


class ApprovalExpired(AtWork, frozen=True, kw_only=True, tag="approval.expired"):
    """The request can no longer be answered."""

    approval_id: str
    call_id: str
    cause: Expiry


# -- question


class QuestionAsked(AtWork, frozen=True, kw_only=True, tag="question.asked"):
    """A call asks a person a question; the answer may differ from the choices."""

    question_id: str
    call_id: str
    text: str
    expires: float | None
    choices: tuple[str, ...] = ()
    parent: str | None = None


class QuestionAnswered(AtWork, frozen=True, kw_only=True, tag="question.answered"):
    """The answer to a question."""

    question_id: str
    call_id: str
    answer: str
    by: str
    where: str


class QuestionExpired(AtWork, frozen=True, kw_only=True, tag="question.expired"):
    """The request can no longer be answered."""

    question_id: str
    call_id: str
    cause: Expiry


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
    | TurnRestored
    | TurnFinished
    | StepStarted
    | StepAbandoned
    | StepReplied
    | CallAmended
    | CallStarted
    | CallsAnswered
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
    | ToolsLoaded
    | MemoryChanged
    | MemoryRecalled
)
