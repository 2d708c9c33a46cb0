"""What is shown of a session: finished pieces, and the state of what still runs.

It depends on events alone, and knows no terminal: the same events give the same pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from keryx import events as ev
from keryx.cli.chatting.pieces import Piece, one_line, printable
from keryx.cli.chatting.requests import Pending, request_id
from keryx.cli.chatting.running_calls import RunningCalls
from keryx.cli.screens.markdown_stream import MarkdownStream
from keryx.cli.screens.plan_block import PlanBlock
from keryx.ports.view import QueuedMessage, SessionView

_ENDINGS: Final = {
    "interrupt": "Stopped by you",
    "steer": "Stopped by your steer",
    "timeout": "Stopped: it took too long",
    "shutdown": "Stopped: the host was stopped",
    "no_progress": "Parked: it made no progress after restarts",
}


class Reply:
    """The reply that is being streamed."""

    def __init__(self, step_id: str) -> None:
        self.step_id = step_id
        self.stream = MarkdownStream()
        self.text = ""
        self.reasoning = ""
        self.is_folded = False
        """Whether a row stands for the reasoning."""
        self.is_incomplete = False
        """Some deltas were lost: the rest comes with the finished reply."""

    def feed(self, text: str) -> list[Piece]:
        self.text += text
        return self.stream.feed(printable(text))


class Transcript:
    """Follows one session by its events."""

    def __init__(self) -> None:
        self.calls = RunningCalls()
        self.pending = Pending()
        self.queue: dict[str, QueuedMessage] = {}
        self.reply: Reply | None = None
        self.turn_id: str | None = None
        self.turn_began = 0.0
        self.is_cancelling = False
        self.is_compacting = False
        self.model = ""
        self.workspace = ""
        self.title = ""
        self.context: ev.ContextSize | None = None
        self.cost: float | None = 0.0
        self.last_reply = ""
        self.last_reasoning = ""
        self.last_finished: ev.TurnFinished | None = None
        self.seq = 0
        self._plan_block = PlanBlock()

    @property
    def is_running(self) -> bool:
        return self.turn_id is not None

    def restore(self, view: SessionView, approvals: Sequence[ev.ApprovalAsked], at: float) -> None:
        """Begin with the present state of a session; `approvals` have the whole calls."""
        settings = view.settings
        self.model, self.workspace = settings.model, settings.workspace
        self.title = settings.title
        self.context = view.context
        self.queue = {message.message_id: message for message in view.queue}
        if view.turn is not None:
            self.turn_id, self.is_cancelling = view.turn.turn_id, view.turn.cancelling
            self.turn_began = at
        for call in view.calls:
            self.calls.apply(call)
        for request in (*approvals, *view.questions):
            self.pending.requests[request_id(request)] = request
        self.seq = view.seq

    def apply(self, event: ev.Event) -> list[Piece]:
        """Apply one event; return what is finished by it."""
        self.seq = getattr(event, "seq", self.seq)
        plan = self._plan_block.text(event)
        if plan:
            self.calls.rows.pop(getattr(event, "call_id", ""), None)
            return [Piece("note", plan)]
        pieces = self._reply_event(event)
        pieces += self.calls.apply(event)
        pieces += self.pending.apply(event)
        pieces += self._message_event(event)
        pieces += self._turn_event(event)
        self._settings_event(event)
        return pieces

    # -- the reply

    def _reply_event(self, event: ev.Event) -> list[Piece]:
        match event:
            case ev.StepStarted():
                self.reply = Reply(event.step_id)
            case ev.TextDelta() if (reply := self._reply(event)) is not None:
                if reply.is_incomplete:
                    return []
                return [*self._fold(reply, reply.reasoning), *reply.feed(event.text)]
            case ev.ReasoningDelta() if (reply := self._reply(event)) is not None:
                reply.reasoning += event.text
            case ev.StepSnapshot():
                return self._snapshot(event)
            case ev.StepReset() | ev.StepAbandoned():
                return self._start_again(event)
            case ev.Resync() if self.reply is not None:
                self.reply.is_incomplete = True
            case ev.StepReplied():
                return self._replied(event)
            case _:
                pass
        return []

    def _reply(self, event: ev.TextDelta | ev.ReasoningDelta) -> Reply | None:
        reply = self.reply
        return reply if reply is not None and reply.step_id == event.step_id else None

    def _snapshot(self, event: ev.StepSnapshot) -> list[Piece]:
        if self.reply is None or self.reply.step_id != event.step_id:
            self.reply = Reply(event.step_id)
        self.reply.reasoning = event.reasoning
        self.reply.is_incomplete = not event.text.startswith(self.reply.text)
        if self.reply.is_incomplete:
            return []
        return self.reply.feed(event.text[len(self.reply.text) :])

    def _start_again(self, event: ev.StepReset | ev.StepAbandoned) -> list[Piece]:
        reply = self.reply
        if reply is None or reply.step_id != event.step_id:
            return []
        self.reply = Reply(event.step_id) if isinstance(event, ev.StepReset) else None
        if not reply.text:
            return []
        return [*reply.stream.end(), Piece("note", "The reply starts again.")]

    def _replied(self, event: ev.StepReplied) -> list[Piece]:
        reply, self.reply = self.reply, None
        if reply is None or reply.step_id != event.step_id:
            reply = Reply(event.step_id)
        pieces = self._fold(reply, event.reasoning)
        if event.text.startswith(reply.text):
            pieces += reply.feed(event.text[len(reply.text) :])
        pieces += reply.stream.end()
        if event.cut:
            pieces.append(Piece("note", "The reply was cut off."))
        self.last_reply = event.text or self.last_reply
        self.context = event.context
        if event.cost is None or self.cost is None:
            self.cost = None
        else:
            self.cost += event.cost
        return pieces

    def _fold(self, reply: Reply, reasoning: str) -> list[Piece]:
        """Return one row for the reasoning, before the text that follows it."""
        if not reasoning:
            return []
        self.last_reasoning = printable(reasoning)
        if reply.is_folded:
            return []
        reply.is_folded = True
        count = len(self.last_reasoning.splitlines())
        lines = "1 line" if count == 1 else f"{count} lines"
        return [Piece("note", f"▸ Reasoning: {lines} (/reasoning shows all)")]

    # -- messages

    def _message_event(self, event: ev.Event) -> list[Piece]:
        match event:
            case ev.MessageAccepted():
                self.queue[event.message_id] = QueuedMessage(
                    message_id=event.message_id,
                    turn_id=event.turn_id,
                    mode=event.mode,
                    text=event.text,
                    workspace=event.workspace,
                    attachments=event.attachments,
                    wait=event.wait,
                )
            case ev.MessageChanged() if isinstance(event.text, str):
                message = self.queue.get(event.message_id)
                if message is not None:
                    self.queue[event.message_id] = _with_text(message, event.text)
            case ev.MessageDelivered():
                message = self.queue.pop(event.message_id, None)
                return [] if message is None else [user_piece(message)]
            case ev.MessageWithdrawn() | ev.MessageExpired():
                self.queue.pop(event.message_id, None)
            case _:
                pass
        return []

    # -- turns

    def _turn_event(self, event: ev.Event) -> list[Piece]:
        match event:
            case ev.TurnStarted():
                self._start_turn(event)
                return [Piece("note", printable(warning)) for warning in event.warnings]
            case ev.TurnResumed():
                self._start_turn(event)
                return [Piece("note", "Resumed after a restart.")]
            case ev.TurnCancelling():
                self.is_cancelling = True
            case ev.TurnSuspended():
                self.turn_id = None
                return [Piece("note", "Suspended: the turn goes on when a host starts again.")]
            case ev.TurnFinished():
                return self._finish_turn(event)
            case _:
                return self._model_event(event)
        return []

    def _start_turn(self, event: ev.TurnStarted | ev.TurnResumed) -> None:
        self.calls.restart_numbers()
        self.turn_id, self.turn_began = event.turn_id, event.at
        self.is_cancelling = False

    def _finish_turn(self, event: ev.TurnFinished) -> list[Piece]:
        self.last_finished = event
        if event.turn_id == self.turn_id or self.turn_id is None:
            self.turn_id, self.reply, self.is_cancelling = None, None, False
        pieces: list[Piece] = []
        if event.error is not None:
            text = f"The turn failed: {event.error.message}. {event.error.hint}"
            pieces.append(Piece("error", printable(text)))
        elif event.outcome != "completed":
            pieces.append(Piece("note", _ENDINGS.get(event.reason or "", event.outcome)))
        if event.left_over:
            pieces.append(Piece("note", f"{len(event.left_over)} call(s) may still be running."))
        return pieces

    def _model_event(self, event: ev.Event) -> list[Piece]:
        match event:
            case ev.ModelRetried():
                text = f"{one_line(event.message, 200)}. Retrying in {event.delay:.0f} s."
            case ev.TurnUndone():
                text = "Undid the last turn." if event.branch is None else "Replaced the last turn."
            case ev.TurnRestored():
                text = "Restored an earlier answer."
            case ev.ModelSwitched():
                text = f"Switched from {event.from_} to {event.to}."
            case ev.ContextCompacting():
                self.is_compacting = not event.over
                return []
            case ev.ContextCompacted():
                self.is_compacting = False
                text = f"Compacted: {event.tokens_before:,} → {event.tokens_after:,} tokens"
            case _:
                return []
        return [Piece("note", printable(text))]

    def _settings_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.SessionOpened):
            self.model, self.workspace, self.title = event.model, event.workspace, event.title
        if isinstance(event, ev.SessionChanged):
            self.model = event.model if isinstance(event.model, str) else self.model
            self.title = event.title if isinstance(event.title, str) else self.title
            if isinstance(event.workspace, str):
                self.workspace = event.workspace


def has_own_turn(message: QueuedMessage, event: ev.Event) -> bool:
    """Return whether the message may still begin its turn, or has begun it, after this event."""
    if isinstance(event, ev.MessageDelivered):
        return event.turn_id == message.turn_id
    return not isinstance(event, ev.MessageWithdrawn)


def user_piece(message: QueuedMessage | ev.MessageAccepted) -> Piece:
    names = "".join(f"\n[{one_line(file.name, 60)}]" for file in message.attachments)
    return Piece("user", printable(message.text) + names)


def _with_text(message: QueuedMessage, text: str) -> QueuedMessage:
    return QueuedMessage(
        message_id=message.message_id,
        turn_id=message.turn_id,
        mode=message.mode,
        text=text,
        workspace=message.workspace,
        attachments=message.attachments,
        wait=message.wait,
    )
