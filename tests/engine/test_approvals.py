"""Approvals and questions: each has exactly one outcome, whatever happens at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.approvals import Approvals, Rule, consent_rules, covers, rule
from keryx.engine.approvals.answers import ALWAYS
from keryx.engine.session import Session
from keryx.errors import AlreadyTakenError
from keryx.messages import Decision, Needs, Text
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.dispatch import Done
from keryx.ports.effects import NO_EFFECTS, writes
from keryx.ports.model import ModelRequest
from keryx.ports.tool import Risk
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.sessions import Recording, SessionHost, until

pytestmark = pytest.mark.promise("tools.4")

Make = Callable[..., SessionHost]


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Make]:
    session_hosts: list[SessionHost] = []

    def make_one(*args: Any, **kwargs: Any) -> SessionHost:
        session_hosts.append(SessionHost(*args, **kwargs))
        return session_hosts[-1]

    yield make_one
    for session_host in session_hosts:
        await session_host.close()


def judge(args: Any) -> Risk:
    level = "high" if args.word.startswith("rm") else "none" if args.word == "ls" else "low"
    needs = Needs(network=True) if "curl" in args.word else Needs()
    return Risk(level, f"it runs {args.word}", (args.word.split()[0],), needs)


@tool(effects=NO_EFFECTS, risk=judge)
async def shell(word: str) -> str:
    """Run it."""
    return f"ran {word}"


@tool(effects=lambda args: writes("a"))
async def write() -> str:
    """Write something."""
    return "written"


@tool(effects=NO_EFFECTS)
async def clarify(context: ToolContext, text: str) -> str:
    """Ask a person."""
    return await context.ask(text, ["yes", "no"]) or "[nobody answered]"


TOOLS = [shell, write, clarify]


def asking(*words: str) -> Callable[[ModelRequest], ScriptedReply]:
    """A model that asks for these at once, and then rests."""

    def script(request: ModelRequest) -> ScriptedReply:
        if any("rm" in str(m) or "ran" in str(m) for m in history_of(request)[1:]):
            return ScriptedReply(text="Done.")
        return ScriptedReply(calls=[ScriptedCall("shell", {"word": word}) for word in words])

    return script


def calling(name: str, **arguments: str) -> list[ScriptedReply]:
    return [ScriptedReply(calls=[ScriptedCall(name, arguments)]), ScriptedReply(text="Done.")]


def answer(approval_id: str, decision: Decision = "once", who: str = "ann") -> cm.AnswerApproval:
    return cm.AnswerApproval(
        command_id=f"c-{who}-{approval_id}",
        session_id="s1",
        by=who,
        approval_id=approval_id,
        decision=decision,
        where="screen",
    )


def asked_about(*patterns: str) -> ev.ApprovalAsked:
    """As it was logged before there were offers."""
    return ev.ApprovalAsked(
        session_id="s1",
        seq=1,
        at=0.0,
        turn_id="t1",
        approval_id="a1",
        call_id="c1",
        what="shell",
        why="",
        risk="high",
        expires=None,
        tool="shell",
        patterns=patterns,
    )


async def outcomes(session_host: SessionHost, session: Session) -> list[tuple[str, str | None]]:
    log = await session_host.log(session)
    return [(e.outcome, e.reason) for e in log if isinstance(e, ev.CallFinished)]


async def asked_all(session: Session, count: int) -> list[ev.ApprovalAsked]:
    approvals: list[ev.ApprovalAsked] = []
    async with session.hub.read(after=0) as reader:
        async for event in reader:
            if isinstance(event, ev.ApprovalAsked):
                approvals.append(event)
                if len(approvals) == count:
                    break
    return approvals


# -- modes and rules


@pytest.mark.parametrize(
    ("approvals", "word", "expected"),
    [
        (Approvals(mode="auto"), "make", "completed"),
        (Approvals(mode="auto"), "rm x", "denied"),
        (Approvals(mode="ask"), "ls", "completed"),
        (Approvals(mode="ask"), "make", "denied"),
        (Approvals(mode="never"), "rm x", "completed"),
        (Approvals(mode="never", rules=(rule("deny", "shell:rm"),)), "rm x", "denied"),
        (Approvals(mode="ask", rules=(rule("allow", "shell:ma*"),)), "make", "completed"),
        (Approvals(mode="auto", rules=(rule("ask", "shell"),)), "ls", "denied"),
        (Approvals(mode="auto", rules=(rule("allow", "*"),)), "rm x", "completed"),
        (Approvals(mode="auto", always=[Rule("allow", "shell", "rm")]), "rm y", "completed"),
    ],
    ids=lambda case: str(case)[:60],
)
async def test_what_asks_is_denied_where_nobody_is_there(
    make: Make, approvals: Approvals, word: str, expected: str
) -> None:
    session_host = make(calling("shell", word=word), tools=TOOLS, judge=approvals)
    session = await session_host.open()
    await session_host.send(session, "Go", attended=False)
    await session.wait_rested()
    ((outcome, reason),) = await outcomes(session_host, session)
    assert outcome == expected
    if expected == "denied":
        assert reason is not None
        assert "nobody is there" in reason or "rule" in reason


async def test_a_read_only_session_changes_nothing_whatever_the_mode(make: Make) -> None:
    session_host = make(calling("write"), tools=TOOLS, judge=Approvals(mode="never"))
    session = await session_host.open()
    change = cm.ChangeSession(command_id="c", session_id="s1", by="ann", read_only=True)
    assert await session.tell(change) == Done(True)
    await session_host.send(session, "Go")
    await session.wait_rested()
    assert await outcomes(session_host, session) == [("denied", "the session is read-only")]


async def test_a_need_is_asked_for_by_name_also_if_the_risk_is_low(make: Make) -> None:
    session_host = make(calling("shell", word="curl x"), tools=TOOLS)
    session = await session_host.open()
    await session_host.send(session, "Go")
    approval = await until(session, ev.ApprovalAsked)
    assert approval.needs == Needs(network=True)
    await session.tell(answer(approval.approval_id))
    await session.wait_rested()
    assert await outcomes(session_host, session) == [("completed", None)]


async def test_a_tool_whose_judgement_fails_is_asked_about(make: Make) -> None:
    def broken(args: Any) -> Risk:
        raise ValueError("oops")

    @tool(effects=NO_EFFECTS, risk=broken)
    async def odd() -> str:
        """Judge nothing."""
        return "odd"

    session_host = make(calling("odd"), tools=[odd])
    session = await session_host.open()
    await session_host.send(session, "Go")
    assert "the tool failed to judge it" in (await until(session, ev.ApprovalAsked)).why


async def test_a_judgement_may_look_at_the_workspace(make: Make) -> None:
    def outside(args: Any, workspace: Path) -> Risk:
        return Risk("high" if not args.path.startswith(str(workspace)) else "low")

    @tool(effects=NO_EFFECTS, risk=outside)
    async def touch(path: str) -> str:
        """Touch it."""
        return path

    assert touch.risk(touch.parse('{"path":"/w/a"}'), Path("/w")) == Risk("low")
    assert touch.risk(touch.parse('{"path":"/etc"}'), Path("/w")) == Risk("high")


# -- one outcome


async def test_of_two_screens_that_answer_at_once_one_wins(make: Make) -> None:
    session_host = make(calling("shell", word="rm x"), tools=TOOLS)
    session = await session_host.open()
    await session_host.send(session, "Go")
    approval = await until(session, ev.ApprovalAsked)
    said = await asyncio.gather(
        session.tell(answer(approval.approval_id, "once", "ann")),
        session.tell(answer(approval.approval_id, "deny", "bob")),
        return_exceptions=True,
    )
    assert [type(reply) for reply in said] == [Done, AlreadyTakenError]
    await session.wait_rested()
    log = await session_host.log(session)
    answered = [e for e in log if isinstance(e, ev.ApprovalAnswered)]
    assert [(e.decision, e.by) for e in answered] == [("once", "ann")]
    assert await outcomes(session_host, session) == [("completed", None)]


async def test_a_denied_call_says_so_and_the_turn_goes_on(make: Make) -> None:
    session_host = make(calling("shell", word="rm x"), tools=TOOLS)
    session = await session_host.open()
    await session_host.send(session, "Go")
    approval = await until(session, ev.ApprovalAsked)
    await session.tell(answer(approval.approval_id, "deny"))
    await session.wait_rested()
    assert await outcomes(session_host, session) == [("denied", "denied")]
    assert isinstance(session_host.model, ScriptedModel)
    (_, _, result) = history_of(session_host.model.asked[-1])
    assert result.content == (Text("[refused: the user said no]"),)


@pytest.mark.parametrize("decision", ["session", "always"])
async def test_a_lasting_consent_answers_others_that_wait_and_those_that_come(
    make: Make, decision: Decision
) -> None:
    session_host = make(asking("rm a", "rm b", "rmdir c"), tools=TOOLS)
    session = await session_host.open()
    await session_host.send(session, "Go")
    approvals = await asked_all(session, 3)
    by_pattern = {approval.what: approval for approval in approvals}
    first = next(approval for what, approval in by_pattern.items() if "rm a" in what)
    await session.tell(answer(first.approval_id, decision))
    other = next(approval for what, approval in by_pattern.items() if "rmdir" in what)
    await session.tell(answer(other.approval_id, "deny"))
    await session.wait_rested()
    log = await session_host.log(session)
    answers = {e.approval_id: e for e in log if isinstance(e, ev.ApprovalAnswered)}
    second = next(approval for what, approval in by_pattern.items() if "rm b" in what)
    assert answers[second.approval_id].follows == first.approval_id
    assert answers[other.approval_id].decision == "deny", "another pattern is another matter"
    results = await outcomes(session_host, session)
    assert sorted(results, key=str) == [
        ("completed", None),
        ("completed", None),
        ("denied", "denied"),
    ]
    records = await session_host.store.records(ALWAYS)
    assert len(records) == (1 if decision == "always" else 0)


async def test_an_approval_expires_after_its_time(make: Make) -> None:
    session_host = make(calling("shell", word="rm x"), tools=TOOLS, judge=Approvals(expires=0.01))
    session = await session_host.open()
    await session_host.send(session, "Go")
    expired = await until(session, ev.ApprovalExpired)
    assert expired.cause == "timeout"
    await session.wait_rested()
    assert await outcomes(session_host, session) == [("denied", "expired")]
    with pytest.raises(AlreadyTakenError):
        await session.tell(answer(expired.approval_id))


async def test_consent_to_a_call_that_is_like_no_other_covers_only_itself(make: Make) -> None:
    @tool(effects=NO_EFFECTS, risk=Risk("high", "who knows", ()))
    async def odd() -> str:
        """Do something that cannot be described."""
        return "odd"

    twice = [ScriptedReply(calls=[ScriptedCall("odd")]), *calling("odd")]
    session_host = make(twice, tools=[odd])
    session = await session_host.open()
    await session_host.send(session, "Go")
    first = await until(session, ev.ApprovalAsked)
    await session.tell(answer(first.approval_id, "always"))
    second = await until(session, ev.ApprovalAsked, after=first.seq)
    assert second.approval_id != first.approval_id
    assert await session_host.store.records(ALWAYS) == {}


def test_a_line_of_several_commands_needs_consent_to_each() -> None:
    rules = consent_rules(asked_about("git add", "ls *"), None)
    assert covers(rules, asked_about("ls *"))
    assert not covers(rules, asked_about("git add", "git push"))
    assert not covers(rules, asked_about())
    assert not covers(consent_rules(asked_about(), None), asked_about())
    assert any(rule.matches("shell", "ls *") for rule in rules)
    assert not any(rule.matches("shell", "ls anything") for rule in rules), "it is no pattern"


# -- crashes


async def crashed(
    make: Make, session_host: SessionHost, script: Any, **options: Any
) -> tuple[SessionHost, Session]:
    """A new owner over what is durable now."""
    again = make(script, tools=TOOLS, store=session_host.store, **options)
    return again, await again.open()


async def test_after_a_crash_it_waits_on_under_the_same_id_however_often(make: Make) -> None:
    script = calling("shell", word="rm x")
    session_host = make(script, tools=TOOLS, store=Recording())
    session = await session_host.open()
    await session_host.send(session, "Go")
    approval = await until(session, ev.ApprovalAsked)
    for _ in range(4):
        session_host, session = await crashed(make, session_host, script[1:])
        assert list(session.fold.approvals) == [approval.approval_id]
        assert session.fold.turn is not None, "waiting for a person parks nothing"
    await session.tell(answer(approval.approval_id))
    await session.wait_rested()
    assert await outcomes(session_host, session) == [("completed", None)]
    asked_for = [e for e in await session_host.log(session) if isinstance(e, ev.ApprovalAsked)]
    assert len(asked_for) == 1


async def test_a_turn_that_is_cancelled_by_a_crash_leaves_nobody_asked(make: Make) -> None:
    script = calling("shell", word="rm x")
    session_host = make(script, tools=TOOLS, store=Recording())
    session = await session_host.open()
    sent = await session_host.send(session, "Go")
    await until(session, ev.ApprovalAsked)
    store = session_host.store
    assert isinstance(store, Recording)
    await session_host.cancel(session, sent.turn_id)
    await session.wait_rested()
    cut = Recording()
    await cut.claim("s1")
    for commit in store.commits:
        upto = next(
            (at for at, e in enumerate(commit.events) if isinstance(e, ev.TurnCancelling)), None
        )
        if upto is not None:
            await cut.append(replace(commit, events=commit.events[: upto + 1]))
            break
        await cut.append(commit)
    session_host = make(script[1:], tools=TOOLS, store=cut)
    session = await session_host.open()
    await session.wait_rested()
    assert session.fold.approvals == {}
    row = await cut.session("s1")
    assert row is not None
    assert row.state == "idle"


# -- questions


async def test_a_question_is_answered_once_in_words(make: Make) -> None:
    session_host = make(calling("clarify", text="Which one?"), tools=TOOLS)
    session = await session_host.open()
    await session_host.send(session, "Go")
    question = await until(session, ev.QuestionAsked)
    assert (question.text, question.choices) == ("Which one?", ("yes", "no"))
    command = cm.AnswerQuestion(
        command_id="q1",
        session_id="s1",
        by="ann",
        question_id=question.question_id,
        answer="the left one",
        where="screen",
    )
    assert await session.tell(command) == Done(True)
    await session.wait_rested()
    log = await session_host.log(session)
    finished = next(e for e in log if isinstance(e, ev.CallFinished))
    assert finished.result == (Text("the left one"),)
    assert len([e for e in log if isinstance(e, ev.QuestionAnswered)]) == 1


async def test_a_question_nobody_can_answer_says_so_at_once(make: Make) -> None:
    session_host = make(calling("clarify", text="Which one?"), tools=TOOLS)
    session = await session_host.open()
    await session_host.send(session, "Go", attended=False)
    await session.wait_rested()
    log = await session_host.log(session)
    finished = next(e for e in log if isinstance(e, ev.CallFinished))
    assert finished.result == (Text("[nobody answered]"),)
    assert next(e for e in log if isinstance(e, ev.QuestionExpired)).cause == "undelivered"


async def test_a_steer_makes_a_question_pointless(make: Make) -> None:
    session_host = make(calling("clarify", text="Which one?"), tools=TOOLS)
    session = await session_host.open()
    await session_host.send(session, "Go")
    await until(session, ev.QuestionAsked)
    await session_host.send(session, "Never mind", "steer")
    await session.wait_rested()
    assert (await until(session, ev.QuestionExpired)).cause == "steer"
    assert session.fold.questions == {}
