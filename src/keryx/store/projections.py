"""A pure function from the events of one commit to the changes beside the log.

It owns the rules: what is open, read, spent and named. It reads no earlier event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, get_args, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from keryx.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalExpired,
    CallAmended,
    CallFinished,
    CallSettled,
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
    TurnRestored,
    TurnResumed,
    TurnStarted,
    TurnUndone,
    UsageRecorded,
)
from keryx.ports.store import SessionState
from keryx.ports.tags import distinct_tags
from keryx.ports.usage import STEPS
from keryx.store.table_changes import (
    NO_USAGE,
    OpenKind,
    Projection,
    ToolEntry,
    TranscriptEntry,
    TurnEntry,
    UsageEntry,
)

SHOWN_SETTINGS: Final = (
    *("model", "workspace", "personality", "effort", "approvals", "read_only", "place", "profile"),
)
"""Settings whose changes the transcript shows, because the following replies depend on them."""


def project(events: Iterable[LoggedEvent], step_model: str) -> Projection:
    """Return the changes of these events; `step_model` is the model of the step under way."""
    changes, paid_up_to = Projection(step_model), 0
    for event in events:
        if isinstance(event, SessionOpened) and event.fork is not None:
            # The usage of the copied events is counted in the session that was forked.
            paid_up_to = event.fork.up_to
        for rule in _RULES.get(type(event), ()):
            rule(event, changes)
        if event.seq <= paid_up_to:
            changes.clear_usage()
    return changes


def state_of(*, turn: bool, person: bool) -> SessionState:
    """Return the state of a session: `turn` if one is open, `person` if one has to answer."""
    if person:
        return "waiting"
    return "running" if turn else "idle"


def as_delivered(
    accepted: LoggedEvent, later: Sequence[LoggedEvent], turn_id: str | None
) -> LoggedEvent:
    """Return a message with its later changes; any other event is returned unchanged."""
    if not isinstance(accepted, MessageAccepted):
        return accepted
    fields: dict[str, object] = {}
    for event in later:
        if isinstance(event, MessageChanged):
            for name in ("mode", "text", "workspace", "attachments"):
                if (value := getattr(event, name)) is not UNSET:
                    fields[name] = value
    if turn_id is not None and turn_id != accepted.turn_id:
        fields["turn_id"] = turn_id
    return msgspec.structs.replace(accepted, **fields) if fields else accepted


def _open(changes: Projection, kind: OpenKind, name: str, seq: int) -> None:
    changes.opened.setdefault((kind, name), [seq])


def _close(changes: Projection, kind: OpenKind, name: str) -> None:
    was_opened_here = changes.opened.pop((kind, name), None) is not None
    # A resumed turn is opened again, so an earlier commit may have opened it too.
    if kind == "turn" or not was_opened_here:
        changes.closed.append((kind, name))


def _show(changes: Projection, event: LoggedEvent, turn_id: str | None) -> None:
    changes.entries.append(TranscriptEntry(event.seq, turn_id, (event.seq,)))


def _open_and_close(
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
            _open(changes, "turn", event.turn_id, event.seq)
        case TurnFinished():
            _close(changes, "turn", event.turn_id)
        case ApprovalAsked():
            _open(changes, "approval", event.approval_id, event.seq)
        case ApprovalAnswered() | ApprovalExpired():
            _close(changes, "approval", event.approval_id)
        case QuestionAsked():
            _open(changes, "question", event.question_id, event.seq)
        case QuestionAnswered() | QuestionExpired():
            _close(changes, "question", event.question_id)


def _open_and_close_user_calls(event: CallStarted | CallFinished, changes: Projection) -> None:
    # A call of a turn is open as long as its turn; a call that a person ran is open by itself.
    if event.turn_id is None:
        if isinstance(event, CallStarted):
            _open(changes, "call", event.call_id, event.seq)
        else:
            _close(changes, "call", event.call_id)


def _queue_messages(
    event: MessageAccepted | MessageChanged | MessageDelivered | MessageWithdrawn | MessageExpired,
    changes: Projection,
) -> None:
    match event:
        case MessageAccepted():
            _open(changes, "message", event.message_id, event.seq)
        case MessageChanged():
            sources = changes.opened.get(("message", event.message_id))
            if sources is None:
                changes.changed.append((event.message_id, event.seq))
            else:
                sources.append(event.seq)
        case MessageDelivered():
            sources = changes.opened.get(("message", event.message_id))
            before = event.message_id if sources is None else None
            entry = TranscriptEntry(event.seq, event.turn_id, tuple(sources or ()), before)
            changes.entries.append(entry)
            _close(changes, "message", event.message_id)
        case MessageWithdrawn() | MessageExpired():
            _close(changes, "message", event.message_id)


def _show_turns(
    event: StepReplied | CallStarted | CallFinished | ContextCompacted | TurnFinished,
    changes: Projection,
) -> None:
    match event:
        case StepReplied() | CallFinished() | ContextCompacted():
            _show(changes, event, event.turn_id)
        case CallStarted():
            # A call that a person ran is in no reply, so it is shown by itself.
            if event.step_id is None:
                _show(changes, event, event.turn_id)
        case TurnFinished():
            if event.outcome != "completed":
                _show(changes, event, event.turn_id)


def _hide_turns(event: TurnUndone | TurnRestored, changes: Projection) -> None:
    changes.undone[event.turn_id] = isinstance(event, TurnUndone)
    if isinstance(event, TurnRestored) and event.variants:
        _show(changes, event, event.turn_id)


def _show_notices(
    event: TurnStarted | TurnResumed | ModelRetried | ModelSwitched | SessionChanged,
    changes: Projection,
) -> None:
    """Show notices that explain a delay or a change: restarts, retries, fallbacks, settings."""
    match event:
        case TurnResumed() | ModelRetried() | ModelSwitched():
            _show(changes, event, event.turn_id)
        case TurnStarted():
            if event.warnings:
                _show(changes, event, event.turn_id)
        case SessionChanged():
            if any(getattr(event, name) is not UNSET for name in SHOWN_SETTINGS):
                _show(changes, event, None)


def _change_settings(event: SessionOpened | SessionChanged, changes: Projection) -> None:
    for name in ("title", "model", "workspace", "pinned", "archived"):
        if (value := getattr(event, name)) is not UNSET:
            setattr(changes.fields, name, value)
    if isinstance(event, SessionOpened):
        changes.parent, changes.person = event.parent, event.person
        changes.tags = distinct_tags(event.tags) or changes.tags
    elif not isinstance(event.tags, UnsetType):
        changes.tags = distinct_tags(event.tags)


def _end_turn(event: TurnStarted | TurnFinished, changes: Projection) -> None:
    is_failed = isinstance(event, TurnFinished) and event.outcome in ("failed", "parked")
    changes.fields.failed_turn = event.turn_id if is_failed else ""
    if isinstance(event, TurnFinished) and event.started:
        changes.turns.append(TurnEntry(event.at, is_failed))


def _add_usage(
    event: StepStarted | ModelSwitched | StepReplied | StepAbandoned | UsageRecorded,
    changes: Projection,
) -> None:
    match event:
        case StepStarted():
            changes.step_model = event.model
        case ModelSwitched():
            changes.step_model = event.to
        case StepAbandoned(asked=True):
            changes.usages.append(UsageEntry(event.at, changes.step_model, NO_USAGE, None))
        case StepAbandoned() | UsageRecorded(purpose="agent"):
            pass  # nothing was spent, or the child agent's own session has it
        case StepReplied(usage=usage, cost=cost, first_token=first):
            entry = (changes.step_model, usage or NO_USAGE, cost, STEPS, first)
            changes.usages.append(UsageEntry(event.at, *entry))
        case UsageRecorded(model=model, usage=usage, cost=cost, purpose=purpose):
            changes.usages.append(UsageEntry(event.at, model, usage or NO_USAGE, cost, purpose))


def _count_calls(event: CallFinished | CallSettled, changes: Projection) -> None:
    # A settled call was counted when it got its outcome.
    if isinstance(event, CallFinished):
        outcome, seconds = event.outcome, event.duration
        changes.tools.append(ToolEntry(event.at, event.tool, outcome != "completed", seconds))


def _name_blobs(
    event: PromptChanged
    | FilesChanged
    | MessageAccepted
    | MessageChanged
    | CallAmended
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
        case CallAmended() | CallStarted():
            changes.name_blob(event.arguments_blob)
        case CallFinished():
            changes.name_blobs_in(event.result)
            changes.name_blob(None if event.nested is None else event.nested.blob)


def _by_type(
    *rules: Callable[[Any, Projection], None],
) -> dict[type, list[Callable[[Any, Projection], None]]]:
    """Return the rules of each event type, from the type hints of the rules."""
    rules_of: dict[type, list[Callable[[Any, Projection], None]]] = {}
    for rule in rules:
        for kind in get_args(get_type_hints(rule)["event"]):
            rules_of.setdefault(kind, []).append(rule)
    return rules_of


_RULES: Final = _by_type(
    *(_open_and_close, _open_and_close_user_calls, _queue_messages, _show_turns, _hide_turns),
    *(_show_notices, _change_settings, _end_turn, _add_usage, _count_calls, _name_blobs),
)
