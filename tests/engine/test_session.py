"""Sessions: commands in, facts out, one terminal fact per turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
import pytest_asyncio

from keryx import commands as cm
from keryx import events as ev
from keryx.engine.calls.call_hooks import CallView
from keryx.engine.limits import Limits
from keryx.engine.log.dedup import row_of
from keryx.errors import AlreadyTakenError, KeyReusedError, ModelError
from keryx.messages import AssistantMessage, Text, ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.dispatch import Done, Sent
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.model import ModelRequest
from keryx.ports.tool import Risk
from keryx.ports.tool_context import ToolContext
from keryx.tools.function import tool
from tests.engine.sessions import Recording, SessionHost, until

Make = Callable[..., SessionHost]


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Make]:
    session_hosts: list[SessionHost] = []

    def make_one(*args: object, **kwargs: object) -> SessionHost:
        session_hosts.append(SessionHost(*args, **kwargs))  # pyright: ignore[reportArgumentType] (passed on)
        return session_hosts[-1]

    yield make_one
    for session_host in session_hosts:
        await session_host.close()


@tool(effects=NO_EFFECTS)
async def echo(text: str) -> str:
    """Say it again."""
    return text


def say(text: str, *calls: ScriptedCall) -> ScriptedReply:
    return ScriptedReply(text=text, calls=calls)


ECHO_TWICE = [
    say("Let me see.", ScriptedCall("echo", {"text": "a"}), ScriptedCall("echo", {"text": "b"})),
    say("Done."),
]


async def test_a_turn_without_tools_is_two_commits(make: Make) -> None:
    session_host = make([say("Hello!")])
    session = await session_host.open()
    sent = await session_host.send(session, "Hi")
    await session.wait_rested()
    assert await session_host.types(session) == [
        "session.opened",
        "message.accepted",
        "session.changed",
        "turn.started",
        "message.delivered",
        "step.started",
        "step.replied",
        "turn.finished",
    ]
    assert isinstance(session_host.store, Recording)
    assert len(session_host.store.commits) <= 4
    last = (await session_host.log(session))[-1]
    assert isinstance(last, ev.TurnFinished)
    assert (last.turn_id, last.outcome) == (sent.turn_id, "completed")
    assert session.fold.settings.title == "Hi"


async def test_calls_run_and_the_model_sees_their_results_in_call_order(make: Make) -> None:
    session_host = make(ECHO_TWICE, tools=[echo])
    session = await session_host.open()
    await session_host.send(session, "Go")
    await session.wait_rested()
    user, assistant, one, other = history_of(session_host.model.asked[1])
    assert isinstance(user, UserMessage)
    assert isinstance(assistant, AssistantMessage)
    assert isinstance(one, ToolMessage)
    assert isinstance(other, ToolMessage)
    assert [call.call_id for call in assistant.calls] == [one.call_id, other.call_id]
    assert "[workspace: /]" in str(user.content)
    accepted = next(e for e in await session_host.log(session) if isinstance(e, ev.MessageAccepted))
    assert accepted.text == "Go", "the tag is not in the stored text"


async def test_the_log_has_no_gaps_and_readers_see_it_live(make: Make) -> None:
    session_host = make(ECHO_TWICE, tools=[echo])
    session = await session_host.open()
    async with session.hub.read(after=0) as reader:
        await session_host.send(session, "Go")
        seen: list[int] = []
        deltas: list[str] = []
        async for event in reader:
            if isinstance(event, ev.TextDelta):
                deltas.append(event.text)
            if isinstance(event, ev.LoggedEvent):
                seen.append(event.seq)
            if isinstance(event, ev.TurnFinished):
                break
    assert seen == list(range(1, len(seen) + 1))
    assert "".join(deltas) == "Let me see.Done."


async def test_the_same_key_twice_is_one_message(make: Make) -> None:
    session_host = make([say("One."), say("Two.")])
    session = await session_host.open()
    first = await session_host.send(session, "Hi", key="k")
    again = await session_host.send(session, "Hi", key="k")
    assert first == again
    await session.wait_rested()
    assert (await session_host.types(session)).count("message.accepted") == 1
    with pytest.raises(KeyReusedError, match="another command"):
        await session_host.send(session, "Something else", key="k")


async def test_queued_messages_are_turns_of_their_own_in_order(make: Make) -> None:
    gate = asyncio.Event()
    session_host = make([ScriptedReply(text="One.", hold=gate.wait), say("Two."), say("Three.")])
    session = await session_host.open()
    sent = [await session_host.send(session, text) for text in ("a", "b", "c")]
    gate.set()
    await session.wait_rested()
    finished = [
        e.turn_id for e in await session_host.log(session) if isinstance(e, ev.TurnFinished)
    ]
    assert finished == [turn.turn_id for turn in sent]


async def test_a_queued_message_can_be_withdrawn(make: Make) -> None:
    gate = asyncio.Event()
    session_host = make([ScriptedReply(text="One.", hold=gate.wait)])
    session = await session_host.open()
    await session_host.send(session, "a")
    queued = await session_host.send(session, "b")
    command = cm.WithdrawMessage(
        command_id="w", session_id="s1", by="tester", message_id=queued.message_id
    )
    assert await session.tell(command) == Done(True)
    again = cm.WithdrawMessage(
        command_id="c-again", session_id="s1", by="tester", message_id=command.message_id
    )
    assert await session.tell(again) == Done(False)
    gate.set()
    await session.wait_rested()
    assert len(session_host.model.asked) == 1


async def test_a_cancelled_turn_keeps_what_was_visible(make: Make) -> None:
    session_host = make([ScriptedReply(text="Once upon a time", hold=asyncio.Event().wait)])
    session = await session_host.open()
    sent = await session_host.send(session, "Tell")
    await until(session, ev.TextDelta)
    assert await session_host.cancel(session, sent.turn_id) is True
    await session.wait_rested()
    assert await session_host.cancel(session, sent.turn_id) is False
    types = await session_host.types(session)
    assert types[-3:] in (
        ["turn.cancelling", "step.replied", "turn.finished"],
        ["turn.cancelling", "step.abandoned", "turn.finished"],
    )
    last = (await session_host.log(session))[-1]
    assert isinstance(last, ev.TurnFinished)
    assert (last.outcome, last.reason) == ("cancelled", "interrupt")


async def test_a_turn_cancelled_before_its_start_never_starts(make: Make) -> None:
    gate = asyncio.Event()
    session_host = make([ScriptedReply(text="One.", hold=gate.wait)])
    session = await session_host.open()
    await session_host.send(session, "a")
    queued = await session_host.send(session, "b")
    assert await session_host.cancel(session, queued.turn_id) is True
    gate.set()
    await session.wait_rested()
    log = [
        e for e in await session_host.log(session) if getattr(e, "turn_id", None) == queued.turn_id
    ]
    assert [ev.type_of(event) for event in log] == [
        "message.accepted",
        "turn.cancelling",
        "message.expired",
        "turn.finished",
    ]
    assert isinstance(log[-1], ev.TurnFinished)
    assert log[-1].started is False


async def test_a_steer_cuts_the_reply_and_is_in_the_next_request(make: Make) -> None:
    session_host = make(
        [ScriptedReply(text="Long story", hold=asyncio.Event().wait), say("Short.")]
    )
    session = await session_host.open()
    sent = await session_host.send(session, "Tell")
    await until(session, ev.TextDelta)
    steer = await session_host.send(session, "Shorter!", "steer")
    assert steer.turn_id == sent.turn_id
    await session.wait_rested()
    *_, guidance = history_of(session_host.model.asked[1])
    assert isinstance(guidance, UserMessage)
    assert "Shorter!" in str(guidance.content)
    finished = [e for e in await session_host.log(session) if isinstance(e, ev.TurnFinished)]
    assert [event.outcome for event in finished] == ["completed"]


@pytest.mark.promise("001.4", "001.5")
async def test_a_steer_stops_running_calls_and_keeps_their_partial_results(make: Make) -> None:
    @tool(effects=NO_EFFECTS)
    async def search(context: ToolContext) -> str:
        """Search for ever."""
        context.emit("found one")
        await asyncio.get_running_loop().create_future()
        return "never"

    session_host = make([say("", ScriptedCall("search")), say("Enough.")], tools=[search])
    session = await session_host.open()
    await session_host.send(session, "Search")
    await until(session, ev.CallOutput)
    await session_host.send(session, "Stop searching", "steer")
    await session.wait_rested()
    *_, result, guidance = history_of(session_host.model.asked[1])
    assert "cancelled: steer" in str(result)
    assert "found one" in str(result)
    assert "Stop searching" in str(guidance)


async def test_a_steer_that_waits_cuts_nothing(make: Make) -> None:
    gate = asyncio.Event()
    session_host = make([ScriptedReply(text="Whole.", hold=gate.wait), say("And more.")])
    session = await session_host.open()
    await session_host.send(session, "Tell")
    await until(session, ev.TextDelta)
    await session_host.send(session, "Later", "steer", wait=True)
    gate.set()
    await session.wait_rested()
    replies = [e for e in await session_host.log(session) if isinstance(e, ev.StepReplied)]
    assert [(reply.text, reply.cut) for reply in replies] == [
        ("Whole.", False),
        ("And more.", False),
    ]


async def test_an_interrupt_ends_the_turn_and_goes_first_then_steers_then_the_queue(
    make: Make,
) -> None:
    session_host = make(
        [
            ScriptedReply(text="One.", hold=asyncio.Event().wait),
            *(say(str(number)) for number in range(3)),
        ]
    )
    session = await session_host.open()
    await session_host.send(session, "first")
    await until(session, ev.TextDelta)
    queued = await session_host.send(session, "queued")
    steered = await session_host.send(session, "steered", "steer", wait=True)
    interrupting = await session_host.send(session, "interrupting", "interrupt")
    await session.wait_rested()
    delivered = [
        event.message_id
        for event in await session_host.log(session)
        if isinstance(event, ev.MessageDelivered)
    ]
    assert delivered[1:] == [
        interrupting.message_id,
        steered.message_id,
        queued.message_id,
    ]
    outcomes = [
        e.outcome for e in await session_host.log(session) if isinstance(e, ev.TurnFinished)
    ]
    assert outcomes == ["cancelled", "completed", "completed", "completed"]


async def test_a_model_that_fails_ends_the_turn_with_its_kind_and_hint(make: Make) -> None:
    session_host = make(
        [ScriptedReply(text="Hm", error=ModelError("auth", "bad key", "set a key"))]
    )
    session = await session_host.open()
    await session_host.send(session, "Hi")
    await session.wait_rested()
    last = (await session_host.log(session))[-1]
    assert isinstance(last, ev.TurnFinished)
    assert last.outcome == "failed"
    assert last.error == ev.TurnError(kind="auth", message="bad key", hint="set a key")


def again(request: ModelRequest) -> ScriptedReply:
    return say("", ScriptedCall("echo", {"text": "again"}))


async def test_a_turn_that_does_not_end_is_ended_by_its_limit(make: Make) -> None:
    session_host = make(
        again,
        tools=[echo],
        limits=Limits(steps=5),
    )
    session = await session_host.open()
    await session_host.send(session, "Loop")
    await session.wait_rested()
    last = (await session_host.log(session))[-1]
    assert isinstance(last, ev.TurnFinished)
    assert last.error is not None
    assert (last.outcome, last.error.kind) == ("failed", "limit")
    assert len(session_host.model.asked) == 5


def always_ask(call: CallView) -> Risk | None:
    return Risk("high", "it echoes")


async def test_an_approval_is_asked_answered_once_and_then_the_call_runs(make: Make) -> None:
    session_host = make(
        [say("", ScriptedCall("echo", {"text": "a"})), say("Done.")], tools=[echo], ask=always_ask
    )
    session = await session_host.open()
    await session_host.send(session, "Go")
    approval = await until(session, ev.ApprovalAsked)
    assert "call.started" not in await session_host.types(session)
    answer = cm.AnswerApproval(
        command_id="x",
        session_id="s1",
        by="tester",
        approval_id=approval.approval_id,
        decision="once",
        where="test",
    )
    assert await session.tell(answer) == Done(True)
    assert await session.tell(answer) == Done(True), "the same command again is the same command"
    with pytest.raises(AlreadyTakenError):
        await session.tell(msgspec.structs.replace(answer, command_id="y"))
    await session.wait_rested()
    types = await session_host.types(session)
    assert types.index("approval.answered") < types.index("call.started")


async def test_a_steer_makes_a_pending_approval_pointless(make: Make) -> None:
    session_host = make(
        [say("", ScriptedCall("echo", {"text": "a"})), say("Fine.")],
        tools=[echo],
        ask=always_ask,
    )
    session = await session_host.open()
    await session_host.send(session, "Go")
    await until(session, ev.ApprovalAsked)
    await session_host.send(session, "Don't", "steer")
    await session.wait_rested()
    log = await session_host.log(session)
    expired = next(event for event in log if isinstance(event, ev.ApprovalExpired))
    finished = next(event for event in log if isinstance(event, ev.CallFinished))
    assert expired.cause == "steer"
    assert (finished.outcome, finished.started) == ("cancelled", False)


async def test_long_arguments_live_in_a_blob_and_reach_the_tool_whole(make: Make) -> None:
    text = "x" * 100_000
    session_host = make([say("", ScriptedCall("echo", {"text": text})), say("Done.")], tools=[echo])
    session = await session_host.open()
    await session_host.send(session, "Go")
    await session.wait_rested()
    log = await session_host.log(session)
    started = next(event for event in log if isinstance(event, ev.CallStarted))
    finished = next(event for event in log if isinstance(event, ev.CallFinished))
    assert len(started.arguments) < 10_000
    assert started.arguments_blob is not None
    whole = await session_host.store.blob(started.arguments_blob)
    assert whole is not None
    assert msgspec.json.decode(whole) == {"text": text}
    assert finished.result[0] == Text(text)


async def test_a_command_that_others_entered_is_taken_once(make: Make) -> None:
    """A front end without the owner puts a message into the store's inbox, twice by mistake."""
    session_host = make([say("One."), say("Two.")])
    session = await session_host.open()
    command = cm.SendMessage(command_id="c9", session_id="s1", by="elsewhere", text="Hi", key="k9")
    row = row_of(command)
    assert await session_host.store.enter("s1", row) is True
    assert await session_host.store.enter("s1", row) is False
    await session.read_inbox()
    await session.read_inbox()
    await session.wait_rested()
    assert await session_host.store.pending("s1") == []
    accepted = [e for e in await session_host.log(session) if isinstance(e, ev.MessageAccepted)]
    assert [event.text for event in accepted] == ["Hi"]
    answer = await session.tell(command)
    assert isinstance(answer, Sent)
    assert answer.message_id == accepted[0].message_id


