"""What the events of one commit change beside the log: a pure function, the same for every store.

It owns the rules: what is open, what a person reads, what was spent, which blobs are named. It
refuses to know where any of that is kept, and it reads no earlier event: what it needs of the
past is the model of the step under way, and what it cannot know is left to the store as the
name of a message that was accepted before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, get_args, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from keryx.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalExpired,
    CallFinished,
    CallStarted,
    ContextCompacted,
    FilesChanged,
    LoggedEvent,
    MessageAccepted,
    MessageChanged,
    MessageDelivered,
    MessageExpired,
    MessageWithdrawn,
    ModelRetried,
    ModelSwitched,
    PromptChanged,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpired,
    SessionChanged,
    SessionOpened,
    StepAbandoned,
    StepReplied,
    StepStarted,
    TurnFinished,
    TurnResumed,
    TurnStarted,
    TurnUndone,
    UsageRecorded,
)
from keryx.ports.store import SessionState, UsageRow
from keryx.store.table_changes import NOTHING, QUARTER, Projection, Shown, Spent

TOLD: Final = (
    *("model", "workspace", "personality", "effort", "approvals", "read_only", "place", "profile"),
)
"""Settings whose change stands in the transcript, because what follows was made under it."""


def project(events: Iterable[LoggedEvent], step_model: str) -> Projection:
    """What these events change; `step_model` is the model of the step that was under way."""
    changes = Projection(step_model)
    paid_up_to = 0
    for event in events:
        if isinstance(event, SessionOpened) and event.fork is not None:
            # The past that a fork shares was paid for by the session that it comes from.
            paid_up_to = event.fork.up_to
        for rule in _RULES.get(type(event), ()):
            rule(event, changes)
        if event.seq <= paid_up_to:
            changes.spent.clear()
    return changes


def state_of(*, turn: bool, person: bool) -> SessionState:
    """The state of a session with a turn open, or with a person to answer."""
    if person:
        return "waiting"
    return "running" if turn else "idle"


def as_delivered(
    accepted: LoggedEvent, later: Sequence[LoggedEvent], turn_id: str | None
) -> LoggedEvent:
    """A message as it was when it was delivered; any other event as it is."""
    if not isinstance(accepted, MessageAccepted):
        return accepted
    fields: dict[str, object] = {}
    for event in later:
        if isinstance(event, MessageChanged):
            for name in ("mode", "text", "workspace", "attachments"):
                value: object = getattr(event, name)
                if value is not UNSET:
                    fields[name] = value
    if turn_id is not None and turn_id != accepted.turn_id:
        fields["turn_id"] = turn_id
    return msgspec.structs.replace(accepted, **fields) if fields else accepted


def _what_is_open(
    event: TurnStarted
    | TurnResumed
    | TurnFinished
    | ApprovalAsked
    | ApprovalAnswered
    | ApprovalExpired
    | QuestionAsked
    | QuestionAnswered
    | QuestionExpired,
    changes: Projection,
) -> None:
    match event:
        case TurnStarted() | TurnResumed():
            changes.open("turn", event.turn_id, event.seq)
        case TurnFinished():
            changes.close("turn", event.turn_id)
        case ApprovalAsked():
            changes.open("approval", event.approval_id, event.seq)
        case ApprovalAnswered() | ApprovalExpired():
            changes.close("approval", event.approval_id)
        case QuestionAsked():
            changes.open("question", event.question_id, event.seq)
        case QuestionAnswered() | QuestionExpired():
            changes.close("question", event.question_id)


def _calls_of_a_person(event: CallStarted | CallFinished, changes: Projection) -> None:
    # A call of a turn is open as long as the turn is; one that a person ran has only itself.
    if event.turn_id is None:
        if isinstance(event, CallStarted):
            changes.open("call", event.call_id, event.seq)
        else:
            changes.close("call", event.call_id)


def _messages(
    event: MessageAccepted | MessageChanged | MessageDelivered | MessageWithdrawn | MessageExpired,
    changes: Projection,
) -> None:
    match event:
        case MessageAccepted():
            changes.open("message", event.message_id, event.seq)
        case MessageChanged():
            sources = changes.opened.get(("message", event.message_id))
            if sources is None:
                changes.changed.append((event.message_id, event.seq))
            else:
                sources.append(event.seq)
        case MessageDelivered():
            sources = changes.opened.get(("message", event.message_id))
            before = event.message_id if sources is None else None
            changes.shown.append(Shown(event.seq, event.turn_id, tuple(sources or ()), before))
            changes.close("message", event.message_id)
        case MessageWithdrawn() | MessageExpired():
            changes.close("message", event.message_id)


def _what_is_read(
    event: StepReplied | CallStarted | CallFinished | ContextCompacted | TurnFinished | TurnUndone,
    changes: Projection,
) -> None:
    match event:
        case StepReplied() | CallFinished() | ContextCompacted():
            changes.show(event, event.turn_id)
        case CallStarted():
            # No reply tells what a person ran.
            if event.step_id is None:
                changes.show(event, event.turn_id)
        case TurnFinished():
            if event.outcome != "completed":
                changes.show(event, event.turn_id)
        case TurnUndone():
            changes.undone.append(event.turn_id)


def _quiet_lines(
    event: TurnStarted | TurnResumed | ModelRetried | ModelSwitched | SessionChanged,
    changes: Projection,
) -> None:
    """What nobody said, and a reader wants to know: why it took long, or went on differently."""
    match event:
        case TurnResumed() | ModelRetried() | ModelSwitched():
            changes.show(event, event.turn_id)
        case TurnStarted():
            if event.warnings:
                changes.show(event, event.turn_id)
        case SessionChanged():
            if any(getattr(event, name) is not UNSET for name in TOLD):
                changes.show(event, None)


def _settings(event: SessionOpened | SessionChanged, changes: Projection) -> None:
    for name in ("title", "model", "workspace", "pinned", "archived"):
        value: object = getattr(event, name)
        if not isinstance(value, UnsetType):
            setattr(changes.facts, name, value)


def _how_it_ended(event: TurnStarted | TurnFinished, changes: Projection) -> None:
    is_failed = isinstance(event, TurnFinished) and event.outcome in ("failed", "parked")
    changes.facts.failed_turn = event.turn_id if is_failed else ""


def _what_is_spent(
    event: StepStarted | ModelSwitched | StepReplied | StepAbandoned | UsageRecorded,
    changes: Projection,
) -> None:
    match event:
        case StepStarted():
            changes.step_model = event.model
        case ModelSwitched():
            changes.step_model = event.to
        case StepReplied():
            model = changes.step_model
            changes.spent.append(Spent(event.at, model, event.usage or NOTHING, event.cost))
        case StepAbandoned():
            if event.asked:
                changes.spent.append(Spent(event.at, changes.step_model, NOTHING, None))
        case UsageRecorded():
            spent = Spent(event.at, event.model, event.usage or NOTHING, event.cost)
            changes.spent.append(spent)


def _blobs(
    event: PromptChanged
    | FilesChanged
    | MessageAccepted
    | MessageChanged
    | CallStarted
    | CallFinished,
    changes: Projection,
) -> None:
    match event:
        case PromptChanged():
            changes.name_blob(event.blob)
        case FilesChanged():
            changes.name_blob(event.before)
        case MessageAccepted() | MessageChanged():
            if not isinstance(event.attachments, UnsetType):
                changes.name_blobs_in(event.attachments)
        case CallStarted():
            changes.name_blob(event.arguments_blob)
        case CallFinished():
            changes.name_blobs_in(event.result)
            if event.nested is not None:
                changes.name_blob(event.nested.blob)


def _by_type(
    *rules: Callable[[Any, Projection], None],
) -> dict[type, list[Callable[[Any, Projection], None]]]:
    """Each event is shown only to the rules that are declared for it."""
    found: dict[type, list[Callable[[Any, Projection], None]]] = {}
    for rule in rules:
        for kind in get_args(get_type_hints(rule)["event"]):
            found.setdefault(kind, []).append(rule)
    return found


_RULES: Final = _by_type(
    *(_what_is_open, _calls_of_a_person, _messages, _what_is_read, _quiet_lines),
    *(_settings, _how_it_ended, _what_is_spent, _blobs),
)


def spent_since(spent: list[Spent], since: float | None) -> list[Spent]:
    return [each for each in spent if since is None or each.quarter >= since // QUARTER]


def usage_row(session_id: str, model: str, spent: list[Spent]) -> UsageRow:
    costs = [each.cost for each in spent if each.cost is not None]
    return UsageRow(
        session_id=session_id,
        model=model,
        input_tokens=sum(each.usage.input_tokens for each in spent),
        output_tokens=sum(each.usage.output_tokens for each in spent),
        cached_tokens=sum(each.usage.cached_tokens for each in spent),
        reasoning_tokens=sum(each.usage.reasoning_tokens for each in spent),
        cost=sum(costs) if len(costs) == len(spent) else None,
    )
