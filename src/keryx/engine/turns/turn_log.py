"""Logs what happens in a turn: one method for each kind of fact."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Literal

from keryx import events as ev
from keryx.engine.approvals.requests import Request, expire
from keryx.engine.live.nested_log import crash_note, nested_calls_blob
from keryx.engine.session_context import SessionContext
from keryx.engine.turns.streaming_reply import StreamingReply
from keryx.ids import new_id
from keryx.messages import CallOutcome, Reason, ToolCall
from keryx.ports.model import Model

DEFECT: Final = "internal error"


class TurnLog:
    """Logs the facts of one turn, or of a call that a person runs (no turn id)."""

    def __init__(self, context: SessionContext, turn_id: str | None) -> None:
        self._context = context
        self._turn_id = turn_id

    def replied(self, model: Model, reply: StreamingReply, *, cut: bool = False) -> ev.StepReplied:
        """Log the reply; if it was cut, only its visible text."""
        calls = () if cut else reply.calls
        finished = reply.finished
        usage = None if finished is None else finished.usage
        log, turn = self._context.log, self._context.fold.turn
        assert turn is not None
        record = log.record_with_next if calls else log.record
        return record(
            ev.StepReplied,
            turn_id=self._turn_id,
            step_id=reply.step_id,
            text=reply.text,
            reasoning="" if cut else reply.reasoning,
            opaque=() if cut else reply.opaque,
            calls=calls,
            usage=usage,
            cost=None if finished is None else finished.cost,
            context=ev.ContextSize(
                window=model.window,
                compact_at=self._context.compact_at(turn.settings.profile, model),
                last_prompt_tokens=None if usage is None else usage.input_tokens,
            ),
            stop_reason=None if finished is None else finished.stop_reason,
            cut=cut,
            first_token=reply.first_token,
        )

    def abandoned(self, step_id: str, cause: ev.AbandonCause, *, was_asked: bool = False) -> None:
        """Log that a step ends without a reply."""
        self._context.log.record(
            ev.StepAbandoned, turn_id=self._turn_id, step_id=step_id, cause=cause, asked=was_asked
        )

    def close_open_step(self) -> None:
        """Abandon the step that waited for its reply when a defect came."""
        turn = self._context.fold.turn
        if turn is not None and turn.step is not None:
            self.abandoned(turn.step.step_id, "error", was_asked=True)

    def suspended(self) -> None:
        """Log that the turn goes on after a restart, unless another fact says so already."""
        turn = self._context.fold.turn
        if turn is not None and not turn.suspended:
            self._context.log.record(ev.TurnSuspended, turn_id=self._turn_id)

    def ended(self, outcome: CallOutcome, nested: ev.NestedSummary | None = None) -> None:
        """Log how a call ended, with its nested calls."""
        self._context.log.record(
            ev.CallFinished,
            turn_id=self._turn_id,
            call_id=outcome.call_id,
            tool=outcome.tool,
            outcome=outcome.outcome,
            reason=outcome.reason,
            started=outcome.started,
            result=outcome.content,
            duration=outcome.duration,
            left_over=outcome.left_over,
            overlaps=outcome.overlaps,
            nested=nested,
            hooks=outcome.hooks,
        )

    def lost(self, call: ToolCall) -> None:
        """Log that a crash interrupted a running call: it is unknown how far it came."""
        self._lost(call, "crash")

    def _lost(self, call: ToolCall, reason: str) -> None:
        """Log a lost call, with those of its nested calls that were logged."""
        nested = self._context.fold.nested.get(call.call_id)
        summary, content = None, ()
        if nested is not None:
            content = (crash_note(nested),)
            blob = nested_calls_blob(nested.calls, nested.sums)
            self._context.log.keep(blob)
            summary = ev.NestedSummary(
                calls=nested.total, completed=nested.completed, blob=blob.hash
            )
        self._expire_nested_requests(call.call_id)
        outcome = CallOutcome(
            call.call_id, call.tool, "unknown", reason=reason, started=True, content=content
        )
        self.ended(outcome, summary)

    def dropped(self, call: ToolCall) -> None:
        """Log that a call will never start."""
        self.ended(CallOutcome(call.call_id, call.tool, "cancelled", reason="crash"))

    def broken_off(self, call: ToolCall) -> None:
        """Log the end of a call whose turn ended with a defect."""
        turn = self._context.fold.turn
        if turn is not None and call.call_id in turn.started:
            self._lost(call, DEFECT)
        else:
            self.ended(CallOutcome(call.call_id, call.tool, "cancelled", reason=DEFECT))

    def expire_requests(self, cause: ev.Expiry) -> None:
        """Expire all open requests of the turn."""
        self._expire(cause, lambda request: request.turn_id == self._turn_id)

    def _expire_nested_requests(self, call_id: str) -> None:
        """Expire the open requests of the calls of a lost container."""
        self._expire("parent", lambda request: request.call_id.startswith(f"{call_id}."))

    def _expire(self, cause: ev.Expiry, matches: Callable[[Request], bool]) -> None:
        fold, log = self._context.fold, self._context.log
        for request in (*fold.approvals.values(), *fold.questions.values()):
            if matches(request):
                expire(fold, log, request, cause)

    def finished(
        self,
        outcome: ev.TurnOutcome,
        reason: Reason | Literal["no_progress"] | None,
        error: ev.TurnError | None,
    ) -> None:
        """Log that the turn is over. Steers that came too late get turns of their own."""
        turn, undelivered = self._context.fold.turn, tuple(self._context.fold.steers)
        assert turn is not None
        self._context.log.record(
            ev.TurnFinished,
            turn_id=self._turn_id,
            outcome=outcome,
            reason=reason,
            error=error,
            usage=turn.usage,
            cost=turn.cost,
            left_over=self._still_running(turn.left_over),
        )
        for message_id in undelivered:
            self._context.log.record(
                ev.MessageChanged, message_id=message_id, by="keryx", turn_id=new_id("t")
            )

    def _still_running(self, left_over: Collection[str]) -> tuple[str, ...]:
        if not left_over:
            return ()
        running = self._context.services.executor.left_over
        return tuple(call_id for call_id in left_over if call_id in running)
