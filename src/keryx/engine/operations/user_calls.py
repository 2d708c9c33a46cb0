"""Calls that a person runs, with no model: accepted, run, and logged like any other.

Such a command waits in the store's inbox until its call has ended, so a crash in between loses
nothing: whoever owns the session next finds it there. A call that had started is not run again
unless its tool says that this is safe.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.calls.call_outcome import failed
from keryx.engine.executor import Batch
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.session_context import SessionContext
from keryx.engine.turns.session_hooks import SessionHooks
from keryx.engine.turns.turn_log import TurnLog
from keryx.errors import KeyReusedError
from keryx.messages import CallOutcome, Reason, ToolCall
from keryx.ports.dispatch import Done
from keryx.ports.store import InboxRow
from keryx.ports.workers import described


class _Running(msgspec.Struct, frozen=True, eq=False):
    """A call that a person runs, until its outcome is stated."""

    row: InboxRow
    batch: Batch
    stated: asyncio.Future[None]


class UserCalls:
    """The calls that people run in one session."""

    def __init__(self, context: SessionContext, dedup: Dedup) -> None:
        self._context = context
        self._dedup = dedup
        self._facts = TurnLog(context, None)
        self._running: dict[str, _Running] = {}

    async def run(self, command: cm.RunCall) -> Done:
        """Accept a call; returns once that is durable, not once it has ended."""
        row = row_of(command)
        under_way = self._running.get(command.call_id)
        if under_way is not None and under_way.row != row:
            raise KeyReusedError(f"the call {command.call_id!r} runs already, and is another one")
        if under_way is not None or await self._dedup.was_taken(row):
            return Done(True)
        await self._dedup.leave_pending(row)
        started = self._context.fold.person_calls.get(command.call_id)
        if started is not None and started.replay == "never":
            self._facts.lost(ToolCall(command.call_id, command.tool, command.arguments))
            self._dedup.take(row)
        else:
            self._start(command, row)
        return Done(True)

    def cancel(self, call_id: str, reason: Reason, *, by: str) -> asyncio.Future[None] | None:
        """Cancel such a call, or one that it made itself.

        The future is done once the outcome is stated. None: there is no such call, or it is over.
        """
        for running in self._running.values():
            if running.batch.cancel(call_id, reason, by=by):
                if running.batch.asked_for(call_id):
                    return running.stated
                stated: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                stated.set_result(None)  # of a nested call nothing is stated by itself
                return stated
        return None

    async def wait_ended(self) -> None:
        """Return once none is under way."""
        for running in tuple(self._running.values()):
            await asyncio.shield(running.stated)

    def _start(self, command: cm.RunCall, row: InboxRow) -> None:
        context, settings = self._context, self._context.fold.settings
        hooks = SessionHooks(context, None, by=command.by, attended=command.attended)
        workspace = Path(command.workspace or settings.workspace)
        call = ToolCall(command.call_id, command.tool, command.arguments)
        try:
            environment = context.environment(settings, workspace, hooks)
            batch = context.services.executor.start(
                environment, [call], context.scope.child(command.call_id)
            )
        except Exception as error:  # noqa: BLE001 (a defect: the call ends with it, and the session goes on)
            context.report(f"call {command.call_id}", error)
            self._end(command, failed(command.call_id, command.tool, described(error)))
            return
        running = _Running(row, batch, asyncio.get_running_loop().create_future())
        self._running[command.call_id] = running
        context.group.start(self._wait(command, running, hooks), name=f"call {command.call_id}")

    async def _wait(self, command: cm.RunCall, running: _Running, hooks: SessionHooks) -> None:
        try:
            (outcome,) = await running.batch.outcomes()
            # One that a stop kept from starting is still in the inbox, and runs at the next start.
            if outcome.started or outcome.reason != "shutdown":
                self._end(command, outcome, hooks.picture(command.call_id))
        finally:
            del self._running[command.call_id]
            running.stated.set_result(None)

    def _end(
        self,
        command: cm.RunCall,
        outcome: CallOutcome,
        nested: ev.NestedSummary | None = None,
    ) -> None:
        self._facts.ended(outcome, nested)
        self._dedup.take(row_of(command))
