"""Commands that are acknowledged, and what must hold of each after the host has died.

Run as `python -m tests.chaos.acknowledged CASE FOLDER`, it is a host that brings the case about,
gives the command, and kills itself the instant it is acknowledged.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from keryx import NO_EFFECTS, Keryx, tool
from keryx import commands as cm
from keryx import events as ev
from keryx import messages as ms
from keryx.aio.loops import run_loop
from keryx.app import SessionHandle
from keryx.messages import Text, ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.dispatch import Answer, Done
from keryx.ports.model import ModelRequest
from keryx.ports.tool_context import ToolContext

E = TypeVar("E", bound=ev.Event)


class World:
    """A home with one session, and the traces that its tools leave."""

    def __init__(self, folder: Path, app: Keryx, session: SessionHandle) -> None:
        self.folder = folder
        self.app = app
        self.session = session
        self.file = folder / "work" / "a.txt"

    async def log(self) -> list[ev.LoggedEvent]:
        return await self.app.store.events(self.session.session_id)

    def traces(self) -> list[str]:
        file = self.folder / "traces"
        return file.read_text().split() if file.exists() else []

    async def tell(self, kind: type[cm.Command], **fields: Any) -> Answer:
        answer = await self.session.tell(kind, **fields)
        assert not isinstance(answer, Done) or answer.done
        return answer

    async def until(self, kind: type[E], holds: Callable[[E], bool] = lambda _: True) -> E:
        """Wait by event for the first of that kind, in the log or to come."""
        async with aclosing(await self.session.follow(0)) as events:
            async for event in events:
                if isinstance(event, kind) and holds(event):
                    return event
        raise AssertionError("the session ended")

    async def turn(self, text: str) -> ev.TurnFinished:
        turn = await self.session.send(text, attended=True)
        return await self.until(ev.TurnFinished, lambda event: event.turn_id == turn.turn_id)


def tools_in(folder: Path, *, hangs: bool) -> list[Any]:
    """Those of the first life hang."""

    def trace(name: str) -> None:
        """Leave a mark that outlives this process."""
        with (folder / "traces").open("a") as file:
            file.write(f"{name}\n")

    @tool(effects=NO_EFFECTS, replay="safe")
    async def hang(context: ToolContext) -> str:
        """Leave a trace and hang."""
        await context.to_thread(trace, context.call_id)
        if hangs:
            context.progress(1)
            await asyncio.Event().wait()
        return "it hangs no more"

    @tool(effects=NO_EFFECTS, replay="safe")
    async def ask(context: ToolContext) -> str:
        """Ask, then hang."""
        answer = await context.ask("Which one?", ("a", "b"))
        if hangs:
            await asyncio.Event().wait()
        return f"answered {answer}"

    @tool(effects=NO_EFFECTS, risk=_risky)
    async def risky(context: ToolContext) -> str:
        """Do something that a person must allow."""
        await context.to_thread(trace, "risky")
        return "done"

    files = importlib.import_module("keryx.tools.files").file_tools()
    return [hang, ask, risky, *files]


def _risky(args: Any, workspace: Path) -> Any:
    return importlib.import_module("keryx.ports.tool").Risk("high", "it is risky")


def script(request: ModelRequest) -> ScriptedReply:
    last = history_of(request)[-1]
    if isinstance(last, ToolMessage):
        return ScriptedReply(text="done")
    assert isinstance(last, UserMessage)
    said = "".join(part.text for part in last.content if isinstance(part, Text))
    for name in ("hang", "ask", "risky", "look"):
        if f"use {name}" in said:
            return ScriptedReply(text="I do.", calls=[ScriptedCall(name)])
    if "write" in said:
        arguments = {"path": "a.txt", "content": "text"}
        return ScriptedReply(text="I write.", calls=[ScriptedCall("write_file", arguments)])
    if "Sum up" in request.system:
        return ScriptedReply(text="So far.")
    return ScriptedReply(text=f"You said: {said}. " + "word " * 50)


# -- the cases: what is brought about and acknowledged, and what holds afterwards


class Case(msgspec.Struct, frozen=True):
    """One command, in one situation."""

    kind: type[cm.Command]
    act: Callable[[World], Coroutine[Any, Any, None]]
    check: Callable[[World], Coroutine[Any, Any, None]]


CASES: Final[dict[str, Case]] = {}


def case(
    kind: type[cm.Command], check: Callable[[World], Coroutine[Any, Any, None]]
) -> Callable[[Callable[[World], Coroutine[Any, Any, None]]], None]:
    def add(act: Callable[[World], Coroutine[Any, Any, None]]) -> None:
        CASES[act.__name__] = Case(kind, act, check)

    return add


async def hanging(world: World) -> str:
    """A turn whose call hangs; its id."""
    async with aclosing(await world.session.follow(0)) as events:
        turn = await world.session.send("use hang", attended=True)
        async for event in events:
            if isinstance(event, ev.CallProgress):
                break
    return turn.turn_id


async def is_answered(world: World) -> None:
    accepted = await world.until(ev.MessageAccepted)
    finished = await world.until(ev.TurnFinished, lambda e: e.turn_id == accepted.turn_id)
    assert (accepted.text, finished.outcome) == ("hello", "completed")


@case(cm.SendMessage, is_answered)
async def a_message(world: World) -> None:
    await world.tell(cm.SendMessage, text="hello")


async def steer_is_delivered(world: World) -> None:
    steer = await world.until(ev.MessageAccepted, lambda e: e.mode == "steer")
    await world.until(ev.MessageDelivered, lambda e: e.message_id == steer.message_id)
    finished = await world.until(ev.TurnFinished)
    assert finished.turn_id == steer.turn_id


@case(cm.SendMessage, steer_is_delivered)
async def a_steer(world: World) -> None:
    await hanging(world)
    await world.tell(cm.SendMessage, text="rather this", mode="steer")


async def interrupt_holds(world: World) -> None:
    interrupt = await world.until(ev.MessageAccepted, lambda e: e.mode == "interrupt")
    first = await world.until(ev.TurnFinished)
    await world.until(ev.TurnFinished, lambda e: e.turn_id == interrupt.turn_id)
    assert first.outcome == "cancelled"
    assert len(world.traces()) == 1


@case(cm.SendMessage, interrupt_holds)
async def an_interrupt(world: World) -> None:
    await hanging(world)
    await world.tell(cm.SendMessage, text="stop, and this", mode="interrupt")


async def queued(world: World) -> str:
    await hanging(world)
    await world.tell(cm.SendMessage, text="later")
    return (await world.until(ev.MessageAccepted, lambda e: e.text == "later")).message_id


async def changed_text_is_delivered(world: World) -> None:
    message = await world.until(ev.MessageAccepted, lambda e: e.text == "later")
    await world.until(ev.TurnFinished, lambda e: e.turn_id == message.turn_id)
    replies = [event.text for event in await world.log() if isinstance(event, ev.StepReplied)]
    assert "changed" in replies[-1]


@case(cm.ChangeMessage, changed_text_is_delivered)
async def a_changed_message(world: World) -> None:
    await world.tell(cm.ChangeMessage, message_id=await queued(world), text="changed")


async def message_is_gone(world: World) -> None:
    message = await world.until(ev.MessageAccepted, lambda e: e.text == "later")
    await world.until(ev.TurnFinished)
    view = await world.session.view()
    assert view.queue == ()
    log = await world.log()
    delivered = [event.message_id for event in log if isinstance(event, ev.MessageDelivered)]
    assert message.message_id not in delivered


@case(cm.WithdrawMessage, message_is_gone)
async def a_withdrawn_message(world: World) -> None:
    await world.tell(cm.WithdrawMessage, message_id=await queued(world))


async def turn_is_cancelled(world: World) -> None:
    finished = await world.until(ev.TurnFinished)
    assert finished.outcome == "cancelled"
    assert len(world.traces()) == 1


@case(cm.CancelTurn, turn_is_cancelled)
async def a_cancelled_turn(world: World) -> None:
    await world.tell(cm.CancelTurn, turn_id=await hanging(world))


async def queued_turn_is_cancelled(world: World) -> None:
    message = await world.until(ev.MessageAccepted, lambda e: e.text == "later")
    finished = await world.until(ev.TurnFinished, lambda e: e.turn_id == message.turn_id)
    assert (finished.outcome, finished.started) == ("cancelled", False)


@case(cm.CancelTurn, queued_turn_is_cancelled)
async def a_turn_cancelled_before_its_start(world: World) -> None:
    await queued(world)
    message = await world.until(ev.MessageAccepted, lambda e: e.text == "later")
    await world.tell(cm.CancelTurn, turn_id=message.turn_id)


async def call_is_cancelled(world: World) -> None:
    finished = await world.until(ev.CallFinished)
    assert (finished.outcome, finished.reason) == ("cancelled", "interrupt")
    if finished.turn_id is not None:
        await world.until(ev.TurnFinished)
    assert len(world.traces()) == 1, "it did not run again"


@case(cm.CancelCall, call_is_cancelled)
async def a_cancelled_call_of_a_turn(world: World) -> None:
    await hanging(world)
    started = await world.until(ev.CallStarted)
    await world.tell(cm.CancelCall, call_id=started.call_id)


@case(cm.CancelCall, call_is_cancelled)
async def a_cancelled_call_of_a_person(world: World) -> None:
    async with aclosing(await world.session.follow(0)) as events:
        await world.tell(cm.RunCall, call_id="mine", tool="hang")
        async for event in events:
            if isinstance(event, ev.CallProgress):
                break
    await world.tell(cm.CancelCall, call_id="mine")


async def call_ran(world: World) -> None:
    finished = await world.until(ev.CallFinished)
    assert (finished.call_id, finished.outcome) == ("mine", "completed")
    assert world.file.read_text() == "by hand"


@case(cm.RunCall, call_ran)
async def a_call_that_a_person_runs(world: World) -> None:
    arguments = msgspec.json.encode({"path": "a.txt", "content": "by hand"}).decode()
    await world.tell(cm.RunCall, call_id="mine", tool="write_file", arguments=arguments)


async def file_is_gone(world: World) -> None:
    await world.session.view()  # whatever was pending is done by the time it is opened
    assert not world.file.exists()


@case(cm.RevertFiles, file_is_gone)
async def a_revert(world: World) -> None:
    await world.turn("write")
    assert world.file.exists()
    change = await world.until(ev.FilesChanged)
    await world.tell(cm.RevertFiles, changes=(change.seq,))


async def turn_is_undone(world: World) -> None:
    await file_is_gone(world)
    await world.until(ev.TurnUndone)


@case(cm.UndoTurn, turn_is_undone)
async def an_undone_turn(world: World) -> None:
    finished = await world.turn("write")
    await world.tell(cm.UndoTurn, turn_id=finished.turn_id)


async def turn_is_restored(world: World) -> None:
    restored = await world.until(ev.TurnRestored)
    log = await world.log()
    assert [event for event in log if isinstance(event, ev.TurnRestored)] == [restored]


@case(cm.RestoreTurn, turn_is_restored)
async def a_restored_turn(world: World) -> None:
    first = await world.turn("one")
    turn = await world.session.send("two", attended=True, replaces=first.turn_id)
    await world.until(ev.TurnFinished, lambda event: event.turn_id == turn.turn_id)
    await world.tell(cm.RestoreTurn, turn_id=first.turn_id)


async def waiting_for_consent(world: World) -> str:
    await world.session.send("use risky", attended=True)
    return (await world.until(ev.ApprovalAsked)).approval_id


async def ran_once_unasked(world: World) -> None:
    await world.until(ev.TurnFinished)
    log = await world.log()
    assert len([event for event in log if isinstance(event, ev.ApprovalAsked)]) == 1
    assert len(world.traces()) <= 1
    (finished,) = [event for event in log if isinstance(event, ev.CallFinished)]
    assert finished.outcome in ("completed", "unknown")  # it may have died in the middle of it
    assert finished.started


@case(cm.AnswerApproval, ran_once_unasked)
async def an_approval_once(world: World) -> None:
    approval = await waiting_for_consent(world)
    fields = {"decision": "once", "where": "test"}
    await world.tell(cm.AnswerApproval, approval_id=approval, **fields)


async def rule_holds(world: World) -> None:
    await ran_once_unasked(world)
    await world.turn("use risky")
    approvals = [event for event in await world.log() if isinstance(event, ev.ApprovalAsked)]
    assert len(approvals) == 1


@case(cm.AnswerApproval, rule_holds)
async def an_approval_always(world: World) -> None:
    approval = await waiting_for_consent(world)
    fields = {"decision": "always", "where": "test"}
    await world.tell(cm.AnswerApproval, approval_id=approval, **fields)


async def call_is_denied(world: World) -> None:
    finished = await world.until(ev.CallFinished)
    assert finished.outcome == "denied"
    assert world.traces() == []


@case(cm.AnswerApproval, call_is_denied)
async def an_approval_denied(world: World) -> None:
    approval = await waiting_for_consent(world)
    fields = {"decision": "deny", "where": "test"}
    await world.tell(cm.AnswerApproval, approval_id=approval, **fields)


async def answer_is_used(world: World) -> None:
    finished = await world.until(ev.CallFinished)
    assert finished.result == (Text("answered b"),)
    log = await world.log()
    assert len([event for event in log if isinstance(event, ev.QuestionAsked)]) == 1


@case(cm.AnswerQuestion, answer_is_used)
async def an_answered_question(world: World) -> None:
    await world.session.send("use ask", attended=True)
    question = await world.until(ev.QuestionAsked)
    fields = {"answer": "b", "where": "test"}
    await world.tell(cm.AnswerQuestion, question_id=question.question_id, **fields)


async def result_of_the_client_is_used(world: World) -> None:
    finished = await world.until(ev.CallFinished)
    assert (finished.outcome, finished.result) == ("completed", (Text("seen"),))
    assert (await world.until(ev.TurnFinished)).outcome == "completed"


@case(cm.AnswerCalls, result_of_the_client_is_used)
async def a_result_of_the_client(world: World) -> None:
    look = ms.ClientTool(name="look", parameters='{"type":"object"}', description="Look")
    options = ms.TurnOptions(client_tools=(look,))
    await world.tell(cm.SendMessage, text="use look", options=options, attended=False)
    call = await world.until(ev.CallStarted)
    await world.tell(cm.AnswerCalls, answers=(ms.CallAnswer(call.call_id, "seen"),))


async def settings_hold(world: World) -> None:
    settings = (await world.session.view()).settings
    assert (settings.title, settings.effort, settings.pinned) == ("New", "high", True)
    assert [row.tags for row in await world.app.store.sessions(tag="work")] == [("Tea", "Work")]


@case(cm.ChangeSession, settings_hold)
async def changed_settings(world: World) -> None:
    await world.tell(
        cm.ChangeSession, title="New", effort="high", pinned=True, tags=("Work", "Tea")
    )


async def summary_stands(world: World) -> None:
    assert (await world.until(ev.ContextCompacted)).summary == "So far."


@case(cm.CompactContext, summary_stands)
async def a_summary(world: World) -> None:
    await world.turn("hello " * 200)
    await world.tell(cm.CompactContext)


async def fork_is_there(world: World) -> None:
    fork = await world.app.open("forked")
    finished = await (await fork.send("and you?")).result()
    assert finished.outcome == "completed"


@case(cm.ForkSession, fork_is_there)
async def a_fork(world: World) -> None:
    await world.turn("hello")
    await world.tell(cm.ForkSession, new_session_id="forked")


async def draft_is_there(world: World) -> None:
    assert (await world.session.view()).draft.text == "half a"


@case(cm.SetDraft, draft_is_there)
async def a_draft(world: World) -> None:
    await world.tell(cm.SetDraft, text="half a")


# -- lives


async def open_world(folder: Path) -> AsyncGenerator[World]:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    session_file = folder / "session"
    is_second = session_file.exists()
    tools = tools_in(folder, hangs=not is_second)
    model = ScriptedModel(script)
    async with Keryx(model=model, tools=tools, workspace=work, home=folder / "home") as app:
        if is_second:
            session = await app.open(session_file.read_text())
        else:
            session = await app.open()
            session_file.write_text(session.session_id)
        yield World(folder, app, session)


async def first_life(name: str, folder: Path) -> None:
    async with aclosing(open_world(folder)) as worlds:
        async for world in worlds:
            await CASES[name].act(world)
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run_loop(first_life(sys.argv[1], Path(sys.argv[2])))
