"""A steer cuts what runs at any instant: also in a resumed turn, and while a step is committed."""

from __future__ import annotations

import asyncio

import pytest

from keryx import NO_EFFECTS, tool
from keryx import events as ev
from keryx.engine.calls.call_hooks import CallView
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.store import Commit
from keryx.ports.tool import Risk
from tests.engine.sessions import Recording, SessionHost, until

pytestmark = pytest.mark.promise("mended.5")


@tool(effects=NO_EFFECTS, replay="safe")
async def hang() -> str:
    """Hang."""
    await asyncio.Event().wait()
    return ""


def script(request: ModelRequest) -> ScriptedReply:
    if len(history_of(request)) == 1:
        return ScriptedReply(text="I do.", calls=[ScriptedCall("hang")])
    return ScriptedReply(text="as you say")


def risky(call: CallView) -> Risk:
    return Risk("high", "why")


async def killed_while_hanging(*, asks: bool) -> Recording:
    """The store as a crash leaves it while the call hangs, or waits for consent."""
    ask = risky if asks else None
    session_host = SessionHost(script, tools=[hang], ask=ask)
    session = await session_host.open()
    await session_host.send(session, "go")
    await until(session, ev.ApprovalAsked if asks else ev.CallStarted)
    store = Recording()
    await store.claim("s1")
    assert isinstance(session_host.store, Recording)
    for commit in session_host.store.commits:
        await store.append(Commit(session_id="s1", epoch=1, events=commit.events))
    await session_host.close()
    return store


@pytest.mark.parametrize("asks", [False, True], ids=["a call that hangs", "a call that waits"])
async def test_a_steer_cuts_a_resumed_turn(*, asks: bool) -> None:
    store = await killed_while_hanging(asks=asks)
    ask = risky if asks else None
    session_host = SessionHost(script, tools=[hang], store=store, ask=ask)
    session = await session_host.open()
    await until(session, ev.TurnResumed)
    if not asks:
        await until(session, ev.CallStarted, after=session.fold.last_seq)
    await session_host.send(session, "rather this", "steer")
    async with asyncio.timeout(10):
        finished = await until(session, ev.TurnFinished)
    assert finished.outcome == "completed"
    log = await session_host.log(session)
    (call,) = [event for event in log if isinstance(event, ev.CallFinished)]
    assert (call.outcome, call.reason) == ("cancelled", "steer")
    await session_host.close()


class Gated(Recording):
    """A store whose next commit can be held."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.held = asyncio.Event()

    async def append(self, commit: Commit) -> int:
        if not self.gate.is_set():
            self.held.set()
            await self.gate.wait()
        return await super().append(commit)


async def test_a_steer_cuts_a_step_that_is_being_committed() -> None:
    store = Gated()
    released = asyncio.Event()

    @tool(effects=NO_EFFECTS)
    async def hang() -> str:
        """Wait to be let go."""
        await released.wait()
        store.gate.clear()
        return "done"

    session_host = SessionHost(script, tools=[hang], store=store)
    session = await session_host.open()
    await session_host.send(session, "go")
    await until(session, ev.CallStarted)
    released.set()
    await store.held.wait()  # the outcome, with the start of the next step
    assert session.fold.turn is not None
    assert session.fold.turn.step is not None
    steering = asyncio.ensure_future(session_host.send(session, "rather this", "steer"))
    await asyncio.sleep(0)
    store.gate.set()
    await steering
    await until(session, ev.TurnFinished)
    abandoned = [
        event for event in await session_host.log(session) if isinstance(event, ev.StepAbandoned)
    ]
    assert [event.cause for event in abandoned] == ["steer"]
    assert len(session_host.model.asked) == 2, "the step that was cut never asked the model"
    assert b"rather this" in b"".join(session_host.model.asked[-1].history)
    await session_host.close()
