"""Approval requests and questions of calls: logged, answered once, or expired.

A call that waits holds no thread, slot or effect. After a crash it goes on waiting under the same
request id.
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
UNDELIVERED: Final = Consent("undelivered: it needs approval, and nobody is there to answer")


def rules_of(fold: Fold) -> list[Rule]:
    """Return the rules that people approved for the whole session."""
    return [rule for request, reach in fold.granted for rule in consent_rules(request, reach)]


def consent(needs: Needs, decision: Decision | str) -> Consent:
    """Return what an answer means for the call."""
    return DENIED if decision == "deny" else Consent(needs=needs)


class ApprovalRequests:
    """Sends the approval requests and questions of one turn's calls."""

    def __init__(
        self, context: SessionContext, turn_id: str | None, *, attended: bool = True
    ) -> None:
        """`attended`: whether somebody can answer while a call of a person runs."""
        self._context = context
        self._turn_id = turn_id
        self._attended = attended
        self._questions: dict[str, int] = {}
        """The number of questions that each call has asked since it began."""

    async def approval(self, call: CallView, judgement: Judgement) -> Consent:
        """Ask a person whether the call may run."""
        fold, risk = self._context.fold, judgement.risk
        request = _open_request(fold.approvals.values(), call)
        if request is None:
            request = self._context.log.record(
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
        assert isinstance(request, ev.ApprovalAsked)
        approval_id = request.approval_id

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
        answer = await self._wait(approval_id, request.expires, call, expire)
        result = EXPIRED if answer is None else consent(request.needs, answer)
        return _explained(result, call, risk.why)

    async def question(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        """Ask a person; None if nobody answers. An answer from before a crash still counts."""
        fold = self._context.fold
        text, choices = well_formed(text), tuple(map(well_formed, choices))
        number = self._questions.get(call.call_id, 0)
        self._questions[call.call_id] = number + 1
        answers = fold.question_answers.get(call.call_id, ())
        if number < len(answers) and answers[number].question == (text, choices):
            return answers[number].answer
        request = _open_request(fold.questions.values(), call)
        if request is None:
            request = self._context.log.record(
                ev.QuestionAsked,
                turn_id=self._turn_id,
                question_id=new_id("q"),
                call_id=call.call_id,
                text=text,
                choices=choices,
                expires=self._expires(),
                parent=None if call.parent is None else call.parent.call_id,
            )
        assert isinstance(request, ev.QuestionAsked)
        question_id = request.question_id

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
        return await self._wait(question_id, request.expires, call, expire)

    async def _wait(
        self,
        request_id: str,
        expires: float | None,
        call: CallView,
        expire: Callable[[ev.Expiry], None],
    ) -> str | None:
        """Return the answer, or None if it came too late. A cancelled call expires its request."""
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def resolve(answer: str | None) -> None:
            if not future.done():
                future.set_result(answer)

        def on_timeout() -> None:
            # An answer that is being committed came in time.
            if (
                request_id in self._context.fold.approvals
                or request_id in self._context.fold.questions
            ):
                resolve(None)

        self._context.answers[request_id] = resolve
        deadline = self._deadline(expires, on_timeout)
        try:
            answer = await future
        except asyncio.CancelledError:
            # After a graceful stop the call goes on waiting under the same id.
            if call.reason is not None and call.reason != "shutdown":
                expire(call.reason)
            raise
        finally:
            self._context.answers.pop(request_id, None)
            if deadline is not None:
                self._context.scope.deadlines.drop(deadline)
        if answer is None:
            expire("timeout")
        return answer

    def _is_attended(self) -> bool:
        turn = self._context.fold.turn
        if self._turn_id is None:
            return self._attended
        return turn is None or turn.attended

    def _expires(self) -> float | None:
        seconds = self._context.services.judge.expires
        return None if seconds is None else self._context.services.clock.wall() + seconds

    def _deadline(self, expires: float | None, on_timeout: Callable[[], None]) -> Deadline | None:
        if expires is None:
            return None
        seconds = max(0.0, expires - self._context.services.clock.wall())
        deadlines = self._context.scope.deadlines
        return deadlines.add(deadlines.clock.monotonic() + seconds, on_timeout)


_REASON_TEXTS: Final = {
    DENIED: "a person refused it",
    EXPIRED: "it needs approval, and nobody answered in time",
    UNDELIVERED: "it needs approval, and nobody is there to answer",
}


def _explained(consent: Consent, call: CallView, why: str) -> Consent:
    """Give a nested call the reason in plain words: a script sees nothing else of its approvals."""
    if call.parent is None or consent not in _REASON_TEXTS:
        return consent
    return Consent(f"{_REASON_TEXTS[consent]} ({why})" if why else _REASON_TEXTS[consent])


def _open_request(
    requests: Iterable[ev.ApprovalAsked | ev.QuestionAsked], call: CallView
) -> ev.ApprovalAsked | ev.QuestionAsked | None:
    """Return the request that the call was waiting for before a crash."""
    return next((request for request in requests if request.call_id == call.call_id), None)
