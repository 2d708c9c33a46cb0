"""Approval requests and questions of calls: logged, answered once, or expired.

A call that waits holds no thread, slot or effect. After a crash it goes on waiting under the same
request id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec

from keryx import events as ev
from keryx.aio.clock import Deadline
from keryx.engine.approvals import Judgement, Rule, consent_rules, offers
from keryx.engine.calls.call_hooks import CallView, Consent
from keryx.engine.log.fold import Fold
from keryx.engine.log.log_writer import LogWriter
from keryx.engine.session_context import SessionContext
from keryx.ids import new_id
from keryx.messages import Decision, Needs, well_formed

DENIED: Final = Consent("denied")
EXPIRED: Final = Consent("expired")
_NOBODY: Final = "it needs approval, and nobody is there to answer"
UNDELIVERED: Final = Consent(
    f"undelivered: {_NOBODY}; the user can allow such calls with a rule, in [approvals] of "
    'config.toml or with the answer "always" on the page or in `keryx chat`'
)


def rules_of(fold: Fold) -> list[Rule]:
    """Return the rules that people approved for the whole session."""
    return [rule for request, reach in fold.granted for rule in consent_rules(request, reach)]


def consent(needs: Needs, decision: Decision | str) -> Consent:
    """Return what an answer means for the call."""
    return DENIED if decision == "deny" else Consent(needs=needs)


Request = ev.ApprovalAsked | ev.QuestionAsked
R = TypeVar("R", ev.ApprovalAsked, ev.QuestionAsked)


def id_of(request: Request) -> str:
    """Return the id under which a request is answered."""
    return request.approval_id if isinstance(request, ev.ApprovalAsked) else request.question_id


def is_open(fold: Fold, request: Request) -> bool:
    """Return whether the request is neither answered nor expired."""
    return id_of(request) in fold.approvals or id_of(request) in fold.questions


def expire(fold: Fold, log: LogWriter, request: Request, cause: ev.Expiry) -> None:
    """Log that a request has expired, if it is still open."""
    if not is_open(fold, request):
        return
    if isinstance(request, ev.ApprovalAsked):
        log.record(
            ev.ApprovalExpired,
            turn_id=request.turn_id,
            approval_id=request.approval_id,
            call_id=request.call_id,
            cause=cause,
        )
    else:
        log.record(
            ev.QuestionExpired,
            turn_id=request.turn_id,
            question_id=request.question_id,
            call_id=request.call_id,
            cause=cause,
        )


def _input_of(call: CallView) -> str:
    """Return what the call gets, as JSON: people see it before they allow the call."""
    arguments = call.arguments or call.raw
    if isinstance(arguments, str):
        return arguments
    try:
        data = arguments if isinstance(arguments, bytes) else msgspec.json.encode(arguments)
        return data.decode(errors="replace")
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return ""  # a value of the library that JSON does not know; the preview is shown then


def _waits_on(request: Request, call: CallView) -> bool:
    """Return whether the call waits under the same id again after a graceful stop.

    A script does not begin again where it was, and a call that must not be repeated has ended.
    """
    if call.reason != "shutdown" or call.parent is not None:
        return False
    return isinstance(request, ev.ApprovalAsked) or call.tool.replay != "never"


class ApprovalRequests:
    """Sends the approval requests and questions of one turn's calls."""

    def __init__(
        self, context: SessionContext, turn_id: str | None, *, attended: bool = True
    ) -> None:
        """`attended`: whether somebody can answer while a call of a person runs."""
        self._fold, self._log = context.fold, context.log
        self._resolvers, self._deadlines = context.answers, context.scope.deadlines
        self._expires_after = context.services.judge.expires
        self._turn_id = turn_id
        self._attended = attended
        self._questions: dict[str, int] = {}
        """The number of questions that each call has asked since it began."""

    async def approval(self, call: CallView, judgement: Judgement) -> Consent:
        """Ask a person whether the call may run."""
        risk = judgement.risk
        request = _request_of(self._fold.approvals.values(), call)
        if request is None:
            arguments, blob = self._log.shortened(well_formed(_input_of(call)))
            request = self._log.record(
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
                arguments=arguments,
                arguments_blob=blob,
            )
        if not self._is_attended():
            expire(self._fold, self._log, request, "undelivered")
            return _explained(UNDELIVERED, call, risk.why)
        answer = await self._wait(request, call)
        result = EXPIRED if answer is None else consent(request.needs, answer)
        return _explained(result, call, risk.why)

    async def question(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        """Ask a person; None if nobody answers. An answer from before a crash still counts."""
        text, choices = well_formed(text), tuple(map(well_formed, choices))
        number = self._questions.get(call.call_id, 0)
        self._questions[call.call_id] = number + 1
        answers = self._fold.question_answers.get(call.call_id, ())
        if number < len(answers) and answers[number].question == (text, choices):
            return answers[number].answer
        request = _request_of(self._fold.questions.values(), call)
        if request is None:
            request = self._log.record(
                ev.QuestionAsked,
                turn_id=self._turn_id,
                question_id=new_id("q"),
                call_id=call.call_id,
                text=text,
                choices=choices,
                expires=self._expires(),
                parent=None if call.parent is None else call.parent.call_id,
            )
        if not self._is_attended():
            expire(self._fold, self._log, request, "undelivered")
            return None
        return await self._wait(request, call)

    async def _wait(self, request: Request, call: CallView) -> str | None:
        """Return the answer, or None if it came too late. A cancelled call expires its request."""
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def resolve(answer: str | None) -> None:
            if not future.done():
                future.set_result(answer)

        def on_timeout() -> None:
            # An answer that is being committed came in time.
            if is_open(self._fold, request):
                resolve(None)

        self._resolvers[id_of(request)] = resolve
        deadline = self._deadline(request.expires, on_timeout)
        try:
            answer = await future
        except asyncio.CancelledError:
            # Without a reason the tool itself gave up its question.
            if not _waits_on(request, call):
                is_stopped = call.reason is None or call.reason == "shutdown"
                cause = "parent" if is_stopped else call.reason
                expire(self._fold, self._log, request, cause or "parent")
            raise
        finally:
            self._resolvers.pop(id_of(request), None)
            if deadline is not None:
                self._deadlines.drop(deadline)
        if answer is None:
            expire(self._fold, self._log, request, "timeout")
        return answer

    def _is_attended(self) -> bool:
        if self._turn_id is None:
            return self._attended
        return self._fold.turn is None or self._fold.turn.attended

    def _expires(self) -> float | None:
        after = self._expires_after
        return None if after is None else self._deadlines.clock.wall() + after

    def _deadline(self, expires: float | None, on_timeout: Callable[[], None]) -> Deadline | None:
        if expires is None:
            return None
        clock = self._deadlines.clock
        seconds = max(0.0, expires - clock.wall())
        return self._deadlines.add(clock.monotonic() + seconds, on_timeout)


_REASON_TEXTS: Final = {
    DENIED: "a person refused it",
    EXPIRED: "it needs approval, and nobody answered in time",
    UNDELIVERED: _NOBODY,
}


def _explained(consent: Consent, call: CallView, why: str) -> Consent:
    """Give a nested call the reason in plain words: a script sees nothing else of its approvals."""
    if call.parent is None or consent not in _REASON_TEXTS:
        return consent
    return Consent(f"{_REASON_TEXTS[consent]} ({why})" if why else _REASON_TEXTS[consent])


def _request_of(requests: Iterable[R], call: CallView) -> R | None:
    """Return the request that the call was waiting for before a crash."""
    return next((request for request in requests if request.call_id == call.call_id), None)
