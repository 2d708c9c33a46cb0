"""The turn loop: ask the model, run the calls that it asks for, until it rests.

It appends facts and asks ports; what must happen in which order stands in `run` and `_step`.
Cancelling the turn's scope, or the step's for a steer, reaches the model's stream and all calls;
the loop itself is never cancelled, so every turn that started gets its one terminal fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from keryx import events as ev
from keryx.aio.scope import Reason
from keryx.engine.aside.compaction import Compaction
from keryx.engine.calls.lane import Lane
from keryx.engine.desk import Brief, Desk, mint
from keryx.engine.executor import Batch
from keryx.engine.log import recovery
from keryx.engine.log.state import OpenTurn
from keryx.engine.turns.answer_check import AnswerCheck
from keryx.engine.turns.draft import Draft
from keryx.engine.turns.endings import TurnEnding, cancelled, defect, failure
from keryx.engine.turns.facts import TurnFacts
from keryx.engine.turns.requests import Requests
from keryx.engine.turns.room import Room
from keryx.engine.turns.witness import SessionWitness
from keryx.errors import ModelError
from keryx.messages import CallOutcome, ToolCall
from keryx.ports.model import Model


class Turn:
    """One turn of one session."""

    def __init__(
        self,
        desk: Desk,
        compaction: Compaction,
        turn_id: str,
        brief: Brief,
        *,
        resumed: bool = False,
    ) -> None:
        self._desk = desk
        self._prompt = brief.parts
        self._fault = brief.fault
        """Why it cannot run, if so: a defect that came up where nobody could be told."""
        self._resumed = resumed
        self.turn_id = turn_id
        self._facts = TurnFacts(desk, turn_id)
        self.scope = desk.scope.child(turn_id)
        turn = desk.fold.turn
        assert turn is not None
        self._settings = turn.settings
        self._room = Room(desk, compaction, self.scope, self._settings)
        self._step_scope = self.scope.child("first step")
        """What a steer cuts; there is one at any time, for a steer may come at any time."""
        self._batch: Batch | None = None
        self._has_results = resumed
        self._awaited: dict[str, asyncio.Future[None]] = {}
        self._begun: tuple[Model, Draft] | TurnEnding | None = None
        self._witness = SessionWitness(desk, turn_id)
        self._answer = AnswerCheck(desk, turn_id)
        if desk.around.limits.seconds is not None:
            self.scope.cancel_at(self.scope.clock.monotonic() + desk.around.limits.seconds)

    # -- what the session tells it

    def begin(self) -> None:
        """Begin the first step now, in the same commit as the message that the turn is for."""
        if self._fault is not None:
            return
        try:
            model = self._model()
            if not (isinstance(model, ModelError) or self._room.is_needed(model)):
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

    async def _step(self) -> TurnEnding | None:
        begun, self._begun = self._begun, None
        if (ending := self._cancelled()) is not None:
            if isinstance(begun, tuple):
                self._facts.abandoned(begun[1].step_id, self.scope.reason or "interrupt")
            return ending
        if begun is None:
            begun = await self._next_step()
        if isinstance(begun, TurnEnding):
            return begun
        model, draft = begun
        if self._has_results:
            # The model sees the outcome of a call only once that is durable.
            await self._desk.ledger.durable()
        error = await self._requests.ask(model, draft, self._step_scope, self._open.schema)
        is_last = error is None and not (draft.calls or self._step_scope.is_cancelled)
        misfits = await self._answer.misfits(draft.text) if is_last else []
        return await self._follow(model, draft, error, misfits)

    def _open_step(self, step_id: str) -> None:
        """From here on a steer cuts this step, and not the one before."""
        self._step_scope.close()
        self._step_scope = self.scope.child(step_id)

    def _model(self) -> Model | ModelError:
        try:
            return self._desk.around.model(self._settings.model, self._settings.profile)
        except ModelError as error:
            return error

    async def _next_step(self) -> tuple[Model, Draft] | TurnEnding:
        """With room for it: steers that come while something is summed up wait for that."""
        model = self._model()
        if isinstance(model, ModelError):
            return TurnEnding("failed", error=failure(model))
        await self._room.make(model)
        return self._cancelled() or self._begin_step(model)

    def _begin_step(self, model: Model) -> tuple[Model, Draft] | TurnEnding:
        """Deliver the steers and state that the model is asked; or why it cannot be."""
        ledger, fold = self._desk.ledger, self._desk.fold
        if (limit := self._desk.around.limits.reached(self._open)) is not None:
            return TurnEnding("failed", error=limit)
        for message_id in tuple(fold.steers):
            ledger.record(ev.MessageDelivered, turn_id=self.turn_id, message_id=message_id)
        step_id = mint("p")
        self._open_step(step_id)
        ledger.record(
            ev.StepStarted,
            turn_id=self.turn_id,
            step_id=step_id,
            model=model.name,
            effort=self._settings.effort,
        )
        return model, Draft(self._desk, self.turn_id, step_id)

    async def _follow(
        self, model: Model, draft: Draft, error: ModelError | None, misfits: Sequence[str]
    ) -> TurnEnding | None:
        """Log the reply and do what it asks for."""
        if self._step_scope.is_cancelled:
            self._log_cut(model, draft)
            return self._cancelled()
        if error is not None:
            self._facts.abandoned(draft.step_id, "error", asked=draft.has_begun)
            if error.kind == "context_too_long" and await self._room.squeeze():
                return self._cancelled()
            return self._cancelled() or TurnEnding("failed", error=failure(error))
        calls = self._facts.replied(model, draft).calls
        self._room.fitted()
        if calls:
            await self.run_calls(calls)
            return self._cancelled()
        return None if self._desk.fold.steers else self._answer.rest(misfits)

    async def run_calls(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of a step; each outcome is logged as it comes."""
        self._has_results = True
        self._batch = self._desk.around.executor.start(self._lane, calls, self._step_scope)
        async for outcome in self._batch.as_ended():
            self._state(outcome)
        self._batch = None

    def _state(self, outcome: CallOutcome) -> None:
        self._facts.ended(outcome, self._witness.picture(outcome.call_id))
        if (awaited := self._awaited.pop(outcome.call_id, None)) is not None:
            awaited.set_result(None)

    @cached_property
    def _lane(self) -> Lane:
        return self._desk.lane(self._settings, Path(self._open.workspace), self._witness)

    @cached_property
    def _requests(self) -> Requests:
        tools = tuple(self._lane.tools.values())
        return Requests(self._desk, self._prompt, tools, self._settings.effort)

    # -- facts

    @property
    def _open(self) -> OpenTurn:
        turn = self._desk.fold.turn
        assert turn is not None
        return turn

    def _cancelled(self) -> TurnEnding | None:
        return cancelled(self.scope.reason, self._desk.around.limits)

    def _log_cut(self, model: Model, draft: Draft) -> None:
        """What was visible is kept; calls that were asked for and not started are dropped."""
        if draft.text and not self._is_stopping():  # a stopped turn asks again when it goes on
            self._facts.replied(model, draft, cut=True)
        else:
            cause = self._step_scope.reason or "interrupt"
            self._facts.abandoned(draft.step_id, cause, asked=draft.is_asked)

    def _finish(self, ending: TurnEnding) -> None:
        if ending.outcome == "suspended":
            self._facts.suspended()
            return
        self._facts.finished(ending.outcome, ending.reason, ending.error)

    # -- after a crash

    async def _pick_up(self) -> TurnEnding | None:
        """Close what a crash left open, then run what may be run."""
        if self._fault is not None:
            raise self._fault
        fold = self._desk.fold
        if not self._resumed:
            return None
        if recovery.plan(fold).doubtful:
            await self._desk.around.neighbours.wait_alone(fold.session_id, self.scope)
        if self._is_stopping():
            # Stopped again at once: no fact is stated, so it counts as no attempt.
            return self._cancelled()
        found = recovery.plan(fold)
        if not (found.cancelled or found.parked):
            self._desk.ledger.record(ev.TurnResumed, turn_id=self.turn_id, attempt=found.attempt)
        if found.open_step is not None:
            self._facts.abandoned(found.open_step, "crash", asked=True)
        for call in found.lost:
            self._facts.lost(call)
        if found.cancelled or found.parked:
            return self._give_up(found)
        if found.to_run:
            await self.run_calls(found.to_run)
        return self._cancelled() if found.rested is None else await self._rest(found.rested)

    async def _rest(self, last_reply: str) -> TurnEnding | None:
        misfits = await self._answer.misfits(last_reply)
        return self._cancelled() or self._answer.rest(misfits)

    def _is_stopping(self) -> bool:
        return self.scope.reason == "shutdown"

    def _give_up(self, found: recovery.Plan) -> TurnEnding:
        """It was being cancelled, or kills its host: nothing of it is run again."""
        cancelling = self._open.cancelling
        reason = None if cancelling is None else cancelling.reason
        self._facts.nobody_waits("parent" if reason in (None, "timeout") else reason)
        for call in found.to_run:
            self._facts.dropped(call)
        if found.parked:
            return TurnEnding("parked", "no_progress")
        return TurnEnding("cancelled", reason)

    # -- after a defect

    async def _break_off(self, error: Exception) -> TurnEnding:
        """End all that runs and is open of the turn, each with an outcome. The session goes on."""
        self._desk.ledger.raise_if_broken()
        self._desk.report(f"turn {self.turn_id}", error)
        self.scope.cancel("parent", by="a defect")
        if self._batch is not None:
            await self._batch.outcomes()
            self._batch = None
        for awaited in self._awaited.values():
            awaited.set_result(None)
        self._awaited.clear()
        self._facts.close_open_step()
        self._facts.nobody_waits("parent")
        for call in recovery.unfinished(self._desk.fold):
            self._facts.broken_off(call)
        cancelling = self._open.cancelling
        if cancelling is not None:
            return TurnEnding("cancelled", cancelling.reason)
        return TurnEnding("failed", error=defect(error))
