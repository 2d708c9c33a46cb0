"""The turn loop: ask the model, run the calls that it asks for, until it has finished.

`run` and `_step` show what happens in which order. Cancelling the turn's scope, or the step's scope
for a steer, reaches the model's stream and all calls. The loop itself is never cancelled, so every
turn that started gets its one terminal fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from keryx import events as ev
from keryx.aio.scope import Reason
from keryx.engine.log import resume_plan
from keryx.engine.log.state import OpenTurn
from keryx.engine.operations.compaction import Compaction
from keryx.engine.session_context import PromptParts, SessionContext
from keryx.engine.steps.batch import Batch
from keryx.engine.turns.auto_compaction import AutoCompaction
from keryx.engine.turns.streaming_reply import StreamingReply
from keryx.engine.turns.turn_log import TurnLog
from keryx.engine.turns.turn_outcome import TurnEnd, cancelled, defect, failure, refusal
from keryx.engine.turns.turn_parts import TurnParts
from keryx.errors import ModelError
from keryx.ids import new_id
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.model import Model


class Turn:
    """One turn of one session."""

    def __init__(
        self,
        context: SessionContext,
        compaction: Compaction,
        turn_id: str,
        prompt_parts: PromptParts,
        *,
        resumed: bool = False,
    ) -> None:
        self._context = context
        self._prompt = prompt_parts.parts
        self._fault = prompt_parts.fault
        """A defect from before the turn ran; it ends the turn. None if there was none."""
        self._is_resumed = resumed
        self.turn_id = turn_id
        self._log = TurnLog(context, turn_id)
        self._parts = TurnParts(context, turn_id, self._prompt)
        self.scope = context.scope.child(turn_id)
        self._settings = self._open.settings
        compact_at = partial(context.compact_at, self._settings.profile)
        self._auto_compaction = AutoCompaction(context.fold, compaction, self.scope, compact_at)
        self._step_scope = self.scope.child("first step")
        """The scope that a steer cancels. It always exists, since a steer may come at any time."""
        self._batch: Batch | None = None
        self._has_results = resumed
        self._cancelled_calls: dict[str, asyncio.Future[None]] = {}
        self._first_step: tuple[Model, StreamingReply] | TurnEnd | None = None
        if context.services.limits.seconds is not None:
            self.scope.cancel_at(self.scope.clock.monotonic() + context.services.limits.seconds)

    # -- the interface for the session

    def begin(self) -> None:
        """Begin the first step now, in the same commit as the message that the turn is for."""
        if self._fault is not None:
            return
        try:
            model = self._model()
            has_budget, summary = self._context.has_budget, self._auto_compaction
            if not (isinstance(model, ModelError) or has_budget or summary.is_needed(model)):
                self._first_step = self._begin_step(model)
        except Exception as error:  # noqa: BLE001 (a defect ends the turn, not the sender of the message)
            self._fault = error

    def steer(self, *, by: str) -> None:
        """Cancel the current step; the next one begins with the steering message."""
        self._step_scope.cancel("steer", by=by)

    def cancel_call(self, call_id: str, reason: Reason, *, by: str) -> asyncio.Future[None] | None:
        """Cancel one call; the future is done once its outcome is logged. None: it has ended."""
        if self._batch is None or not self._batch.holds(call_id):
            return None
        self._batch.cancel(call_id, reason, by=by)
        logged = self._cancelled_calls.get(call_id) or asyncio.get_running_loop().create_future()
        if self._batch.is_step_call(call_id):
            self._cancelled_calls[call_id] = logged
        else:
            logged.set_result(None)  # the outcome of a nested call is not logged by itself
        return logged

    # -- the loop

    async def run(self) -> None:
        """Run the turn, from its first step or from where a crash left it, to its terminal fact."""
        try:
            ending = await self._resume()
            while ending is None:
                ending = await self._step()
        except Exception as error:  # noqa: BLE001 (a defect, whatever it is: the turn ends all the same)
            ending = await self._end_after_defect(error)
        self._finish(ending)
        self._step_scope.close()
        self.scope.close()

    async def _step(self) -> TurnEnd | None:
        step, self._first_step = self._first_step, None
        if (ending := self._cancelled()) is not None:
            if isinstance(step, tuple):
                self._log.abandoned(step[1].step_id, self.scope.reason or "interrupt")
            return ending
        if step is None:
            step = await self._next_step()
        if isinstance(step, TurnEnd):
            return step
        model, reply = step
        if self._has_results:
            # The model sees the outcome of a call only once that is durable.
            await self._context.log.wait_durable()
        error = await self._parts.requests.ask(model, reply, self._step_scope, self._open.schema)
        is_last = error is None and not (reply.calls or self._step_scope.is_cancelled)
        needs_check = is_last and self._open.schema is not None
        problems = await self._parts.answer_check.check(reply.text) if needs_check else []
        return await self._handle_reply(model, reply, error, problems)

    def _open_step(self, step_id: str) -> None:
        """Begin a new step scope: from now on a steer cancels this step."""
        self._step_scope.close()
        self._step_scope = self.scope.child(step_id)

    def _model(self) -> Model | ModelError:
        try:
            return self._context.services.model(self._settings.model, self._settings.profile)
        except ModelError as error:
            return error

    async def _next_step(self) -> tuple[Model, StreamingReply] | TurnEnd:
        """Compact if needed, then begin a step. Steers wait for the compaction."""
        model = self._model()
        if not isinstance(model, ModelError):
            await self._auto_compaction.compact_if_needed(model)
            model = await refusal(self._context.check_budget) or model
        if isinstance(model, ModelError):
            return self._cancelled() or TurnEnd("failed", error=failure(model))
        return self._cancelled() or self._begin_step(model)

    def _begin_step(self, model: Model) -> tuple[Model, StreamingReply] | TurnEnd:
        """Deliver the steers and log the new step; end the turn if a limit is reached."""
        log, fold = self._context.log, self._context.fold
        if (limit := self._context.services.limits.reached(self._open)) is not None:
            return TurnEnd("failed", error=limit)
        for message_id in tuple(fold.steers):
            log.record(ev.MessageDelivered, turn_id=self.turn_id, message_id=message_id)
        step_id = new_id("p")
        self._open_step(step_id)
        log.record(
            ev.StepStarted,
            turn_id=self.turn_id,
            step_id=step_id,
            model=model.name,
            effort=self._settings.effort,
        )
        return model, StreamingReply(self._context, self.turn_id, step_id)

    async def _handle_reply(
        self, model: Model, reply: StreamingReply, error: ModelError | None, problems: Sequence[str]
    ) -> TurnEnd | None:
        """Log the reply and do what it asks for."""
        if self._step_scope.is_cancelled:
            self._log_cancelled_reply(model, reply)
            return self._cancelled()
        if error is not None:
            self._log.abandoned(reply.step_id, "error", was_asked=reply.has_begun)
            if error.kind == "context_too_long" and await self._auto_compaction.compact_all():
                return self._cancelled()
            return self._cancelled() or TurnEnd("failed", error=failure(error))
        calls = self._log.replied(model, reply).calls
        self._auto_compaction.note_reply()
        if calls:
            await self.run_calls(calls)
            return self._cancelled()
        if self._context.fold.steers:
            return None
        return self._parts.answer_check.ending(problems)

    async def run_calls(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of a step; each outcome is logged as the call ends."""
        self._has_results = True
        self._batch = self._context.services.executor.start(
            self._parts.environment, calls, self._step_scope
        )
        async for outcome in self._batch.as_ended():
            self._log_outcome(outcome)
        self._batch = None

    def _log_outcome(self, outcome: CallOutcome) -> None:
        fold = self._context.fold
        if outcome.reason == "shutdown" and resume_plan.goes_on_later(fold, outcome.call_id):
            return
        self._log.ended(outcome, self._parts.hooks.nested_summary(outcome.call_id))
        if (logged := self._cancelled_calls.pop(outcome.call_id, None)) is not None:
            logged.set_result(None)

    # -- facts

    @property
    def _open(self) -> OpenTurn:
        turn = self._context.fold.turn
        assert turn is not None
        return turn

    def _cancelled(self) -> TurnEnd | None:
        reason = self.scope.reason
        return None if reason is None else cancelled(reason, self._context.services.limits)

    def _log_cancelled_reply(self, model: Model, reply: StreamingReply) -> None:
        """Log the visible text of a cancelled reply; its calls are dropped."""
        if reply.text and not self._is_stopping():  # a suspended turn asks again when it is resumed
            self._log.replied(model, reply, cut=True)
        else:
            cause = self._step_scope.reason or "interrupt"
            self._log.abandoned(reply.step_id, cause, was_asked=reply.was_sent)

    def _finish(self, ending: TurnEnd) -> None:
        if ending.outcome == "suspended":
            self._log.suspended()
            return
        self._log.finished(ending.outcome, ending.reason, ending.error)

    # -- after a crash

    async def _resume(self) -> TurnEnd | None:
        """Close what a crash left open, then run the calls that may run."""
        if self._fault is not None:
            raise self._fault
        fold = self._context.fold
        if not self._is_resumed:
            return None
        if resume_plan.plan(fold).doubtful:
            await self._context.services.resume_guard.wait_alone(fold.session_id, self.scope)
        if self._is_stopping():
            # It is stopped again at once: nothing is logged, so this does not count as an attempt.
            return self._cancelled()
        plan = resume_plan.plan(fold)
        if not (plan.cancelled or plan.parked):
            self._context.log.record(ev.TurnResumed, turn_id=self.turn_id, attempt=plan.attempt)
        if plan.open_step is not None:
            self._log.abandoned(plan.open_step, "crash", was_asked=True)
        for call in plan.lost:
            self._log.lost(call)
        if plan.cancelled or plan.parked:
            return self._give_up(plan)
        if plan.to_run:
            await self.run_calls(plan.to_run)
        return (
            self._cancelled() if plan.final_text is None else await self._end_with(plan.final_text)
        )

    async def _end_with(self, last_reply: str) -> TurnEnd | None:
        problems = await self._parts.answer_check.check(last_reply)
        return self._cancelled() or self._parts.answer_check.ending(problems)

    def _is_stopping(self) -> bool:
        return self.scope.reason == "shutdown"

    def _give_up(self, plan: resume_plan.Plan) -> TurnEnd:
        """End a turn that was being cancelled, or kills its host: nothing is run again."""
        cancelling = self._open.cancelling
        reason = None if cancelling is None else cancelling.reason
        self._log.expire_requests("parent" if reason in (None, "timeout") else reason)
        for call in plan.to_run:
            self._log.dropped(call)
        if plan.parked:
            return TurnEnd("parked", "no_progress")
        return TurnEnd("cancelled", reason)

    # -- after a defect

    async def _end_after_defect(self, error: Exception) -> TurnEnd:
        """End the turn after a defect, and all its calls, each with an outcome."""
        self._context.log.raise_if_broken()
        self._context.report(f"turn {self.turn_id}", error)
        self.scope.cancel("parent", by="a defect")
        if self._batch is not None:
            await self._batch.outcomes()
            self._batch = None
        for logged in self._cancelled_calls.values():
            logged.set_result(None)
        self._cancelled_calls.clear()
        self._log.close_open_step()
        self._log.expire_requests("parent")
        for call in resume_plan.unfinished(self._context.fold):
            self._log.broken_off(call)
        cancelling = self._open.cancelling
        if cancelling is not None:
            return TurnEnd("cancelled", cancelling.reason)
        return TurnEnd("failed", error=defect(error))
