"""An answer that is being committed came in time, whatever the clock says meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keryx import NO_EFFECTS, tool
from keryx import commands as cm
from keryx import events as ev
from keryx.aio.clock import FakeClock
from keryx.messages import Text
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.store import Commit
from keryx.ports.tool import Risk
from keryx.ports.tool_context import ToolContext
from tests.engine.sessions import AsksWhen, Recording, SessionHost, until

pytestmark = pytest.mark.promise("mended.4")
EXPIRES = 30.0


@tool(effects=NO_EFFECTS)
async def act(context: ToolContext) -> str:
    """Ask, if nobody was asked before."""
    return await context.ask("Sure?") or "nobody answered"


def script(request: ModelRequest) -> ScriptedReply:
    if len(history_of(request)) == 1:
        return ScriptedReply(text="I do.", calls=[ScriptedCall("act")])
    return ScriptedReply(text="done")


class HoldsAnswers(Recording):
    """A store that holds the commit of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.held = asyncio.Event()
        self.gate = asyncio.Event()

    async def append(self, commit: Commit) -> int:
        answers = (ev.ApprovalAnswered, ev.QuestionAnswered)
        if any(isinstance(event, answers) for event in commit.events):
            self.held.set()
            await self.gate.wait()
        return await super().append(commit)


@pytest.mark.parametrize("kind", ["approval", "question"])
async def test_an_answer_whose_commit_outlasts_its_expiry_counts(kind: str) -> None:
    clock, store = FakeClock(), HoldsAnswers()
    judge = AsksWhen(lambda _: Risk("high", "why") if kind == "approval" else None)
    judge.expires = EXPIRES
    session_host = SessionHost(script, tools=[act], store=store, judge=judge, clock=clock)
    session = await session_host.open()
    await session_host.send(session, "go")
    fields: dict[str, Any] = {"command_id": "x", "session_id": "s1", "by": "tester"}
    if kind == "approval":
        approval = await until(session, ev.ApprovalAsked)
        command: cm.Command = cm.AnswerApproval(
            **fields, where="test", approval_id=approval.approval_id, decision="deny"
        )
    else:
        question = await until(session, ev.QuestionAsked)
        command = cm.AnswerQuestion(
            **fields, where="test", question_id=question.question_id, answer="yes"
        )
    answering = asyncio.ensure_future(session.tell(command))
    await store.held.wait()
    clock.advance(2 * EXPIRES)
    for _ in range(10):  # whoever would expire it has had its turn
        await asyncio.sleep(0)
    store.gate.set()
    await answering
    finished = await until(session, ev.CallFinished)
    if kind == "approval":
        assert (finished.outcome, finished.reason) == ("denied", "denied")
    else:
        assert finished.result == (Text("yes"),)
    assert not {"approval.expired", "question.expired"} & set(await session_host.types(session))
    await session_host.close()
