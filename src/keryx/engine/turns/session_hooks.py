"""The session's hooks for its calls: they log calls, show them, and ask for approval."""

from __future__ import annotations

from keryx import events as ev
from keryx.engine.approvals.requests import ApprovalRequests, consent, rules_of
from keryx.engine.calls.call_hooks import CallView, Consent, Review
from keryx.engine.live.nested_calls import NestedCallTracker
from keryx.engine.session_context import SessionContext
from keryx.errors import HookFailedError
from keryx.messages import CallOutcome, HookAction, well_formed
from keryx.ports.effects import Effects


class SessionHooks:
    """The hooks for the calls of one turn, or for a call that a person runs."""

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
        """Decide by the host's policy, or ask a person. A call that waits holds nothing."""
        fold = self._context.fold
        if call.call_id in fold.answers:
            # It was answered before a crash, and the call had not started.
            request, decision = fold.answers[call.call_id]
            return consent(request.needs, decision)
        turn = None if self._turn_id is None else fold.turn
        settings = fold.settings if turn is None else turn.settings
        judgement = self._context.services.judge.judge(call, settings, rules_of(fold))
        if judgement.verdict == "deny":
            return Consent(judgement.reason)
        if judgement.verdict == "allow":
            return Consent(needs=judgement.needs)
        return await self._requests.approval(call, judgement)

    def was_amended(self, call_id: str) -> bool:
        return call_id in self._context.fold.amended

    async def earlier_review(self, call: CallView) -> Review | None:
        """Return what the log says. A call that was judged or started has passed its hooks."""
        fold = self._context.fold
        amended = fold.amended.get(call.call_id)
        if amended is not None:
            return Review(await self._whole(amended), amended.hooks)
        turn = None if self._turn_id is None else fold.turn
        started = fold.person_calls if turn is None else turn.started
        was_judged = call.call_id in fold.answers or any(
            request.call_id == call.call_id for request in fold.approvals.values()
        )
        return Review() if was_judged or call.call_id in started else None

    async def _whole(self, amended: ev.CallAmended) -> str:
        if amended.arguments_blob is None:
            return amended.arguments
        data = await self._context.services.store.blob(amended.arguments_blob)
        if data is None:
            raise HookFailedError(
                "the input that a hook had changed is not in the store any more; run it again"
            )
        return data.decode()

    def amended(self, call: CallView, actions: tuple[HookAction, ...]) -> None:
        arguments, blob = self._context.log.shortened(call.arguments)
        self._context.log.record(
            ev.CallAmended,
            turn_id=self._turn_id,
            call_id=call.call_id,
            tool=call.tool.name,
            hooks=actions,
            arguments=arguments,
            arguments_blob=blob,
        )

    async def ask(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        return await self._requests.question(call, text, choices)

    async def starting(self, call: CallView) -> None:
        """Log a call before it acts. Nested calls are shown, not logged."""
        if call.parent is None:
            self._context.running_calls.began(call.call_id, call.tool.name)
        if call.tool.container:
            self._nested.container_began(call.call_id, is_logged=call.parent is None)
        if call.parent is not None:
            self._nested.began(call, call.parent.call_id)
            return
        arguments, blob = self._context.log.shortened(call.arguments)
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
        await self._context.log.wait_durable()

    def output(self, call: CallView, stream: str, text: str) -> None:
        self._context.running_calls.printed(call.call_id, text)
        self._context.show(
            ev.CallOutput,
            call_id=call.call_id,
            stream=stream,
            text=text,
            parent=None if call.parent is None else call.parent.call_id,
        )

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None:
        note = well_formed(note)
        self._context.running_calls.progressed(call.call_id, done, total, note)
        self._context.show(
            ev.CallProgress,
            call_id=call.call_id,
            done=done,
            total=total,
            note=note,
            parent=None if call.parent is None else call.parent.call_id,
        )

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        """Show that a call has ended. The turn logs the calls of its steps."""
        self._context.running_calls.ended(call.call_id)
        self._context.left_over.update(outcome.left_over)
        if call.parent is not None:
            self._nested.ended(call, call.parent.call_id, outcome)
        if call.tool.container:
            self._nested.container_ended(call.call_id)

    def nested_summary(self, call_id: str) -> ev.NestedSummary | None:
        """Return the summary of a container's nested calls, to be logged with its outcome."""
        return self._nested.summary(call_id)

    def settled(self, call: CallView, duration: float) -> None:
        self._context.left_over.discard(call.call_id)
        if self._context.log.broken is None:
            self._context.log.record(ev.CallSettled, call_id=call.call_id, duration=duration)


def _logged_effects(effects: Effects) -> ev.CallEffects:
    return ev.CallEffects(
        accesses=tuple(
            ev.CallAccess(
                kind=access.kind, name=access.name, writes=access.writes, peers=access.peers
            )
            for access in effects.accesses
        ),
        exclusive=effects.exclusive,
    )
