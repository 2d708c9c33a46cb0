"""Handles answers to approval requests, questions and client calls: the first answer wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.approvals import KeptRule, Rule, consent_rules, covers
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.session_context import HostServices
from keryx.errors import AlreadyTakenError, UserMustActError
from keryx.ports.dispatch import Done
from keryx.ports.store import RecordChange

ALWAYS = "approval/"
"""Prefix of the record keys of rules from `always` answers; they hold for all sessions."""


class Answers:
    """Handles the answers in one session."""

    def __init__(
        self,
        services: HostServices,
        fold: Fold,
        log: LogWriter,
        resolvers: Mapping[str, Callable[[str | None], None]],
        dedup: Dedup,
    ) -> None:
        """`resolvers` end the waiting of a call, by the id of its request."""
        self._services = services
        self._fold = fold
        self._log = log
        self._resolvers = resolvers
        self._dedup = dedup

    async def take(self, command: cm.AnswerApproval | cm.AnswerQuestion | cm.AnswerCalls) -> Done:
        match command:
            case cm.AnswerApproval():
                return await self.answer_approval(command)
            case cm.AnswerQuestion():
                return await self.answer_question(command)
            case cm.AnswerCalls():
                return await self.answer_calls(command)

    async def answer_approval(self, command: cm.AnswerApproval) -> Done:
        """Decide on a call that waits; `session` and `always` decide on similar calls too."""
        request, row = self._fold.approvals.get(command.approval_id), row_of(command)
        if request is None:
            if await self._dedup.was_taken(row):
                return await self._acknowledge()
            raise AlreadyTakenError(f"approval {command.approval_id} is answered or expired")
        answered, rules = [request], ()
        if command.decision in ("session", "always"):
            rules = consent_rules(request, command.reach)
            answered += [other for other in self._covered(rules) if other is not request]
        for approval in answered:
            follows = None if approval is request else request.approval_id
            self._record_answer(approval, command, follows)
        lasting = (
            self._record_rules(rules, request, command) if command.decision == "always" else []
        )
        self._dedup.take(row)
        await self._log.wait_durable()
        for approval in answered:
            if (resolve := self._resolvers.get(approval.approval_id)) is not None:
                resolve(command.decision)
        for rule in lasting:
            self._services.remember(rule)
        return Done(True)

    def _covered(self, rules: Sequence[Rule]) -> list[ev.ApprovalAsked]:
        """Return the open approval requests that these rules decide as well."""
        approvals = self._fold.approvals.values()
        return [approval for approval in approvals if covers(rules, approval)]

    def _record_rules(
        self, rules: Sequence[Rule], request: ev.ApprovalAsked, command: cm.AnswerApproval
    ) -> list[KeptRule]:
        """Record rules for every session, in the same commit as the answer."""
        recorded = [
            KeptRule(
                rule.verdict,
                rule.tool,
                rule.pattern,
                rule.needs,
                rule.workspace,
                rule_id=f"{request.approval_id}.{number}",
                made_at=self._services.clock.wall(),
                by=command.by,
                session_id=command.session_id,
            )
            for number, rule in enumerate(rules)
        ]
        for number, rule in enumerate(recorded):
            key = f"{ALWAYS}{request.approval_id}/{number}"
            self._log.set_record(RecordChange(key, 0, msgspec.json.encode(rule)))
        return recorded

    def _record_answer(
        self, request: ev.ApprovalAsked, command: cm.AnswerApproval, follows: str | None
    ) -> None:
        self._log.claim(f"approval {request.approval_id}")
        self._log.record(
            ev.ApprovalAnswered,
            turn_id=request.turn_id,
            approval_id=request.approval_id,
            call_id=request.call_id,
            decision=command.decision,
            by=command.by,
            where=command.where,
            follows=follows,
            reach=command.reach if follows is None else None,
        )

    async def answer_question(self, command: cm.AnswerQuestion) -> Done:
        request, row = self._fold.questions.get(command.question_id), row_of(command)
        if request is None:
            if await self._dedup.was_taken(row):
                return await self._acknowledge()
            raise AlreadyTakenError(f"question {command.question_id} is answered or expired")
        self._log.claim(f"question {command.question_id}")
        self._log.record(
            ev.QuestionAnswered,
            turn_id=request.turn_id,
            question_id=command.question_id,
            call_id=request.call_id,
            answer=command.answer,
            by=command.by,
            where=command.where,
        )
        self._dedup.take(row)
        await self._log.wait_durable()
        if (resolve := self._resolvers.get(command.question_id)) is not None:
            resolve(command.answer)
        return Done(True)

    async def answer_calls(self, command: cm.AnswerCalls) -> Done:
        """Give all waiting calls of client tools their results, so that the turn goes on."""
        fold, row, turn = self._fold, row_of(command), self._fold.turn
        ids = {answer.call_id for answer in command.answers}
        waiting: set[str] = set()
        if turn is not None and turn.cancelling is None:
            waiting = turn.waiting_client_calls() - fold.client_results.keys()
        if turn is None or not ids or not waiting.issuperset(ids):
            if await self._dedup.was_taken(row):
                return await self._acknowledge()
            raise AlreadyTakenError("not all of these calls wait for a result of the client")
        if missing := sorted(waiting - ids):
            raise UserMustActError(f"a result is missing for {', '.join(missing)}; send it too")
        self._log.record(
            ev.CallsAnswered,
            turn_id=turn.turn_id,
            answers=command.answers,
            client_tools=tuple(tool.name for tool in turn.options.client_tools),
            by=command.by,
            request=command.request,
        )
        self._dedup.take(row)
        await self._log.wait_durable()
        for answer in command.answers:
            if (resolve := self._resolvers.get(answer.call_id)) is not None:
                resolve(answer.text)
        return Done(True)

    async def _acknowledge(self) -> Done:
        """Answer a command that was handled before."""
        await self._log.wait_durable()
        return Done(True)
