"""Cancels a turn, running or queued, or one call. A cancel reaches its scope when it is read.

Only its answer waits for the commit: after that, not even a crash resumes what was cancelled.
"""

from __future__ import annotations

import asyncio

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.log.state import Queued
from keryx.engine.operations.user_calls import UserCalls
from keryx.engine.turns.turn_queue import TurnQueue
from keryx.messages import Reason
from keryx.ports.dispatch import Done


class Cancels:
    """Handles the cancels of one session."""

    def __init__(
        self,
        fold: Fold,
        log: LogWriter,
        turn_queue: TurnQueue,
        dedup: Dedup,
        user_calls: UserCalls,
    ) -> None:
        self._fold = fold
        self._log = log
        self._turn_queue = turn_queue
        self._dedup = dedup
        self._user_calls = user_calls

    async def turn(self, command: cm.CancelTurn) -> Done:
        fold, turn, row = self._fold, self._turn_queue.turn, row_of(command)
        if fold.turn is not None and fold.turn.turn_id == command.turn_id:
            if self.log(command.turn_id, command.reason, command.by):
                self._dedup.take(row)
            if turn is not None:
                turn.scope.cancel(command.reason, by=command.by)
        elif (message := self._queued_for(command.turn_id)) is not None:
            self._cancel_before_start(message, command)
            self._dedup.take(row)
        else:
            # Even "it is over already" is answered only when that is durable.
            return await self._answer(done=await self._dedup.was_taken(row))
        return await self._answer(done=True)

    def log(self, turn_id: str, reason: Reason, by: str) -> bool:
        """Log that the running turn is being cancelled, so that it is not resumed after a crash."""
        turn = self._fold.turn
        if turn is None or turn.cancelling is not None:
            return False
        self._log.record(ev.TurnCancelling, turn_id=turn_id, reason=reason, by=by)
        return True

    def _queued_for(self, turn_id: str) -> Queued | None:
        return next((m for m in self._fold.queue.values() if m.turn_id == turn_id), None)

    def _cancel_before_start(self, message: Queued, command: cm.CancelTurn) -> None:
        log, turn_id = self._log, command.turn_id
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
        """Cancel a call. Answer once its outcome is durable: nothing else is logged."""
        turn, call_id = self._turn_queue.turn, command.call_id
        ended = self._user_calls.cancel(call_id, command.reason, by=command.by)
        if ended is None and turn is not None:
            ended = turn.cancel_call(call_id, command.reason, by=command.by)
        if ended is None:
            return Done(False)
        await asyncio.shield(ended)
        return await self._answer(done=True)

    async def _answer(self, *, done: bool) -> Done:
        await self._log.wait_durable()
        return Done(done)
