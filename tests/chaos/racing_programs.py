"""Programs that race for the same thing on one store, without the home's lock.

The lock keeps a second host away from a home; here the store itself must decide who wins. Some
racers are whole sessions, the others commit directly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from keryx import NO_EFFECTS, ToolContext, tool
from keryx import commands as cm
from keryx import events as ev
from keryx.aio.bridge import Bridge
from keryx.aio.scope import Scope
from keryx.app.host.homes.home import STORE
from keryx.errors import AlreadyTakenError, FencedError
from keryx.ids import new_id
from keryx.messages import ToolMessage
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.store import Commit, OutboxRow
from keryx.ports.tool import Replay, Risk, Tool
from keryx.store.sqlite import SqliteStore
from tests.chaos.child import Child, Scenario, plant
from tests.chaos.program import keryx, the_session
from tests.engine.sessions import SessionHost, until


async def open_store(child: Child) -> SqliteStore:
    home = child.orders.folder / "home"
    home.mkdir(exist_ok=True)
    return await SqliteStore.open(home / STORE, Bridge(Scope("racer"), threads=8))


def once(request: ModelRequest) -> ScriptedReply:
    """Ask for both calls, then rest."""
    if any(isinstance(message, ToolMessage) for message in history_of(request)):
        return ScriptedReply(text="Done.")
    return ScriptedReply(calls=[ScriptedCall("act_never"), ScriptedCall("act_safe")])


def acting(child: Child, replay: Replay, stay: Callable[[], Awaitable[object]] | None) -> Tool:
    @tool(name=f"act_{replay}", effects=NO_EFFECTS, replay=replay)
    async def act(context: ToolContext) -> str:
        """Leave a trace."""
        child.trace(context.call_id)
        child.say(f"acting {context.call_id}")
        if stay is not None:
            await stay()
        return "acted"

    return act


def both(child: Child, stay: Callable[[], Awaitable[object]] | None = None) -> list[Tool]:
    return [acting(child, "never", stay), acting(child, "safe", stay)]


def wait_with_the_claim(child: Child) -> None:
    """Let each racer own the session for a moment: it claims, then waits for the others."""
    claim = SqliteStore.claim

    async def claimed(self: SqliteStore, session_id: str) -> int:
        epoch = await claim(self, session_id)
        child.say(f"ready {epoch}")
        child.wait_gate()
        return epoch

    SqliteStore.claim = claimed


# -- approvals


async def ask(child: Child) -> None:
    """A turn that waits for a person, twice."""
    session_host = SessionHost(
        once,
        tools=both(child),
        store=await open_store(child),
        ask=lambda call: Risk("high", "as a test"),
    )
    session = await session_host.open()
    await session_host.send(session, "Go")
    approval = await until(session, ev.ApprovalAsked)
    child.say(f"asked {approval.approval_id}")
    await asyncio.Event().wait()


async def answer(child: Child) -> None:
    """Open the session and answer, both after the gate."""
    store = await open_store(child)
    child.say("ready")
    child.wait_gate()
    await _answer(child, store)


async def answer_as_owner(child: Child) -> None:
    """Answer, as one of several who each became the owner."""
    store = await open_store(child)
    wait_with_the_claim(child)
    await _answer(child, store)


async def _answer(child: Child, store: SqliteStore) -> None:
    tools = both(child, asyncio.Event().wait)
    session_host = SessionHost(
        once, tools=tools, store=store, ask=lambda call: Risk("high", "as a test")
    )
    try:
        session = await session_host.open()
        await session.tell(
            cm.AnswerApproval(
                command_id=new_id("c"),
                session_id=session.session_id,
                by=f"racer {child.orders.life}",
                approval_id=child.orders.subject,
                decision="once",
                where="here",
            )
        )
    except (FencedError, AlreadyTakenError) as error:
        child.say(type(error).__name__)
    else:
        child.say("taken")


async def answer_alone(child: Child) -> None:
    """Answer, with no one else around."""
    plant(child)
    await _answer(child, await open_store(child))


async def go_on_after_the_answer(child: Child) -> None:
    """Say what becomes of the call that was approved, the subject, after that fact."""
    session_host = SessionHost(
        once,
        tools=both(child),
        store=await open_store(child),
        ask=lambda call: Risk("high", "as a test"),
    )
    session = await session_host.open()
    async with session.hub.read(after=child.orders.after) as reader:
        async for event in reader:
            is_told = isinstance(event, ev.CallStarted | ev.ApprovalAsked)
            if is_told and event.call_id == child.orders.subject:
                child.say(f"then {ev.type_of(event)}")
                break


# -- an unfinished turn


async def leave(child: Child) -> None:
    """A turn that is in the middle of two calls, for ever."""
    tools = both(child, asyncio.Event().wait)
    session_host = SessionHost(once, tools=tools, store=await open_store(child))
    session = await session_host.open()
    await session_host.send(session, "Go")
    await asyncio.Event().wait()


async def resume(child: Child) -> None:
    """Go on with the turn, as one of several who each became the owner."""
    store = await open_store(child)
    wait_with_the_claim(child)
    session_host = SessionHost(once, tools=both(child), store=store)
    try:
        session = await session_host.open()
        await session.wait_rested()
        await session_host.send(session, "More")
    except FencedError as error:
        child.say(type(error).__name__)
    else:
        await session_host.close()
        child.say("taken")


async def resume_at_once(child: Child) -> None:
    """Become the owner and go on with the turn, all after the gate."""
    store = await open_store(child)
    session_host = SessionHost(once, tools=both(child), store=store)
    child.say("ready")
    child.wait_gate()
    try:
        session = await session_host.open()
        await session.wait_rested()
        await session_host.close()
    except FencedError as error:
        child.say(type(error).__name__)


# -- commands


async def consume(child: Child) -> None:
    """Take a command that waits, with the epoch that all racers have."""
    store = await open_store(child)
    child.say("ready")
    child.wait_gate()
    try:
        await store.append(
            Commit(
                session_id="s1",
                epoch=child.orders.epoch,
                consumes=(child.orders.subject,),
                outbox=(OutboxRow(f"{child.orders.life}", "taken", b""),),
            )
        )
    except AlreadyTakenError as error:
        child.say(type(error).__name__)
    else:
        child.say("taken")


# -- an owner that sleeps


async def own(child: Child) -> None:
    """A host in the middle of a call, which ends when the gate opens."""
    plant(child)
    opened = asyncio.Event()

    async def stay() -> None:
        asyncio.get_running_loop().add_reader(child.gate, opened.set)
        await opened.wait()
        asyncio.get_running_loop().remove_reader(child.gate)

    async with keryx(child, once, both(child, stay)) as app:
        session = await the_session(app)
        await session.send("Go", key="1")
        await child.refused.wait()
        try:
            await session.send("More", key="2")
        except FencedError:
            child.say("fenced")


async def take_over(child: Child) -> None:
    """Raise the epoch of a host that does not answer, and end its turn."""
    session_host = SessionHost(once, tools=both(child), store=await open_store(child))
    session = await session_host.open(child.orders.subject)
    await session.wait_rested()
    await session_host.close()


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (
        *(ask, answer, answer_as_owner, answer_alone, go_on_after_the_answer),
        *(leave, resume, resume_at_once),
        *(consume, own, take_over),
    )
}
