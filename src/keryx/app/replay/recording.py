"""What a log recorded of a turn: its message, replies, calls and results. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from keryx import events as ev
from keryx.app.portable.session_file import SessionFile
from keryx.engine.context.prompt import result_parts
from keryx.messages import File, Image, text_of


class JoinedMessage(msgspec.Struct, frozen=True):
    """A message that joined a turn while it ran."""

    after: int
    """The number of replies before it."""
    text: str
    attachments: tuple[Image | File, ...] = ()


class RecordedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One finished turn of a log."""

    number: int
    """1 for the first turn of the session."""
    before: int
    """The number of events before the message of the turn was accepted."""
    message: ev.MessageAccepted
    replies: tuple[ev.StepReplied, ...]
    results: dict[str, ev.CallFinished]
    events: tuple[ev.LoggedEvent, ...]
    finished: ev.TurnFinished
    joined: tuple[JoinedMessage, ...] = ()
    """The messages that joined the turn while it ran."""

    @property
    def obstacle(self) -> str | None:
        """Why the turn cannot be run again and be compared; None: it can."""
        if self.finished.outcome != "completed":
            return f"it ended as {self.finished.outcome}"
        if any(message.after == 0 for message in self.joined):
            return "a message joined it before its first reply"
        return None


def recorded_turns(events: Sequence[ev.LoggedEvent]) -> list[RecordedTurn]:
    """Return the finished turns of a log, in order. A turn without a message is left out."""
    finished = {event.turn_id: event for event in events if isinstance(event, ev.TurnFinished)}
    accepted = _messages(events)
    turns: list[RecordedTurn] = []
    for event in events:
        if not isinstance(event, ev.TurnStarted) or event.turn_id not in finished:
            continue
        message = accepted.get(event.message_ids[0]) if event.message_ids else None
        if message is not None:
            turn = _turn(len(turns) + 1, events, event, message, finished[event.turn_id])
            turns.append(msgspec.structs.replace(turn, joined=joined_messages(events, turn)))
    return turns


def _messages(events: Sequence[ev.LoggedEvent]) -> dict[str, ev.MessageAccepted]:
    """Return all messages by id, as they were delivered."""
    messages: dict[str, ev.MessageAccepted] = {}
    for event in events:
        if isinstance(event, ev.MessageAccepted):
            messages[event.message_id] = event
        elif isinstance(event, ev.MessageChanged) and event.message_id in messages:
            changes = {"text": event.text, "attachments": event.attachments}
            messages[event.message_id] = msgspec.structs.replace(
                messages[event.message_id],
                **{name: value for name, value in changes.items() if value is not msgspec.UNSET},
            )
    return messages


def joined_messages(
    events: Sequence[ev.LoggedEvent], turn: RecordedTurn
) -> tuple[JoinedMessage, ...]:
    """Return the messages that joined a turn, and how many replies were there before each."""
    messages, replies = _messages(events), 0
    joined: list[JoinedMessage] = []
    for event in turn.events:
        if isinstance(event, ev.StepReplied):
            replies += 1
        elif isinstance(event, ev.MessageDelivered) and event.message_id in messages:
            message = messages[event.message_id]
            joined.append(JoinedMessage(replies, message.text, message.attachments))
    return tuple(joined[1:])  # the first one began the turn


def _turn(
    number: int,
    events: Sequence[ev.LoggedEvent],
    started: ev.TurnStarted,
    message: ev.MessageAccepted,
    finished: ev.TurnFinished,
) -> RecordedTurn:
    own = [event for event in events if getattr(event, "turn_id", None) == started.turn_id]
    return RecordedTurn(
        number=number,
        # A queued message was accepted while an earlier turn ran: that turn is history too.
        before=max(message.seq, started.seq) - 1,
        message=message,
        replies=tuple(event for event in own if isinstance(event, ev.StepReplied)),
        results={event.call_id: event for event in own if isinstance(event, ev.CallFinished)},
        events=(message, *(event for event in own if event is not message)),
        finished=finished,
    )


def history_before(
    session: SessionFile, turn: RecordedTurn, *, model: str, tools: Sequence[str], workspace: str
) -> SessionFile:
    """Return the session before a turn, with the settings that a replay needs."""
    events: list[ev.LoggedEvent] = []
    for event in session.events[: turn.before]:
        changed = event
        if isinstance(event, ev.SessionOpened):
            changed = msgspec.structs.replace(
                event,
                model=model,
                tools=tuple(tools),
                workspace=workspace,
                profile="default",
                approvals="never",
                personality=None,
                parent=None,
                fork=None,
                brought=(),
            )
        elif isinstance(event, ev.SessionChanged):
            # Titles and the like stay; what the replay decides is not changed again.
            changed = ev.SessionChanged(
                session_id=event.session_id,
                seq=event.seq,
                at=event.at,
                by=event.by,
                title=event.title,
            )
        events.append(changed)
    return msgspec.structs.replace(session, events=tuple(events))


class RecordedResults:
    """The results of a turn, found by the tool and the arguments of a call."""

    def __init__(self, turn: RecordedTurn) -> None:
        self._results: dict[tuple[str, str], deque[ev.CallFinished]] = {}
        for reply in turn.replies:
            for call in reply.calls:
                result = turn.results.get(call.call_id)
                if result is not None:
                    key = call_key(call.tool, call.arguments)
                    self._results.setdefault(key, deque()).append(result)

    def take(self, tool: str, arguments: str) -> ev.CallFinished | None:
        """Return the next recorded result of such a call; None: there is none any more."""
        results = self._results.get(call_key(tool, arguments))
        return results.popleft() if results else None


def call_key(tool: str, arguments: str) -> tuple[str, str]:
    """Return the same key for calls that differ only in the layout of their arguments."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError):
        return tool, arguments
    return tool, msgspec.json.encode(value, order="sorted").decode()


def shown_result(result: ev.CallFinished) -> str:
    """Return a recorded result as the model read it."""
    return text_of(result_parts(result))
