"""How a turn says what happened: one method for each fact that it states."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Literal

from keryx import events as ev
from keryx.engine.live.nested_log import after_a_crash, picture_blob
from keryx.engine.session_context import SessionContext
from keryx.engine.turns.streaming_reply import StreamingReply
from keryx.ids import new_id
from keryx.messages import CallOutcome, Reason, ToolCall
from keryx.ports.model import Model

DEFECT: Final = "internal error"

_Asked = ev.ApprovalAsked | ev.QuestionAsked


class TurnLog:
    """States the facts of one turn; without a turn, those of a call that a person runs."""

    def __init__(self, context: SessionContext, turn_id: str | None) -> None:
        self._context = context
        self._turn_id = turn_id

    def replied(self, model: Model, reply: StreamingReply, *, cut: bool = False) -> ev.StepReplied:
        """The reply; of one that was cut, only what was visible."""
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
        )

    def abandoned(self, step_id: str, cause: ev.AbandonCause, *, asked: bool = False) -> None:
        """The reply is given up and leaves no message."""
        self._context.log.record(
            ev.StepAbandoned, turn_id=self._turn_id, step_id=step_id, cause=cause, asked=asked
        )

    def close_open_step(self) -> None:
        """A defect came while the reply was awaited."""
        turn = self._context.fold.turn
        if turn is not None and turn.step is not None:
            self.abandoned(turn.step.step_id, "error", asked=True)

    def suspended(self) -> None:
        """The host stops, and the turn goes on later; said once, in whatever fact says it."""
        turn = self._context.fold.turn
        if turn is not None and not turn.suspended:
            self._context.log.record(ev.TurnSuspended, turn_id=self._turn_id)

    def ended(self, outcome: CallOutcome, nested: ev.NestedSummary | None = None) -> None:
        """How a call ended, and what it called in turn."""
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
        )

    def lost(self, call: ToolCall) -> None:
        """A crash came while it ran, and nobody can tell how far it got."""
        self._lost(call, "crash")

    def _lost(self, call: ToolCall, reason: str) -> None:
        """What it had called itself, and the log knows of, is kept with it."""
        nested = self._context.fold.nested.get(call.call_id)
        summary, content = None, ()
        if nested is not None:
            content = (after_a_crash(nested),)
            blob = picture_blob(nested.calls, nested.sums)
            self._context.log.keep(blob)
            summary = ev.NestedSummary(
                calls=nested.total, completed=nested.completed, blob=blob.hash
            )
        self._nobody_waits_in(call.call_id)
        outcome = CallOutcome(
            call.call_id, call.tool, "unknown", reason=reason, started=True, content=content
        )
        self.ended(outcome, summary)

    def dropped(self, call: ToolCall) -> None:
        """It was asked for and will never start."""
        self.ended(CallOutcome(call.call_id, call.tool, "cancelled", reason="crash"))

    def broken_off(self, call: ToolCall) -> None:
        """A defect ended its turn; it runs no more, or nobody can tell."""
        turn = self._context.fold.turn
        if turn is not None and call.call_id in turn.started:
            self._lost(call, DEFECT)
        else:
            self.ended(CallOutcome(call.call_id, call.tool, "cancelled", reason=DEFECT))

    def nobody_waits(self, cause: ev.Expiry) -> None:
        """What the turn asked people is pointless now."""
        self._expire(cause, lambda asked: asked.turn_id == self._turn_id)

    def _nobody_waits_in(self, call_id: str) -> None:
        """What the calls of a lost container asked is pointless now."""
        self._expire("parent", lambda asked: asked.call_id.startswith(f"{call_id}."))

    def _expire(self, cause: ev.Expiry, is_pointless: Callable[[_Asked], bool]) -> None:
        fold, log = self._context.fold, self._context.log
        for asked in [*filter(is_pointless, fold.approvals.values())]:
            log.record(
                ev.ApprovalExpired,
                turn_id=self._turn_id,
                approval_id=asked.approval_id,
                call_id=asked.call_id,
                cause=cause,
            )
        for asked in [*filter(is_pointless, fold.questions.values())]:
            log.record(
                ev.QuestionExpired,
                turn_id=self._turn_id,
                question_id=asked.question_id,
                call_id=asked.call_id,
                cause=cause,
            )

    def finished(
        self,
        outcome: ev.TurnOutcome,
        reason: Reason | Literal["no_progress"] | None,
        error: ev.TurnError | None,
    ) -> None:
        """The turn is over. Steers that came too late for it get turns of their own."""
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
