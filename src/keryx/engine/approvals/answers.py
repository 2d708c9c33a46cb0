"""What people answer to calls that wait: the first answer wins, later ones are refused."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.approvals import KeptRule, Rule, consent_rules, covers
from keryx.engine.log.dedup import Dedup, row_of
from keryx.engine.session_context import SessionContext
from keryx.errors import AlreadyTakenError
from keryx.ports.dispatch import Done
from keryx.ports.store import RecordChange

ALWAYS = "approval/"
"""Where what people answered with `always` is recorded, for all sessions."""


class Answers:
    """Takes the answers of one session."""

    def __init__(self, context: SessionContext, dedup: Dedup) -> None:
        self._context = context
        self._dedup = dedup

    async def take(self, command: cm.AnswerApproval | cm.AnswerQuestion) -> Done:
        if isinstance(command, cm.AnswerApproval):
            return await self.approval(command)
        return await self.question(command)

    async def approval(self, command: cm.AnswerApproval) -> Done:
        """Decide on a call that waits; `session` and `always` answer others like it too."""
        asked, row = self._context.fold.approvals.get(command.approval_id), row_of(command)
        if asked is None:
            if await self._dedup.was_taken(row):
                return await self._again()
            raise AlreadyTakenError(f"approval {command.approval_id} is answered or expired")
        answered, rules = [asked], ()
        if command.decision in ("session", "always"):
            rules = consent_rules(asked, command.reach)
            answered += [each for each in self._covered(rules) if each is not asked]
        for each in answered:
            self._record_answer(each, command, None if each is asked else asked.approval_id)
        lasting = self._keep(rules, asked, command) if command.decision == "always" else []
        self._dedup.take(row)
        await self._context.log.durable()
        for each in answered:
            if (waiting := self._context.answers.get(each.approval_id)) is not None:
                waiting(command.decision)
        for rule in lasting:
            self._context.services.remember(rule)
        return Done(True)

    def _covered(self, rules: Sequence[Rule]) -> list[ev.ApprovalAsked]:
        """The approvals that such consent answers too."""
        approvals = self._context.fold.approvals.values()
        return [waiting for waiting in approvals if covers(rules, waiting)]

    def _keep(
        self, rules: Sequence[Rule], asked: ev.ApprovalAsked, command: cm.AnswerApproval
    ) -> list[KeptRule]:
        """Consent for every session, recorded in the same commit as the answer."""
        recorded = [
            KeptRule(
                rule.verdict,
                rule.tool,
                rule.pattern,
                rule.needs,
                rule.workspace,
                rule_id=f"{asked.approval_id}.{number}",
                made_at=self._context.services.clock.wall(),
                by=command.by,
                session_id=command.session_id,
            )
            for number, rule in enumerate(rules)
        ]
        for number, rule in enumerate(recorded):
            key = f"{ALWAYS}{asked.approval_id}/{number}"
            self._context.log.set_record(RecordChange(key, 0, msgspec.json.encode(rule)))
        return recorded

    def _record_answer(
        self, asked: ev.ApprovalAsked, command: cm.AnswerApproval, follows: str | None
    ) -> None:
        self._context.log.claim(f"approval {asked.approval_id}")
        self._context.log.record(
            ev.ApprovalAnswered,
            turn_id=asked.turn_id,
            approval_id=asked.approval_id,
            call_id=asked.call_id,
            decision=command.decision,
            by=command.by,
            where=command.where,
            follows=follows,
            reach=command.reach if follows is None else None,
        )

    async def question(self, command: cm.AnswerQuestion) -> Done:
        asked, row = self._context.fold.questions.get(command.question_id), row_of(command)
        if asked is None:
            if await self._dedup.was_taken(row):
                return await self._again()
            raise AlreadyTakenError(f"question {command.question_id} is answered or expired")
        self._context.log.claim(f"question {command.question_id}")
        self._context.log.record(
            ev.QuestionAnswered,
            turn_id=asked.turn_id,
            question_id=command.question_id,
            call_id=asked.call_id,
            answer=command.answer,
            by=command.by,
            where=command.where,
        )
        self._dedup.take(row)
        await self._context.log.durable()
        if (waiting := self._context.answers.get(command.question_id)) is not None:
            waiting(command.answer)
        return Done(True)

    async def _again(self) -> Done:
        """The same command came before."""
        await self._context.log.durable()
        return Done(True)
