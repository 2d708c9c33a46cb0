"""The state of a session, folded from its log. The same log always gives the same state.

Pure: it reads facts in order and knows nothing of tasks, stores, models or time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import msgspec

from keryx import events as ev
from keryx.engine.log.state import (
    Delivered,
    HistoryItem,
    NestedSoFar,
    OpenTurn,
    QuestionAnswer,
    Queued,
    Replied,
    Settings,
    reordered,
)
from keryx.engine.log.summaries import without_summed_up
from keryx.messages import Decision, Reach


class Fold:
    """A session as its log tells it."""

    def __init__(self, session_id: str, undone_later: Collection[str] = ()) -> None:
        """`undone_later`: turns that the log will undo, so that summaries of them will not hold."""
        self.session_id = session_id
        self._undone_later = undone_later
        self.last_seq = 0
        self.settings = Settings()
        self.titled_by = ""
        """Who gave the title."""
        self.titled = 0
        """How many titles it had."""
        self.queue: dict[str, Queued] = {}
        """Messages that wait for a turn of their own, in order."""
        self.steers: dict[str, Queued] = {}
        """Messages that wait to join the turn under way, in order."""
        self.turn: OpenTurn | None = None
        self.over: dict[str, ev.TurnOutcome] = {}
        self.history: list[HistoryItem] = []
        """What was said, but for what a summary stands for."""
        self.forgotten: set[str] = set()
        """Turns of which the history tells nothing any more, because a summary does."""
        self.last_reply: ev.StepReplied | None = None
        self.undone: set[str] = set()
        self.compactions: list[ev.ContextCompacted] = []
        """Summaries that hold, each for the history up to a place; the last one counts."""
        self.prompt: dict[str, str] = {}
        self.approvals: dict[str, ev.ApprovalAsked] = {}
        """Those that nobody answered yet."""
        self.answers: dict[str, tuple[ev.ApprovalAsked, Decision]] = {}
        """How a call that has not ended was decided on, by call."""
        self.granted: list[tuple[ev.ApprovalAsked, Reach | None]] = []
        """What was answered with `session`: others like these may run too. What
        `always` allows is recorded with the host."""
        self.questions: dict[str, ev.QuestionAsked] = {}
        """Those that nobody answered yet."""
        self.question_answers: dict[str, list[QuestionAnswer]] = {}
        """What a call that has not ended was answered, in order, by call."""
        self.person_calls: dict[str, ev.CallStarted] = {}
        """Calls that people ran, which started and have not finished."""
        self.nested: dict[str, NestedSoFar] = {}
        """What the calls under way have called themselves, by call."""
        self._accepted: dict[str, Queued] = {}

    def apply(self, event: ev.LoggedEvent) -> None:
        """Take one more fact."""
        assert event.seq == self.last_seq + 1, "a log has no gaps"
        self.last_seq = event.seq
        rule = self._RULES.get(type(event))
        if rule is not None:
            rule(self, event)

    @property
    def compacted(self) -> ev.ContextCompacted | None:
        """The summary that the model is sent in place of what came before."""
        return self.compactions[-1] if self.compactions else None

    # -- the session

    def _change(self, event: ev.SessionOpened | ev.SessionChanged) -> None:
        self.settings.take(event)
        if event.title:
            self.titled_by = "" if isinstance(event, ev.SessionOpened) else event.by
            self.titled += 1

    def _prompt(self, event: ev.PromptChanged) -> None:
        if event.blob is None:
            self.prompt.pop(event.part, None)
        else:
            self.prompt[event.part] = event.blob

    # -- what waits for a person

    def _ask_approval(self, event: ev.ApprovalAsked) -> None:
        self.approvals[event.approval_id] = event

    def _answer_approval(self, event: ev.ApprovalAnswered) -> None:
        asked = self.approvals.pop(event.approval_id, None)
        if asked is not None:
            self.answers[event.call_id] = (asked, event.decision)
            if event.decision == "session" and event.follows is None:
                self.granted.append((asked, event.reach))

    def _expire_approval(self, event: ev.ApprovalExpired) -> None:
        self.approvals.pop(event.approval_id, None)

    def _ask(self, event: ev.QuestionAsked) -> None:
        self.questions[event.question_id] = event

    def _end_question(self, event: ev.QuestionAnswered | ev.QuestionExpired) -> None:
        asked = self.questions.pop(event.question_id, None)
        if asked is not None:
            said = event.answer if isinstance(event, ev.QuestionAnswered) else None
            answer = QuestionAnswer((asked.text, asked.choices), said)
            self.question_answers.setdefault(event.call_id, []).append(answer)

    # -- messages

    def _deliver(self, event: ev.MessageDelivered) -> None:
        message = self._accepted[event.message_id]
        self._forget(event.message_id)
        self.history.append(Delivered(event.seq, event.turn_id, message))

    def _withdraw(self, event: ev.MessageWithdrawn | ev.MessageExpired) -> None:
        self._forget(event.message_id)

    def _accept(self, event: ev.MessageAccepted) -> None:
        message = Queued.of(event)
        self._accepted[message.message_id] = message
        if self.turn is not None and event.turn_id == self.turn.turn_id:
            self.steers[message.message_id] = message
        elif event.mode == "interrupt":
            # Its own text comes first: before the steers of the turn that it ends, and the queue.
            self.queue = {message.message_id: message, **self.queue}
        else:
            self.queue[message.message_id] = message

    def _revise(self, event: ev.MessageChanged) -> None:
        message = self._accepted[event.message_id]
        for name in ("turn_id", "mode", "text", "workspace", "attachments"):
            value = getattr(event, name)
            if value is not msgspec.UNSET:
                setattr(message, name, value)
        if not isinstance(event.before, msgspec.UnsetType):
            self.queue = reordered(self.queue, message, event.before)

    def _forget(self, message_id: str) -> None:
        self.queue.pop(message_id, None)
        self.steers.pop(message_id, None)
        self._accepted.pop(message_id, None)

    # -- turns

    def _start(self, event: ev.TurnStarted) -> None:
        first = self._accepted.get(event.message_ids[0]) if event.message_ids else None
        workspace = self.settings.workspace if first is None else first.workspace
        self.turn = OpenTurn(event.turn_id, workspace, copy.copy(self.settings))
        if first is not None:
            self.turn.schema, self.turn.attended = first.schema, first.attended

    def _resume(self, event: ev.TurnResumed) -> None:
        del event
        if (turn := self.turn) is not None:
            turn.resumes = 0 if turn.suspended else turn.resumes + 1
            turn.suspended = False

    def _suspend(self, event: ev.TurnSuspended) -> None:
        if self.turn is not None and self.turn.turn_id == event.turn_id:
            self.turn.suspended = True

    def _cancel(self, event: ev.TurnCancelling) -> None:
        if self.turn is not None and self.turn.turn_id == event.turn_id:
            self.turn.cancelling = event

    def _undo(self, event: ev.TurnUndone) -> None:
        self.undone.add(event.turn_id)
        first = next((each.seq for each in self.history if each.turn_id == event.turn_id), None)
        if first is not None:
            # A summary that tells of it does not hold any more: what was said is read again.
            self.compactions = [each for each in self.compactions if each.up_to < first]

    def _compact(self, event: ev.ContextCompacted) -> None:
        self.compactions.append(event)
        kept, forgotten = without_summed_up(self.history, event)
        if forgotten.isdisjoint(self._undone_later):
            self.history = kept
            self.forgotten |= forgotten

    def remember(self, whole: Fold) -> None:
        """Take back what was forgotten from a fold of the same log that forgot less."""
        assert whole.last_seq == self.last_seq
        self.history, self.forgotten = whole.history, whole.forgotten

    def _finish(self, event: ev.TurnFinished) -> None:
        self.over[event.turn_id] = event.outcome
        if self.turn is None or self.turn.turn_id != event.turn_id:
            return
        self.turn = None
        # Steers that were never delivered become turns of their own, ahead of the queue but
        # behind the text of an interrupt that ended their turn.
        leading = {key: each for key, each in self.queue.items() if each.mode == "interrupt"}
        rest = {key: each for key, each in self.queue.items() if key not in leading}
        self.queue = {**leading, **self.steers, **rest}
        self.steers = {}

    # -- steps and calls

    def _start_step(self, event: ev.StepStarted) -> None:
        if self.turn is not None:
            self.turn.step = event
            self.turn.steps += 1

    def _abandon_step(self, event: ev.StepAbandoned) -> None:
        if self.turn is not None:
            self.turn.step = None
            self.turn.suspended = event.cause == "shutdown"
            if event.asked:
                self.turn.cost = None

    def _reply(self, event: ev.StepReplied) -> None:
        if (turn := self.turn) is not None:
            turn.step = None
            turn.resumes = 0
            self.history.append(Replied(event.turn_id, event))
            self.last_reply = event
            turn.spend(event)

    def _end_nested(self, event: ev.NestedFinished) -> None:
        nested = self.nested.setdefault(event.call_id, NestedSoFar())
        nested.calls += event.calls
        nested.sums, nested.total, nested.completed = event.sums, event.total, event.completed

    def _start_call(self, event: ev.CallStarted) -> None:
        self.nested.pop(event.call_id, None)
        if event.turn_id is None:
            self.person_calls[event.call_id] = event
        elif self.turn is not None:
            self.turn.started[event.call_id] = event

    def _end_call(self, event: ev.CallFinished) -> None:
        self.answers.pop(event.call_id, None)
        self.question_answers.pop(event.call_id, None)
        self.nested.pop(event.call_id, None)
        if event.turn_id is None:
            self.person_calls.pop(event.call_id, None)
        elif self.turn is not None:
            self._finish_call(self.turn, event)

    def _finish_call(self, turn: OpenTurn, event: ev.CallFinished) -> None:
        turn.started.pop(event.call_id, None)
        turn.left_over += event.left_over
        if event.reason != "crash":
            turn.resumes = 0
        if event.reason == "shutdown":
            turn.suspended = True
        last = self.history[-1] if self.history else None
        if isinstance(last, Replied) and any(c.call_id == event.call_id for c in last.reply.calls):
            last.results[event.call_id] = event

    _RULES: ClassVar[Mapping[type[ev.LoggedEvent], Callable[[Any, Any], None]]] = {
        ev.SessionOpened: _change,
        ev.SessionChanged: _change,
        ev.PromptChanged: _prompt,
        ev.ApprovalAsked: _ask_approval,
        ev.ApprovalAnswered: _answer_approval,
        ev.ApprovalExpired: _expire_approval,
        ev.QuestionAsked: _ask,
        ev.QuestionAnswered: _end_question,
        ev.QuestionExpired: _end_question,
        ev.MessageAccepted: _accept,
        ev.MessageChanged: _revise,
        ev.MessageDelivered: _deliver,
        ev.MessageWithdrawn: _withdraw,
        ev.MessageExpired: _withdraw,
        ev.TurnStarted: _start,
        ev.TurnResumed: _resume,
        ev.TurnSuspended: _suspend,
        ev.TurnCancelling: _cancel,
        ev.TurnFinished: _finish,
        ev.TurnUndone: _undo,
        ev.StepStarted: _start_step,
        ev.StepAbandoned: _abandon_step,
        ev.StepReplied: _reply,
        ev.CallStarted: _start_call,
        ev.NestedFinished: _end_nested,
        ev.CallFinished: _end_call,
        ev.ContextCompacted: _compact,
    }
    """All other facts change nothing here. A table, because long logs are folded by it."""