async def test_a_pending_command_without_effect_is_done_with_too(make: Make) -> None:
    session_host = make([])
    session = await session_host.open()
    late = cm.CancelTurn(command_id="c1", session_id="s1", by="elsewhere", turn_id="t_gone")
    await session_host.store.enter("s1", row_of(late))
    await session.read_inbox()
    assert await session_host.store.pending("s1") == []


async def test_a_reply_that_a_graceful_stop_cuts_is_asked_for_again(make: Make) -> None:
    gate = asyncio.Event()
    session_host = make([ScriptedReply(text="Half of it", hold=gate.wait)], store=Recording())
    session = await session_host.open()
    await session_host.send(session, "Go")
    async with session.hub.read(after=0) as reader:
        async for event in reader:
            if isinstance(event, ev.TextDelta | ev.StepSnapshot) and event.text:
                break
    await session.close()
    abandoned = [e for e in await session_host.log(session) if isinstance(e, ev.StepAbandoned)]
    assert [event.cause for event in abandoned] == ["shutdown"]
    again = make([say("All of it.")], store=session_host.store)
    session = await again.open()
    await session.wait_rested()
    replies = [e for e in await again.log(session) if isinstance(e, ev.StepReplied)]
    assert [(event.text, event.cut) for event in replies] == [("All of it.", False)]
