"""Calls that wait for a person: asked in the log, answered once, expired when it is pointless.

Waiting holds no thread, slot or effect. After a crash a call waits on under the id that it was
asked with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from keryx import events as ev
from keryx.aio.clock import Deadline
from keryx.engine.approvals import Judgement, Rule, consent_rules, offers
from keryx.engine.calls.call_hooks import CallView, Consent
from keryx.engine.log.fold import Fold
from keryx.engine.session_context import SessionContext
from keryx.ids import new_id
from keryx.messages import Decision, Needs, well_formed

DENIED: Final = Consent("denied")
EXPIRED: Final = Consent("expired")
UNDELIVERED: Final = Consent("undelivered: nobody is there to be asked")


def rules_of(fold: Fold) -> list[Rule]:
    """What people consented to for the whole session."""
    return [rule for asked, reach in fold.granted for rule in consent_rules(asked, reach)]


def consent(needs: Needs, decision: Decision | str) -> Consent:
    """What an answer means for the call."""
    return DENIED if decision == "deny" else Consent(needs=needs)


class ApprovalRequests:
    """Asks for the calls of one turn."""

    def __init__(
        self, context: SessionContext, turn_id: str | None, *, attended: bool = True
    ) -> None:
        """`attended`: whether someone is there while a person's call runs."""
        self._context = context
        self._turn_id = turn_id
        self._attended = attended
        self._questions: dict[str, int] = {}
        """How many each call has asked since it began, this time."""

    async def approval(self, call: CallView, judged: Judgement) -> Consent:
        """Ask whether the call may run."""
        fold, risk = self._context.fold, judged.risk
        asked = _open(fold.approvals.values(), call)
        if asked is None:
            asked = self._context.log.record(
                ev.ApprovalAsked,
                turn_id=self._turn_id,
                approval_id=new_id("a"),
                call_id=call.call_id,
                what=well_formed(f"{call.tool.name}: {call.tool.preview(call.args)}"),
                why=well_formed(risk.why),
                risk=risk.level,
                expires=self._expires(),
                parent=None if call.parent is None else call.parent.call_id,
                tool=call.tool.name,
                patterns=risk.patterns,
                needs=risk.needs,
                workspace=str(call.workspace),
                offers=offers(call, risk),
            )
        assert isinstance(asked, ev.ApprovalAsked)
        approval_id = asked.approval_id

        def expire(cause: ev.Expiry) -> None:
            if approval_id in fold.approvals:
                self._context.log.record(
                    ev.ApprovalExpired,
                    turn_id=self._turn_id,
                    approval_id=approval_id,
                    call_id=call.call_id,
                    cause=cause,
                )

        if not self._is_attended():
            expire("undelivered")
            return _explained(UNDELIVERED, call, risk.why)
        said = await self._wait(approval_id, asked.expires, call, expire)
        answer = EXPIRED if said is None else consent(asked.needs, said)
        return _explained(answer, call, risk.why)

    async def question(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        """Ask in words; None if nobody answers. What was answered before a crash stays answered."""
        fold = self._context.fold
        text, choices = well_formed(text), tuple(map(well_formed, choices))
        number = self._questions.get(call.call_id, 0)
        self._questions[call.call_id] = number + 1
        answers = fold.question_answers.get(call.call_id, ())
        if number < len(answers) and answers[number].question == (text, choices):
            return answers[number].answer
        asked = _open(fold.questions.values(), call)
        if asked is None:
            asked = self._context.log.record(
                ev.QuestionAsked,
                turn_id=self._turn_id,
                question_id=new_id("q"),
                call_id=call.call_id,
                text=text,
                choices=choices,
                expires=self._expires(),
                parent=None if call.parent is None else call.parent.call_id,
            )
        assert isinstance(asked, ev.QuestionAsked)
        question_id = asked.question_id

        def expire(cause: ev.Expiry) -> None:
            if question_id in fold.questions:
                self._context.log.record(
                    ev.QuestionExpired,
                    turn_id=self._turn_id,
                    question_id=question_id,
                    call_id=call.call_id,
                    cause=cause,
                )

        if not self._is_attended():
            expire("undelivered")
            return None
        return await self._wait(question_id, asked.expires, call, expire)

    async def _wait(
        self,
        asked_id: str,
        expires: float | None,
        call: CallView,
        expire: Callable[[ev.Expiry], None],
    ) -> str | None:
        """The answer; None if its time is over. A cancelled call makes it pointless."""
        answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def answer(said: str | None) -> None:
            if not answered.done():
                answered.set_result(said)

        def expired() -> None:
            # An answer that is being committed came in time.
            if asked_id in self._context.fold.approvals or asked_id in self._context.fold.questions:
                answer(None)

        self._context.answers[asked_id] = answer
        deadline = self._deadline(expires, expired)
        try:
            said = await answered
        except asyncio.CancelledError:
            # After a graceful stop it goes on waiting under the same id.
            if call.reason is not None and call.reason != "shutdown":
                expire(call.reason)
            raise
        finally:
            self._context.answers.pop(asked_id, None)
            if deadline is not None:
                self._context.scope.deadlines.drop(deadline)
        if said is None:
            expire("timeout")
        return said

    def _is_attended(self) -> bool:
        turn = self._context.fold.turn
        if self._turn_id is None:
            return self._attended
        return turn is None or turn.attended

    def _expires(self) -> float | None:
        after = self._context.services.judge.expires
        return None if after is None else self._context.services.clock.wall() + after

    def _deadline(self, expires: float | None, expired: Callable[[], None]) -> Deadline | None:
        if expires is None:
            return None
        left = max(0.0, expires - self._context.services.clock.wall())
        deadlines = self._context.scope.deadlines
        return deadlines.add(deadlines.clock.monotonic() + left, expired)


_IN_WORDS: Final = {
    DENIED: "a person refused it",
    EXPIRED: "it needs approval, and nobody answered in time",
    UNDELIVERED: "it needs approval, and nobody is there to be asked",
}


def _explained(consent: Consent, call: CallView, why: str) -> Consent:
    """A script sees no more of its approvals than the reason; a model knows the words."""
    if call.parent is None or consent not in _IN_WORDS:
        return consent
    return Consent(f"{_IN_WORDS[consent]} ({why})" if why else _IN_WORDS[consent])


def _open(
    asked: Iterable[ev.ApprovalAsked | ev.QuestionAsked], call: CallView
) -> ev.ApprovalAsked | ev.QuestionAsked | None:
    """What the call was waiting for before a crash."""
    return next((each for each in asked if each.call_id == call.call_id), None)
