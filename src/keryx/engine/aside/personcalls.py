"""Calls that a person runs, with no model: accepted, run, and logged like any other.

Such a command waits in the store's inbox until its call has ended, so a crash in between loses
nothing: whoever owns the session next finds it there. A call that had started is not run again
unless its tool says that this is safe.
"""

from __future__ import annotations

from pathlib import Path

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.desk import Desk
from keryx.engine.executor import Batch
from keryx.engine.log.once import Once, row_of
from keryx.engine.turns.facts import TurnFacts
from keryx.engine.turns.witness import SessionWitness
from keryx.errors import KeyReusedError
from keryx.messages import CallOutcome, Reason, ToolCall
from keryx.ports.dispatch import Done
from keryx.ports.store import InboxRow


class PersonCalls:
    """The calls that people run in one session."""

    def __init__(self, desk: Desk, once: Once) -> None:
        self._desk = desk
        self._once = once
        self._facts = TurnFacts(desk, None)
        self._running: dict[str, Batch] = {}
        self._rows: dict[str, InboxRow] = {}
        """The commands of those that run."""

    async def run(self, command: cm.RunCall) -> Done:
        """Accept a call; returns once that is durable, not once it has ended."""
        row = row_of(command)
        under_way = self._rows.get(command.call_id)
        if under_way is not None and under_way != row:
            raise KeyReusedError(f"the call {command.call_id!r} runs already, and is another one")
        if under_way is not None or await self._once.was_taken(row):
            return Done(True)
        await self._once.leave_pending(row)
        started = self._desk.fold.person_calls.get(command.call_id)
        if started is not None and started.replay == "never":
            lost = CallOutcome(command.call_id, command.tool, "unknown", reason="crash")
            self._end(command, lost)
            return Done(True)
        if command.call_id not in self._running:
            self._start(command)
        return Done(True)

    def cancel(self, call_id: str, reason: Reason, *, by: str) -> bool:
        """Cancel such a call, or one that it made itself."""
        return any(batch.cancel(call_id, reason, by=by) for batch in self._running.values())

    def _start(self, command: cm.RunCall) -> None:
        desk, settings = self._desk, self._desk.fold.settings
        witness = SessionWitness(desk, None, by=command.by)
        workspace = Path(command.workspace or settings.workspace)
        lane = desk.lane(settings.tools, workspace, witness)
        scope = desk.scope.child(command.call_id)
        call = ToolCall(command.call_id, command.tool, command.arguments)
        batch = desk.around.executor.start(lane, [call], scope)
        self._running[command.call_id] = batch
        self._rows[command.call_id] = row_of(command)
        desk.group.start(self._wait(command, batch, witness), name=f"call {command.call_id}")

    async def _wait(self, command: cm.RunCall, batch: Batch, witness: SessionWitness) -> None:
        (outcome,) = await batch.outcomes()
        del self._running[command.call_id]
        del self._rows[command.call_id]
        if outcome.reason == "shutdown" and not outcome.started:
            return  # it is still in the inbox, and runs at the next start
        self._end(command, outcome, witness.picture(command.call_id))

    def _end(
        self,
        command: cm.RunCall,
        outcome: CallOutcome,
        nested: ev.NestedSummary | None = None,
    ) -> None:
        self._facts.ended(outcome, nested)
        self._once.take(row_of(command))
