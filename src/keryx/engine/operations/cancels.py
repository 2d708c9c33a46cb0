"""Ending a turn, started or not, or one call. A cancel reaches its scope when it is read.

Only its answer waits for the commit: from then on no crash revives what was cancelled.
"""

from __future__ import annotations

import asyncio

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.log.state import Queued
from keryx.engine.operations.user_calls import UserCalls
from keryx.engine.session_context import SessionContext
from keryx.engine.turns.turn_queue import TurnQueue
from keryx.messages import Reason
from keryx.ports.dispatch import Done


class Cancels:
    """Takes the cancels of one session."""

    def __init__(
        self, context: SessionContext, turn_queue: TurnQueue, dedup: Dedup, person_calls: UserCalls
    ) -> None:
        self._context = context
        self._turn_queue = turn_queue
        self._dedup = dedup
        self._person_calls = person_calls

    async def turn(self, command: cm.CancelTurn) -> Done:
        fold, turn, row = self._context.fold, self._turn_queue.turn, row_of(command)
        if fold.turn is not None and fold.turn.turn_id == command.turn_id:
            if self.log(command.turn_id, command.reason, command.by):
                self._dedup.take(row)
            if turn is not None:
                turn.scope.cancel(command.reason, by=command.by)
        elif (message := self._queued_for(command.turn_id)) is not None:
            self._cancel_before_start(message, command)
            self._dedup.take(row)
        else:
            # Also that it is over is said only once that is durable.
            return await self._durably(done=await self._dedup.was_taken(row))
        return await self._durably(done=True)

    def log(self, turn_id: str, reason: Reason, by: str) -> bool:
        """Log that the turn under way is being cancelled, so that no crash revives it."""
        turn = self._context.fold.turn
        if turn is None or turn.cancelling is not None:
            return False
        self._context.log.record(ev.TurnCancelling, turn_id=turn_id, reason=reason, by=by)
        return True

    def _queued_for(self, turn_id: str) -> Queued | None:
        return next((m for m in self._context.fold.queue.values() if m.turn_id == turn_id), None)

    def _cancel_before_start(self, message: Queued, command: cm.CancelTurn) -> None:
        log, turn_id = self._context.log, command.turn_id
        log.record(ev.TurnCancelling, turn_id=turn_id, reason=command.reason, by=command.by)
        log.record(
            ev.MessageExpired,
            turn_id=turn_id,
            message_id=message.message_id,
            cause=command.reason,
        )
        log.record(
            ev.TurnFinished,
            turn_id=turn_id,
            outcome="cancelled",
            reason=command.reason,
            started=False,
            usage=ev.Usage(),
            cost=0.0,
        )

    async def call(self, command: cm.CancelCall) -> Done:
        """Its outcome is the durable sign of it, so the answer waits for that."""
        turn, call_id = self._turn_queue.turn, command.call_id
        ended = self._person_calls.cancel(call_id, command.reason, by=command.by)
        if ended is None and turn is not None:
            ended = turn.cancel_call(call_id, command.reason, by=command.by)
        if ended is None:
            return Done(False)
        await asyncio.shield(ended)
        return await self._durably(done=True)

    async def _durably(self, *, done: bool) -> Done:
        await self._context.log.durable()
        return Done(done)
