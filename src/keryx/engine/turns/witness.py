"""The session's side of the executor: what it logs of calls, shows of them, and asks about them."""

from __future__ import annotations

import asyncio
from typing import Final

from keryx import events as ev
from keryx.engine.calls.witness import CallView
from keryx.engine.desk import Desk, mint
from keryx.messages import CallOutcome, Decision
from keryx.ports.effects import Effects
from keryx.ports.store import Blob, blob_hash

LONG_ARGUMENTS: Final = 8_192
"""Longer ones live in a blob."""


class SessionWitness:
    """Sees every call of one turn."""

    def __init__(self, desk: Desk, turn_id: str) -> None:
        self._desk = desk
        self._turn_id = turn_id

    async def approve(self, call: CallView) -> str | None:
        """Ask a person if the host's policy says so; waiting holds nothing."""
        risk = self._desk.around.ask(call)
        if risk is None:
            return None
        approval_id = self._open_approval(call) or mint("a")
        answered: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._desk.answers[approval_id] = answered.set_result
        if approval_id not in self._desk.fold.approvals:
            self._desk.ledger.record(
                ev.ApprovalAsked,
                turn_id=self._turn_id,
                approval_id=approval_id,
                call_id=call.call_id,
                what=f"{call.tool.name}: {call.tool.preview(call.args)}",
                why=risk.why,
                risk=risk.level,
                expires=None,
                parent=None if call.parent is None else call.parent.call_id,
            )
        try:
            decision = await answered
        except asyncio.CancelledError:
            self._expire(approval_id, call)
            raise
        finally:
            self._desk.answers.pop(approval_id, None)
        return "denied" if decision == "deny" else None

    def _open_approval(self, call: CallView) -> str | None:
        """After a crash the call waits on under the id that it was asked with."""
        for asked in self._desk.fold.approvals.values():
            if asked.call_id == call.call_id:
                return asked.approval_id
        return None

    def _expire(self, approval_id: str, call: CallView) -> None:
        reason = call.reason or "shutdown"
        if reason == "shutdown" or approval_id not in self._desk.fold.approvals:
            return  # it goes on waiting after the restart
        self._desk.ledger.record(
            ev.ApprovalExpired,
            turn_id=self._turn_id,
            approval_id=approval_id,
            call_id=call.call_id,
            cause=reason,
        )

    async def starting(self, call: CallView) -> None:
        """Before a call acts, the log knows of it. Nested calls are shown, not logged."""
        if call.parent is not None:
            return
        arguments, blob = self._bounded(call.arguments)
        self._desk.ledger.record(
            ev.CallStarted,
            turn_id=self._turn_id,
            call_id=call.call_id,
            step_id=call.call_id.rpartition(".")[0],
            by="model",
            tool=call.tool.name,
            arguments=arguments,
            arguments_blob=blob,
            preview=call.tool.preview(call.args),
            effects=_logged_effects(call.effects),
            replay=call.tool.replay,
            overlaps=call.overlaps,
        )
        await self._desk.ledger.durable()

    def _bounded(self, arguments: str) -> tuple[str, str | None]:
        """Everyone who watches gets this event, and few want a whole file that is written."""
        if len(arguments) <= LONG_ARGUMENTS:
            return arguments, None
        data = arguments.encode()
        blob = Blob(blob_hash(data), data)
        self._desk.ledger.keep(blob)
        return arguments[:LONG_ARGUMENTS], blob.hash

    def output(self, call: CallView, stream: str, text: str) -> None:
        self._desk.show(
            ev.CallOutput,
            call_id=call.call_id,
            stream=stream,
            text=text,
            parent=None if call.parent is None else call.parent.call_id,
        )

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None:
        self._desk.show(
            ev.CallProgress,
            call_id=call.call_id,
            done=done,
            total=total,
            note=note,
            parent=None if call.parent is None else call.parent.call_id,
        )

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        """The turn logs the calls of its steps; a nested call is only shown."""
        if call.parent is not None:
            self._desk.show(
                ev.CallProgress,
                call_id=call.call_id,
                parent=call.parent.call_id,
                nested=ev.NestedProgress(
                    tool=outcome.tool, outcome=outcome.outcome, duration=outcome.duration
                ),
            )

    def settled(self, call: CallView, duration: float) -> None:
        if self._desk.ledger.broken is None:
            self._desk.ledger.record(ev.CallSettled, call_id=call.call_id, duration=duration)


def _logged_effects(effects: Effects) -> ev.CallEffects:
    return ev.CallEffects(
        accesses=tuple(
            ev.CallAccess(kind=each.kind, name=each.name, writes=each.writes, peers=each.peers)
            for each in effects.accesses
        ),
        exclusive=effects.exclusive,
    )
