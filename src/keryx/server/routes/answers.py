"""What people answer to calls that wait for them: the first answer counts."""

from __future__ import annotations

from collections.abc import Callable

from litestar import post
from litestar.params import JSONBody

from keryx import commands as cm
from keryx import events as ev
from keryx.errors import AlreadyTakenError
from keryx.server import shapes
from keryx.server.problems import not_found
from keryx.server.routes.params import AskedId, SessionId, TheCaller, TheService
from keryx.server.service import Service


@post("/api/sessions/{session_id:str}/approvals/{approval_id:str}", status_code=200)
async def answer_approval(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    approval_id: AskedId,
    data: JSONBody[shapes.DecisionBody],
) -> shapes.Nothing:
    """Decide on a call that waits."""
    command = cm.AnswerApproval(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        approval_id=approval_id,
        decision=data.decision,
        where=caller.where,
    )
    await _answer(
        service,
        command,
        lambda event: isinstance(event, ev.ApprovalAsked) and event.approval_id == approval_id,
    )
    return shapes.Nothing()


@post("/api/sessions/{session_id:str}/questions/{question_id:str}", status_code=200)
async def answer_question(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    question_id: AskedId,
    data: JSONBody[shapes.AnswerBody],
) -> shapes.Nothing:
    """Answer a question of the agent."""
    command = cm.AnswerQuestion(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        question_id=question_id,
        answer=data.answer,
        where=caller.where,
    )
    await _answer(
        service,
        command,
        lambda event: isinstance(event, ev.QuestionAsked) and event.question_id == question_id,
    )
    return shapes.Nothing()


async def _answer(
    service: Service,
    command: cm.AnswerApproval | cm.AnswerQuestion,
    was_asked: Callable[[ev.LoggedEvent], bool],
) -> None:
    try:
        await service.do(command)
    except AlreadyTakenError:
        # Also said of what nobody asked: only the log can tell.
        if any(map(was_asked, await service.front.store.events(command.session_id))):
            raise
        raise not_found(
            "nothing of that id waits for an answer", "see the session for what does"
        ) from None


ROUTES = (answer_approval, answer_question)
