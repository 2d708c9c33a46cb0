"""The turn loop: ask the model, run the calls that it asks for, until it rests.

It appends facts and asks ports; what must happen in which order stands in `run` and `_step`.
Cancelling the turn's scope, or the step's for a steer, reaches the model's stream and all calls;
the loop itself is never cancelled, so every turn that started gets its one terminal fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from keryx import events as ev
from keryx.aio.scope import Reason
from keryx.engine.executor import Batch
from keryx.engine.log import resume_plan
from keryx.engine.log.state import OpenTurn
from keryx.engine.operations.compaction import Compaction
from keryx.engine.session_context import PromptParts, SessionContext
from keryx.engine.turns.auto_compaction import AutoCompaction
from keryx.engine.turns.streaming_reply import StreamingReply
from keryx.engine.turns.turn_log import TurnLog
from keryx.engine.turns.turn_outcome import TurnEnd, cancelled, defect, failure
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
        """Why it cannot run, if so: a defect that came up where nobody could be told."""
        self._resumed = resumed
        self.turn_id = turn_id
        self._log = TurnLog(context, turn_id)
        self._parts = TurnParts(context, turn_id, self._prompt)
        self.scope = context.scope.child(turn_id)
        turn = context.fold.turn
        assert turn is not None
        self._settings = turn.settings
        compact_at = partial(context.compact_at, self._settings.profile)
        self._auto_compaction = AutoCompaction(context.fold, compaction, self.scope, compact_at)
        self._step_scope = self.scope.child("first step")
        """What a steer cuts; there is one at any time, for a steer may come at any time."""
        self._batch: Batch | None = None
        self._has_results = resumed
        self._awaited: dict[str, asyncio.Future[None]] = {}
        self._begun: tuple[Model, StreamingReply] | TurnEnd | None = None
        if context.services.limits.seconds is not None:
            self.scope.cancel_at(self.scope.clock.monotonic() + context.services.limits.seconds)

    # -- what the session tells it

    def begin(self) -> None:
        """Begin the first step now, in the same commit as the message that the turn is for."""
        if self._fault is not None:
            return
        try:
            model = self._model()
            if not (isinstance(model, ModelError) or self._auto_compaction.is_needed(model)):
                self._begun = self._begin_step(model)
        except Exception as error:  # noqa: BLE001 (a defect ends the turn, not whoever sent the message)
            self._fault = error

    def steer(self, *, by: str) -> None:
        """Cut what runs now; the next step begins with the guidance."""
        self._step_scope.cancel("steer", by=by)

    def cancel_call(self, call_id: str, reason: Reason, *, by: str) -> asyncio.Future[None] | None:
        """Cancel one call; the future is done once its outcome is stated. None: it is over."""
        if self._batch is None or not self._batch.holds(call_id):
            return None
        self._batch.cancel(call_id, reason, by=by)
        stated = self._awaited.get(call_id) or asyncio.get_running_loop().create_future()
        if self._batch.asked_for(call_id):
            self._awaited[call_id] = stated
        else:
            stated.set_result(None)  # of a nested call nothing is stated by itself
        return stated

    # -- the loop

    async def run(self) -> None:
        """From the first step, or from where a crash left it, to the one terminal fact."""
        try:
            ending = await self._pick_up()
            while ending is None:
                ending = await self._step()
        except Exception as error:  # noqa: BLE001 (a defect, whatever it is: the turn has its end all the same)
            ending = await self._break_off(error)
        self._finish(ending)
        self._step_scope.close()
        self.scope.close()

    async def _step(self) -> TurnEnd | None:
        begun, self._begun = self._begun, None
        if (ending := self._cancelled()) is not None:
            if isinstance(begun, tuple):
                self._log.abandoned(begun[1].step_id, self.scope.reason or "interrupt")
            return ending
        if begun is None:
            begun = await self._next_step()
        if isinstance(begun, TurnEnd):
            return begun
        model, reply = begun
        if self._has_results:
            # The model sees the outcome of a call only once that is durable.
            await self._context.log.durable()
        error = await self._parts.requests.ask(model, reply, self._step_scope, self._open.schema)
        is_last = error is None and not (reply.calls or self._step_scope.is_cancelled)
        needs_check = is_last and self._open.schema is not None
        misfits = await self._parts.answer_check.misfits(reply.text) if needs_check else []
        return await self._follow(model, reply, error, misfits)

    def _open_step(self, step_id: str) -> None:
        """From here on a steer cuts this step, and not the one before."""
        self._step_scope.close()
        self._step_scope = self.scope.child(step_id)

    def _model(self) -> Model | ModelError:
        try:
            return self._context.services.model(self._settings.model, self._settings.profile)
        except ModelError as error:
            return error

    async def _next_step(self) -> tuple[Model, StreamingReply] | TurnEnd:
        """With room for it: steers that come while something is summed up wait for that."""
        model = self._model()
        if isinstance(model, ModelError):
            return TurnEnd("failed", error=failure(model))
        await self._auto_compaction.make(model)
        return self._cancelled() or self._begin_step(model)

    def _begin_step(self, model: Model) -> tuple[Model, StreamingReply] | TurnEnd:
        """Deliver the steers and state that the model is asked; or why it cannot be."""
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

    async def _follow(
        self, model: Model, reply: StreamingReply, error: ModelError | None, misfits: Sequence[str]
    ) -> TurnEnd | None:
        """Log the reply and do what it asks for."""
        if self._step_scope.is_cancelled:
            self._log_cut(model, reply)
            return self._cancelled()
        if error is not None:
            self._log.abandoned(reply.step_id, "error", asked=reply.has_begun)
            if error.kind == "context_too_long" and await self._auto_compaction.squeeze():
                return self._cancelled()
            return self._cancelled() or TurnEnd("failed", error=failure(error))
        calls = self._log.replied(model, reply).calls
        self._auto_compaction.fitted()
        if calls:
            await self.run_calls(calls)
            return self._cancelled()
        if self._context.fold.steers:
            return None
        return self._parts.answer_check.rest(misfits) if misfits else TurnEnd("completed")

    async def run_calls(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of a step; each outcome is logged as it comes."""
        self._has_results = True
        self._batch = self._context.services.executor.start(
            self._parts.environment, calls, self._step_scope
        )
        async for outcome in self._batch.as_ended():
            self._state(outcome)
        self._batch = None

    def _state(self, outcome: CallOutcome) -> None:
        self._log.ended(outcome, self._parts.hooks.picture(outcome.call_id))
        if (awaited := self._awaited.pop(outcome.call_id, None)) is not None:
            awaited.set_result(None)

    # -- facts

    @property
    def _open(self) -> OpenTurn:
        turn = self._context.fold.turn
        assert turn is not None
        return turn

    def _cancelled(self) -> TurnEnd | None:
        reason = self.scope.reason
        return None if reason is None else cancelled(reason, self._context.services.limits)

    def _log_cut(self, model: Model, reply: StreamingReply) -> None:
        """What was visible is kept; calls that were asked for and not started are dropped."""
        if reply.text and not self._is_stopping():  # a stopped turn asks again when it goes on
            self._log.replied(model, reply, cut=True)
        else:
            cause = self._step_scope.reason or "interrupt"
            self._log.abandoned(reply.step_id, cause, asked=reply.is_asked)

    def _finish(self, ending: TurnEnd) -> None:
        if ending.outcome == "suspended":
            self._log.suspended()
            return
        self._log.finished(ending.outcome, ending.reason, ending.error)

    # -- after a crash

    async def _pick_up(self) -> TurnEnd | None:
        """Close what a crash left open, then run what may be run."""
        if self._fault is not None:
            raise self._fault
        fold = self._context.fold
        if not self._resumed:
            return None
        if resume_plan.plan(fold).doubtful:
            await self._context.services.resume_guard.wait_alone(fold.session_id, self.scope)
        if self._is_stopping():
            # Stopped again at once: no fact is stated, so it counts as no attempt.
            return self._cancelled()
        found = resume_plan.plan(fold)
        if not (found.cancelled or found.parked):
            self._context.log.record(ev.TurnResumed, turn_id=self.turn_id, attempt=found.attempt)
        if found.open_step is not None:
            self._log.abandoned(found.open_step, "crash", asked=True)
        for call in found.lost:
            self._log.lost(call)
        if found.cancelled or found.parked:
            return self._give_up(found)
        if found.to_run:
            await self.run_calls(found.to_run)
        return self._cancelled() if found.rested is None else await self._rest(found.rested)

    async def _rest(self, last_reply: str) -> TurnEnd | None:
        misfits = await self._parts.answer_check.misfits(last_reply)
        return self._cancelled() or self._parts.answer_check.rest(misfits)

    def _is_stopping(self) -> bool:
        return self.scope.reason == "shutdown"

    def _give_up(self, found: resume_plan.Plan) -> TurnEnd:
        """It was being cancelled, or kills its host: nothing of it is run again."""
        cancelling = self._open.cancelling
        reason = None if cancelling is None else cancelling.reason
        self._log.nobody_waits("parent" if reason in (None, "timeout") else reason)
        for call in found.to_run:
            self._log.dropped(call)
        if found.parked:
            return TurnEnd("parked", "no_progress")
        return TurnEnd("cancelled", reason)

    # -- after a defect

    async def _break_off(self, error: Exception) -> TurnEnd:
        """End all that runs and is open of the turn, each with an outcome. The session goes on."""
        self._context.log.raise_if_broken()
        self._context.report(f"turn {self.turn_id}", error)
        self.scope.cancel("parent", by="a defect")
        if self._batch is not None:
            await self._batch.outcomes()
            self._batch = None
        for awaited in self._awaited.values():
            awaited.set_result(None)
        self._awaited.clear()
        self._log.close_open_step()
        self._log.nobody_waits("parent")
        for call in resume_plan.unfinished(self._context.fold):
            self._log.broken_off(call)
        cancelling = self._open.cancelling
        if cancelling is not None:
            return TurnEnd("cancelled", cancelling.reason)
        return TurnEnd("failed", error=defect(error))
