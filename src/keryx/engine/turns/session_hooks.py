"""The session's side of the executor: what it logs of calls, shows of them, and asks about them."""

from __future__ import annotations

from typing import Final

from keryx import events as ev
from keryx.engine.approvals.requests import ApprovalRequests, consent, rules_of
from keryx.engine.calls.call_hooks import CallView, Consent
from keryx.engine.live.nested_calls import NestedCallTracker
from keryx.engine.session_context import SessionContext
from keryx.messages import CallOutcome, well_formed
from keryx.ports.effects import Effects
from keryx.ports.store import Blob, blob_hash

LONG_ARGUMENTS: Final = 8_192
"""Longer ones live in a blob."""


class SessionHooks:
    """Sees every call of one turn, or one that a person runs."""

    def __init__(
        self,
        context: SessionContext,
        turn_id: str | None,
        *,
        by: str = "model",
        attended: bool = True,
    ) -> None:
        self._context = context
        self._turn_id = turn_id
        self._by = by
        self._requests = ApprovalRequests(context, turn_id, attended=attended)
        self._nested = NestedCallTracker(context, turn_id)

    async def approve(self, call: CallView) -> Consent:
        """What the host's policy says; if that is to ask a person, waiting holds nothing."""
        fold = self._context.fold
        if call.call_id in fold.answers:
            # Answered before a crash, and the call had not started.
            asked, decision = fold.answers[call.call_id]
            return consent(asked.needs, decision)
        turn = None if self._turn_id is None else fold.turn
        settings = fold.settings if turn is None else turn.settings
        judged = self._context.services.judge.judge(call, settings, rules_of(fold))
        if judged.verdict == "deny":
            return Consent(judged.reason)
        if judged.verdict == "allow":
            return Consent(needs=judged.needs)
        return await self._requests.approval(call, judged)

    async def ask(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        return await self._requests.question(call, text, choices)

    async def starting(self, call: CallView) -> None:
        """Before a call acts, the log knows of it. Nested calls are shown, not logged."""
        if call.parent is None:
            self._context.showing.began(call.call_id, call.tool.name)
        if call.tool.container:
            self._nested.container(call.call_id, is_logged=call.parent is None)
        if call.parent is not None:
            self._nested.began(call, call.parent.call_id)
            return
        arguments, blob = self._bounded(call.arguments)
        self._context.log.record(
            ev.CallStarted,
            turn_id=self._turn_id,
            call_id=call.call_id,
            step_id=None if self._turn_id is None else call.call_id.rpartition(".")[0],
            by=self._by,
            tool=call.tool.name,
            arguments=arguments,
            arguments_blob=blob,
            preview=well_formed(call.tool.preview(call.args)),
            effects=_logged_effects(call.effects),
            replay=call.tool.replay,
            overlaps=call.overlaps,
        )
        await self._context.log.durable()

    def _bounded(self, arguments: str) -> tuple[str, str | None]:
        """Everyone who watches gets this event, and few want a whole file that is written."""
        if len(arguments) <= LONG_ARGUMENTS:
            return arguments, None
        data = arguments.encode(errors="backslashreplace")
        blob = Blob(blob_hash(data), data)
        self._context.log.keep(blob)
        return arguments[:LONG_ARGUMENTS], blob.hash

    def output(self, call: CallView, stream: str, text: str) -> None:
        self._context.showing.printed(call.call_id, text)
        self._context.show(
            ev.CallOutput,
            call_id=call.call_id,
            stream=stream,
            text=text,
            parent=None if call.parent is None else call.parent.call_id,
        )

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None:
        note = well_formed(note)
        self._context.showing.progressed(call.call_id, done, total, note)
        self._context.show(
            ev.CallProgress,
            call_id=call.call_id,
            done=done,
            total=total,
            note=note,
            parent=None if call.parent is None else call.parent.call_id,
        )

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        """The turn logs the calls of its steps; a nested call is only shown."""
        self._context.showing.ended(call.call_id)
        self._context.left_over.update(outcome.left_over)
        if call.parent is not None:
            self._nested.ended(call, call.parent.call_id, outcome)
        if call.tool.container:
            self._nested.over(call.call_id)

    def picture(self, call_id: str) -> ev.NestedSummary | None:
        """What a container called, so that the picture survives a reload."""
        return self._nested.picture(call_id)

    def settled(self, call: CallView, duration: float) -> None:
        self._context.left_over.discard(call.call_id)
        if self._context.log.broken is None:
            self._context.log.record(ev.CallSettled, call_id=call.call_id, duration=duration)


def _logged_effects(effects: Effects) -> ev.CallEffects:
    return ev.CallEffects(
        accesses=tuple(
            ev.CallAccess(kind=each.kind, name=each.name, writes=each.writes, peers=each.peers)
            for each in effects.accesses
        ),
        exclusive=effects.exclusive,
    )
