"""Tools of the client: a call waits for its result, durably, and takes it once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keryx import NO_EFFECTS, ToolContext, tool
from keryx import commands as cm
from keryx import events as ev
from keryx.aio.clock import FakeClock
from keryx.engine.session import Session
from keryx.errors import AlreadyTakenError, UserMustActError
from keryx.messages import CallAnswer, ClientTool, Text, ToolChoice, TurnOptions
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.dispatch import Done
from keryx.ports.model import ModelRequest
from tests.engine.sessions import SessionHost, until

pytestmark = pytest.mark.promise("page20.33")

LOOK = ClientTool(name="look", parameters='{"type":"object"}', description="Look around")
OPTIONS = TurnOptions(client_tools=(LOOK,), instructions="Be kind.", max_tokens=5)


def script(request: ModelRequest) -> ScriptedReply:
    if len(history_of(request)) == 1:
        return ScriptedReply(calls=[ScriptedCall("look"), ScriptedCall("look", {"at": 2})])
    return ScriptedReply(text="done")


def command(session: Session, **fields: Any) -> dict[str, Any]:
    return {"session_id": session.session_id, "by": "client", **fields}


async def send(session: Session, options: TurnOptions = OPTIONS) -> None:
    fields = command(session, command_id="m", text="go", options=options, attended=False)
    await session.tell(cm.SendMessage(**fields))


async def answer(session: Session, *call_ids: str, command_id: str = "a") -> Any:
    answers = tuple(CallAnswer(call_id, f"seen {call_id[-1]}") for call_id in call_ids)
    fields = command(session, command_id=command_id, answers=answers)
    return await session.tell(cm.AnswerCalls(**fields))


async def waiting(session: Session, count: int = 2) -> list[str]:
    """The calls that wait, once there are so many."""
    calls: list[str] = []
    async with session.hub.read(after=0) as reader:
        async for event in reader:
            if isinstance(event, ev.CallStarted):
                calls.append(event.call_id)
            if len(calls) == count:
                break
    return calls


async def test_a_call_waits_and_takes_its_result_once() -> None:
    requests: list[ModelRequest] = []

    def recorded(request: ModelRequest) -> ScriptedReply:
        requests.append(request)
        return script(request)

    session_host = SessionHost(recorded)
    session = await session_host.open()
    await send(session)
    first, second = await waiting(session)
    assert [spec.name for spec in requests[0].tools] == ["look"]
    assert (requests[0].system[-8:], requests[0].max_tokens) == ("Be kind.", 5)
    with pytest.raises(UserMustActError, match=second):
        await answer(session, first)
    with pytest.raises(AlreadyTakenError):
        await answer(session, first, second, "p_other.1")
    assert await answer(session, first, second) == Done(True)
    assert await answer(session, first, second) == Done(True)  # the same command again
    with pytest.raises(AlreadyTakenError):
        await answer(session, first, second, command_id="b")
    await session.wait_rested()
    results = [e.result for e in await session_host.log(session) if isinstance(e, ev.CallFinished)]
    assert results == [(Text("seen 0"),), (Text("seen 1"),)]
    assert (await session_host.types(session)).count("calls.answered") == 1
    await session_host.close()


async def test_a_restart_goes_on_waiting_and_a_result_from_before_it_counts() -> None:
    first_host = SessionHost(script)
    session = await first_host.open()
    await send(session)
    calls = await waiting(session)
    await first_host.close()
    for _ in range(4):  # waiting is no attempt, however often the host is started
        again = SessionHost(script, store=first_host.store)
        session = await again.open()
        await until(session, ev.TurnResumed, after=session.fold.last_seq - 1)
        await again.close()
    last_host = SessionHost(script, store=first_host.store)
    session = await last_host.open()
    await answer(session, *calls)
    await session.wait_rested()
    [finished] = [e for e in await last_host.log(session) if isinstance(e, ev.TurnFinished)]
    assert finished.outcome == "completed"
    await last_host.close()


async def test_a_client_that_never_answers_ends_the_call_after_a_day() -> None:
    clock = FakeClock()
    session_host = SessionHost(script, clock=clock)
    session = await session_host.open()
    await send(session)
    await waiting(session)
    while (await session_host.types(session)).count("call.finished") < 2:
        clock.advance(3600.0)
        await asyncio.sleep(0)
    finished = await until(session, ev.CallFinished)
    assert finished.outcome == "failed"
    assert "within a day" in str(finished.result)
    await session.wait_rested()
    await session_host.close()


async def test_only_the_model_can_call_a_tool_of_the_client() -> None:
    @tool(effects=NO_EFFECTS, container=True)
    async def nest(context: ToolContext) -> str:
        """Call another tool."""
        return (await context.call("look", {})).text

    def nesting(request: ModelRequest) -> ScriptedReply:
        is_first = len(history_of(request)) == 1
        return ScriptedReply(calls=[ScriptedCall("nest")]) if is_first else ScriptedReply(text="ok")

    session_host = SessionHost(nesting, tools=[nest])
    session = await session_host.open()
    await send(session)
    finished = await until(session, ev.CallFinished)
    assert "a tool of the client" in str(finished.result)
    await session.wait_rested()
    await session_host.close()


@pytest.mark.parametrize(
    "tools",
    [
        (ClientTool(name="no spaces", parameters="{}"),),
        (ClientTool(name="look", parameters="[]"),),
        (ClientTool(name="look", parameters="{"),),
        (LOOK, LOOK),
    ],
)
async def test_a_tool_that_no_model_could_be_told_of_is_refused(
    tools: tuple[ClientTool, ...],
) -> None:
    session_host = SessionHost(script)
    session = await session_host.open()
    with pytest.raises(UserMustActError):
        await send(session, TurnOptions(client_tools=tools))
    assert "message.accepted" not in await session_host.types(session)
    await session_host.close()


@pytest.mark.parametrize(
    "options",
    [
        TurnOptions(tool_choice=ToolChoice()),
        TurnOptions(client_tools=(LOOK,), tool_choice=ToolChoice(name="other")),
    ],
)
async def test_the_choice_of_a_tool_that_is_not_there_is_refused(options: TurnOptions) -> None:
    session_host = SessionHost(script)
    session = await session_host.open()
    with pytest.raises(UserMustActError, match="not there"):
        await send(session, options)
    assert "message.accepted" not in await session_host.types(session)
    await session_host.close()


@pytest.mark.promise("page20.36")
async def test_a_choice_binds_the_first_reply_also_after_a_restart() -> None:
    reached, requests = asyncio.Event(), list[ModelRequest]()

    async def hold() -> None:
        reached.set()
        await asyncio.Event().wait()

    def recorded(request: ModelRequest) -> ScriptedReply:
        requests.append(request)
        return script(request)

    choice = ToolChoice(name="look")
    first_host = SessionHost(lambda _: ScriptedReply(text="I beg", hold=hold))
    session = await first_host.open()
    await send(session, TurnOptions(client_tools=(LOOK,), tool_choice=choice))
    await reached.wait()
    await first_host.close()
    again = SessionHost(recorded, store=first_host.store)
    session = await again.open()
    await answer(session, *await waiting(session))
    await until(session, ev.TurnFinished)
    assert [request.tool_choice for request in requests] == [choice, None]
    await again.close()
