"""Calls that a person runs, without a model: accepted, run, and logged like any other call.

Such a command waits in the store's inbox until its call has ended, so a crash in between loses
nothing: the next owner of the session finds it there. A call that had started is run again only if
its tool says that this is safe.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.calls.call_outcome import failed
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.session_context import SessionContext
from keryx.engine.steps.batch import Batch
from keryx.engine.turns.session_hooks import SessionHooks
from keryx.engine.turns.turn_log import TurnLog
from keryx.errors import KeyReusedError
from keryx.messages import CallOutcome, Reason, ToolCall
from keryx.ports.dispatch import Done
from keryx.ports.store import InboxRow
from keryx.ports.workers import described


class _Running(msgspec.Struct, frozen=True, eq=False):
    """A running call of a person."""

    row: InboxRow
    batch: Batch
    logged: asyncio.Future[None]
    """Done once the outcome is logged."""


class UserCalls:
    """The calls that people run in one session."""

    def __init__(self, context: SessionContext, dedup: Dedup) -> None:
        self._context = context
        self._dedup = dedup
        self._log = TurnLog(context, None)
        self._running: dict[str, _Running] = {}

    async def run(self, command: cm.RunCall) -> Done:
        """Accept a call; return once that is durable, not once the call has ended."""
        row, fault = row_of(command), await self._prepare(command)
        running = self._running.get(command.call_id)
        if running is not None and running.row != row:
            raise KeyReusedError(
                f"the call id {command.call_id!r} belongs to another running call; choose a new one"
            )
        if running is not None or await self._dedup.was_taken(row):
            return Done(True)
        await self._dedup.leave_pending(row)
        started = self._context.fold.person_calls.get(command.call_id)
        if started is not None and started.replay == "never":
            self._log.lost(ToolCall(command.call_id, command.tool, command.arguments))
            self._dedup.take(row)
        else:
            self._start(command, row, fault)
        return Done(True)

    async def _prepare(self, command: cm.RunCall) -> Exception | None:
        """Prepare the workspace of the call. A defect is returned: it ends the call later."""
        settings = self._context.fold.settings
        workspace = command.workspace or settings.workspace
        try:
            await self._context.services.prepare_calls(settings, workspace)
        except Exception as error:  # noqa: BLE001 (a defect: it ends the call, and the session goes on)
            return error
        return None

    def cancel(self, call_id: str, reason: Reason, *, by: str) -> asyncio.Future[None] | None:
        """Cancel such a call, or one of its nested calls.

        The future is done once the outcome is logged. None: there is no such call, or it has ended.
        """
        for running in self._running.values():
            if running.batch.cancel(call_id, reason, by=by):
                if running.batch.is_step_call(call_id):
                    return running.logged
                logged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                logged.set_result(None)  # the outcome of a nested call is not logged by itself
                return logged
        return None

    async def wait_ended(self) -> None:
        """Return once no such call is running."""
        for running in tuple(self._running.values()):
            await asyncio.shield(running.logged)

    def _start(self, command: cm.RunCall, row: InboxRow, fault: Exception | None) -> None:
        context, settings = self._context, self._context.fold.settings
        hooks = SessionHooks(context, None, by=command.by, attended=command.attended)
        workspace = Path(command.workspace or settings.workspace)
        call = ToolCall(command.call_id, command.tool, command.arguments)
        try:
            if fault is not None:
                raise fault  # noqa: TRY301 (it ends the call like any other defect here)
            environment = context.environment(settings, workspace, hooks)
            batch = context.services.executor.start(
                environment, [call], context.scope.child(command.call_id)
            )
        except Exception as error:  # noqa: BLE001 (a defect: it ends the call, and the session goes on)
            context.report(f"call {command.call_id}", error)
            self._end(command, failed(command.call_id, command.tool, described(error)))
            return
        running = _Running(row, batch, asyncio.get_running_loop().create_future())
        self._running[command.call_id] = running
        context.group.start(self._wait(command, running, hooks), name=f"call {command.call_id}")

    async def _wait(self, command: cm.RunCall, running: _Running, hooks: SessionHooks) -> None:
        try:
            (outcome,) = await running.batch.outcomes()
            # A call that a shutdown kept from starting stays in the inbox for the next start.
            if outcome.started or outcome.reason != "shutdown":
                self._end(command, outcome, hooks.nested_summary(command.call_id))
        finally:
            del self._running[command.call_id]
            running.logged.set_result(None)

    def _end(
        self,
        command: cm.RunCall,
        outcome: CallOutcome,
        nested: ev.NestedSummary | None = None,
    ) -> None:
        self._log.ended(outcome, nested)
        self._dedup.take(row_of(command))
