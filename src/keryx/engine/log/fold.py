"""The state of a session, folded from its log. The same log always gives the same state.

Pure: it applies facts in order and knows nothing of tasks, stores, models or time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import msgspec

from keryx import events as ev
from keryx.engine.log.omitted_history import Branches, without_summarized
from keryx.engine.log.state import (
    Delivered,
    HistoryItem,
    NestedSoFar,
    OpenTurn,
    Queued,
    Replied,
    Requests,
    Settings,
    reordered,
)
from keryx.engine.memory.session_memories import SessionMemories, trust_of_call
from keryx.engine.money.spent import Amount


class Fold(Requests):
    """The state of a session, computed from its log."""

    def __init__(self, session_id: str, undone_later: Collection[str] = ()) -> None:
        """`undone_later`: turns that the log undoes later; summaries of them become invalid."""
        super().__init__()
        self.session_id = session_id
        self._undone_later = undone_later
        self.last_seq = 0
        self.settings = Settings()
        self.titled_by = ""  # who set the title
        self.title_count = 0  # how many titles were set so far
        self.queue: dict[str, Queued] = {}
        """Messages that wait for a turn of their own, in order."""
        self.steers: dict[str, Queued] = {}
        """Messages that wait to join the running turn, in order."""
        self.turn: OpenTurn | None = None
        self.turn_outcomes: dict[str, ev.TurnOutcome] = {}
        self.history: list[HistoryItem] = []
        """Messages and replies, except those that a summary replaces."""
        self.forgotten: set[str] = set()
        """Turns that are not in the history any more, because a summary replaces them."""
        self.last_reply: ev.StepReplied | None = None
        self.branches = Branches()
        self.undone = self.branches.undone
        self.compactions: list[ev.ContextCompacted] = []
        """Valid summaries, each of the history up to a seq; the last one counts."""
        self.changed_files: dict[str, None] = {}
        """The paths of files that were changed, the last one last."""
        self.prompt: dict[str, str] = {}
        self.person_calls: dict[str, ev.CallStarted] = {}
        """Calls of people that started and have not finished."""
        self.amended: dict[str, ev.CallAmended] = {}
        """The changed input of calls that have not finished."""
        self.nested: dict[str, NestedSoFar] = {}
        """The nested calls of running calls, by call."""
        self.loaded: dict[str, None] = {}  # tools that a search has found: the model gets them
        self.parent: ev.ParentCall | None = None  # the call of another session that opened this one
        self.memories = SessionMemories()
        self._accepted: dict[str, Queued] = {}

    def apply(self, event: ev.LoggedEvent) -> None:
        """Apply the next fact."""
        assert event.seq == self.last_seq + 1, "a log has no gaps"
        self.last_seq = event.seq
        handler = self._HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    @property
    def compacted(self) -> ev.ContextCompacted | None:
        """The summary that is sent to the model in place of the history before it."""
        return self.compactions[-1] if self.compactions else None

    # -- the session

    def _change(self, event: ev.SessionOpened | ev.SessionChanged) -> None:
        self.settings.apply(event)
        if isinstance(event, ev.SessionOpened):
            self.parent = event.parent
            self.memories.inherited = 0 if event.fork is None else event.fork.up_to
        if event.title:
            self.titled_by = "" if isinstance(event, ev.SessionOpened) else event.by
            self.title_count += 1

    def _prompt(self, event: ev.PromptChanged) -> None:
        if event.blob is None:
            self.prompt.pop(event.part, None)
        else:
            self.prompt[event.part] = event.blob

    def _load(self, event: ev.ToolsLoaded) -> None:
        self.loaded.update(dict.fromkeys(event.names))

    def _recall(self, event: ev.MemoryRecalled) -> None:
        self.memories.recall(event)

    def _remember(self, event: ev.MemoryChanged) -> None:
        self.memories.remember(event)

    # -- messages

    def _deliver(self, event: ev.MessageDelivered) -> None:
        message = self._accepted[event.message_id]
        self._forget(event)
        memories, self.memories.recalled = self.memories.recalled, ()
        profile = (self.turn or self).settings.memory_profile
        self.history.append(Delivered(event.seq, event.turn_id, message, profile, memories))

    def _accept(self, event: ev.MessageAccepted) -> None:
        self.branches.note_message(event)
        message = Queued.of(event)
        self._accepted[message.message_id] = message
        if self.turn is not None and event.turn_id == self.turn.turn_id:
            self.steers[message.message_id] = message
        elif event.mode == "interrupt":
            # It comes first: before the steers of the turn that it ends, and before the queue.
            self.queue = {message.message_id: message, **self.queue}
        else:
            self.queue[message.message_id] = message

    def _revise(self, event: ev.MessageChanged) -> None:
        message = self._accepted[event.message_id]
        message.apply(event)
        if not isinstance(event.before, msgspec.UnsetType):
            self.queue = reordered(self.queue, message, event.before)

    def _forget(self, event: ev.MessageDelivered | ev.MessageWithdrawn | ev.MessageExpired) -> None:
        for messages in (self.queue, self.steers, self._accepted):
            messages.pop(event.message_id, None)

    # -- turns

    def _start(self, event: ev.TurnStarted) -> None:
        first = self._accepted.get(event.message_ids[0]) if event.message_ids else None
        workspace = self.settings.workspace if first is None else first.workspace
        self.turn = OpenTurn(event.turn_id, workspace, copy.copy(self.settings))
        self.memories.start_turn(self.undone, self.prompt, is_child=self.parent is not None)
        if first is not None:
            self.turn.schema, self.turn.attended = first.schema, first.attended
            self.turn.options = first.options or self.turn.options

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

    def _undo(self, event: ev.TurnUndone | ev.TurnRestored) -> None:
        self.branches.note(event)
        self.memories.in_context.clear()
        first = next((item.seq for item in self.history if item.turn_id == event.turn_id), None)
        if first is not None:
            # A summary of what was before and after the turn is invalid: it is sent in full again.
            self.compactions = [summary for summary in self.compactions if summary.up_to < first]

    def _compact(self, event: ev.ContextCompacted) -> None:
        self.compactions.append(event)
        self.memories.in_context.clear()
        history, forgotten = without_summarized(self.history, event)
        if forgotten.isdisjoint(self._undone_later):
            self.history = history
            self.forgotten |= forgotten

    def restore_history(self, full: Fold) -> None:
        """Take the history from a fold of the same log that still has it."""
        assert full.last_seq == self.last_seq
        self.history, self.forgotten = full.history, full.forgotten

    def _finish(self, event: ev.TurnFinished) -> None:
        self.turn_outcomes[event.turn_id] = event.outcome
        if self.turn is None or self.turn.turn_id != event.turn_id:
            return
        self.memories.end_turn(event.turn_id)
        self.turn = None
        # Steers that were never delivered become turns of their own, before the queue but after
        # the interrupt that ended their turn.
        interrupts = {key: item for key, item in self.queue.items() if item.mode == "interrupt"}
        others = {key: item for key, item in self.queue.items() if key not in interrupts}
        self.queue = {**interrupts, **self.steers, **others}
        self.steers = {}

    # -- steps and calls

    def _start_step(self, event: ev.StepStarted) -> None:
        if self.turn is not None:
            self.turn.step = event
            self.turn.steps += 1

    def _abandon_step(self, event: ev.StepAbandoned) -> None:
        if self.turn is not None:
            self.turn.abandon_step(event)

    def _reply(self, event: ev.StepReplied) -> None:
        if (turn := self.turn) is not None:
            turn.step = None
            turn.resumes = 0
            self.history.append(Replied(event.turn_id, event))
            self.last_reply = event
            turn.spend(event)
            turn.own_amount += Amount.of(event)

    def _end_nested(self, event: ev.NestedFinished) -> None:
        self.nested.setdefault(event.call_id, NestedSoFar()).add(event)

    def _start_call(self, event: ev.CallStarted) -> None:
        self.nested.pop(event.call_id, None)
        if event.turn_id is None:
            self.person_calls[event.call_id] = event
        elif self.turn is not None:
            self.turn.started[event.call_id] = event
            self.memories.lower_trust(trust_of_call(event.effects))

    def _amend_call(self, event: ev.CallAmended) -> None:
        self.amended[event.call_id] = event

    def _end_call(self, event: ev.CallFinished) -> None:
        self.amended.pop(event.call_id, None)
        self.forget_answers(event.call_id)
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

    def _change_file(self, event: ev.FilesChanged) -> None:
        self.changed_files.pop(event.path, None)
        self.changed_files[event.path] = None

    def _record_usage(self, event: ev.UsageRecorded) -> None:
        if self.turn is not None:
            self.turn.note_usage(event)

    _HANDLERS: ClassVar[Mapping[type[ev.LoggedEvent], Callable[[Any, Any], None]]] = {
        ev.SessionOpened: _change,
        ev.SessionChanged: _change,
        ev.PromptChanged: _prompt,
        ev.ApprovalAsked: Requests.ask_approval,
        ev.ApprovalAnswered: Requests.answer_approval,
        ev.ApprovalExpired: Requests.expire_approval,
        ev.QuestionAsked: Requests.ask,
        ev.QuestionAnswered: Requests.end_question,
        ev.QuestionExpired: Requests.end_question,
        ev.MessageAccepted: _accept,
        ev.MessageChanged: _revise,
        ev.MessageDelivered: _deliver,
        ev.MessageWithdrawn: _forget,
        ev.MessageExpired: _forget,
        ev.TurnStarted: _start,
        ev.TurnResumed: _resume,
        ev.TurnSuspended: _suspend,
        ev.TurnCancelling: _cancel,
        ev.TurnFinished: _finish,
        ev.TurnUndone: _undo,
        ev.TurnRestored: _undo,
        ev.StepStarted: _start_step,
        ev.StepAbandoned: _abandon_step,
        ev.StepReplied: _reply,
        ev.CallAmended: _amend_call,
        ev.CallsAnswered: Requests.take_results,
        ev.CallStarted: _start_call,
        ev.NestedFinished: _end_nested,
        ev.CallFinished: _end_call,
        ev.FilesChanged: _change_file,
        ev.ContextCompacted: _compact,
        ev.UsageRecorded: _record_usage,
        ev.ToolsLoaded: _load,
        ev.MemoryRecalled: _recall,
        ev.MemoryChanged: _remember,
    }
    """All other facts change nothing here. A table is fast, and logs can be long."""
