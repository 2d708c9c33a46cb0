"""Hosts to be killed. Each scenario is one life: it goes on with whatever earlier lives left.

What is acknowledged is said by `tests.chaos.child`; tools leave traces in a file.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial

from keryx import NO_EFFECTS, ToolContext, tool
from keryx import events as ev
from keryx.app import Keryx
from keryx.app.handles import SessionHandle, TurnHandle
from keryx.app.host.homes.home import STORE
from keryx.messages import Text, ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.store import Commit
from keryx.ports.tool import Replay, Tool
from keryx.store.sqlite import SqliteStore
from tests.chaos.child import Child, DeadlyModel, Scenario, plant
from tests.chaos.state import read_log, state_of

ANSWER = 0.2
"""How long an answer may take that waits for nothing, in seconds."""


async def the_session(app: Keryx) -> SessionHandle:
    rows = await app.store.sessions()
    return await app.open(rows[0].session_id if rows else None)


def said(message: UserMessage) -> str:
    (part,) = message.content
    assert isinstance(part, Text)
    return part.text.splitlines()[-1]


# -- calls


class Siblings:
    """Which calls of this life are under way, so that a batch can end one after another."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Event] = {}

    def see(self, event: ev.Event) -> None:
        if isinstance(event, ev.CallStarted):
            self._running[event.call_id] = asyncio.Event()
        elif isinstance(event, ev.CallFinished) and event.call_id in self._running:
            self._running.pop(event.call_id).set()

    async def wait_earlier(self, call_id: str) -> None:
        """Return once the end of every earlier call is in the log."""
        for ended in [ended for other, ended in self._running.items() if other < call_id]:
            await ended.wait()


def acting(child: Child, replay: Replay, siblings: Siblings) -> Tool:
    name = f"act_{replay}"

    @tool(name=name, effects=NO_EFFECTS, replay=replay)
    async def act(context: ToolContext, *, in_turn: bool = False) -> str:
        """Leave a trace."""
        child.reach(f"{name} before acting")
        child.trace(context.call_id)
        child.reach(f"{name} acted")
        if in_turn:
            await siblings.wait_earlier(context.call_id)
        child.reach(f"{name} returned")
        return "acted"

    return act


def acting_in_a_thread(child: Child) -> Tool:
    @tool(name="act_safe", effects=NO_EFFECTS, replay="safe")
    def act(context: ToolContext) -> str:
        """Leave a trace."""
        child.reach("act_safe before acting")
        child.trace(context.call_id)
        child.reach("act_safe acted")
        child.reach("act_safe returned")
        return "acted"

    return act


def two_batches(request: ModelRequest) -> ScriptedReply:
    """All three at once, then again so that they end one after another, then rest."""
    results = sum(isinstance(message, ToolMessage) for message in history_of(request))
    if results >= 6:
        return ScriptedReply(text="Done.")
    calls = [ScriptedCall("act_never"), ScriptedCall("act_safe"), ScriptedCall("act_keyed")]
    if results >= 3:
        late = {"in_turn": True}
        calls = [calls[1], ScriptedCall("act_never", late), ScriptedCall("act_keyed", late)]
    return ScriptedReply(text="Acting.", calls=calls)


async def calls(child: Child) -> None:
    """One message, two batches of parallel calls."""
    plant(child)
    siblings = Siblings()
    child.watch(siblings.see)
    tools = [
        acting(child, "never", siblings),
        acting_in_a_thread(child),
        acting(child, "keyed", siblings),
    ]
    async with keryx(child, two_batches, tools) as app:
        turn = await (await the_session(app)).send("Go", key="the one message")
        result = await turn.result()
        child.say(f"finished {result.outcome}")
    child.tell_passed()


def keryx(
    child: Child, script: Callable[[ModelRequest], ScriptedReply], tools: list[Tool]
) -> Keryx:
    folder = child.orders.folder
    return Keryx(
        model=DeadlyModel(child, script), tools=tools, workspace=folder, home=folder / "home"
    )


# -- messages and cancels


class Holding:
    """A model and a tool that hold when they are told to, until they are cancelled."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.in_call = asyncio.Event()
        self.in_reply = asyncio.Event()

    async def _hold(self, begun: asyncio.Event) -> None:
        begun.set()
        self._child.reach("held")
        await asyncio.Event().wait()

    def script(self, request: ModelRequest) -> ScriptedReply:
        """Does what the last message says."""
        history = history_of(request)
        if isinstance(history[-1], ToolMessage):
            return ScriptedReply(text="Done.")
        last_message = next(
            message for message in reversed(history) if isinstance(message, UserMessage)
        )
        match said(last_message):
            case "call":
                return ScriptedReply(calls=[ScriptedCall("act")])
            case "hold in a call":
                return ScriptedReply(calls=[ScriptedCall("hold"), ScriptedCall("act")])
            case _:
                return ScriptedReply(text="Well,", hold=partial(self._hold, self.in_reply))

    def tools(self) -> list[Tool]:
        @tool(replay="safe")
        async def act(context: ToolContext) -> str:
            """Leave a trace."""
            self._child.trace(context.call_id)
            return "acted"

        @tool(replay="safe")
        async def hold() -> None:
            """Wait for ever. What comes after it in its batch waits for it."""
            await self._hold(self.in_call)

        return [act, hold]


async def until(held: asyncio.Event, turn: TurnHandle) -> None:
    """Return once it holds in this life, or the turn is over."""
    over = asyncio.create_task(turn.result())
    holds = asyncio.create_task(held.wait())
    await asyncio.wait([over, holds], return_when=asyncio.FIRST_COMPLETED)
    over.cancel()
    holds.cancel()


async def talk(child: Child) -> None:
    """A client that says all that it has to say in every life, with the same keys.

    Of five messages two are cancelled, one while it waits and one while it runs, and the last
    interrupts the one before it.
    """
    plant(child)
    holding = Holding(child)
    async with keryx(child, holding.script, holding.tools()) as app:
        session = await the_session(app)
        first = await session.send("call", key="1")
        running = await session.send("hold in a call", key="2")
        waiting = await session.send("hold in a call", key="3")
        await waiting.cancel()
        await first.result()
        await until(holding.in_call, running)
        await running.cancel()
        last = await session.send("hold in a reply", key="4")
        await until(holding.in_reply, last)
        end = await session.interrupt("call", key="5")
        await last.result()
        await end.result()
        child.say("finished")
    child.tell_passed()


# -- answers


def die_in_the_commit_of(fact: type[ev.LoggedEvent], ask: Callable[[], Awaitable[object]]) -> None:
    """Once this fact is about to be written, ask; then die, and it never is."""
    append = SqliteStore.append

    async def held(self: SqliteStore, commit: Commit) -> int:
        if any(isinstance(event, fact) for event in commit.events):
            # An answer that waits for the commit never comes, so only time can end the wait.
            await asyncio.wait([asyncio.ensure_future(ask())], timeout=ANSWER)
            os.kill(os.getpid(), signal.SIGKILL)
        return await append(self, commit)

    SqliteStore.append = held


async def send_twice(child: Child) -> None:
    """The same message again while it is being committed."""
    plant(child)
    async with keryx(child, lambda _: ScriptedReply(text="Done."), []) as app:
        session = await the_session(app)
        send = partial(session.send, "Go", key="1")
        die_in_the_commit_of(ev.MessageAccepted, send)
        await send()


async def cancel_at_the_end(child: Child) -> None:
    """A cancel while the end of its turn is being committed."""
    plant(child)
    async with keryx(child, lambda _: ScriptedReply(text="Done."), []) as app:
        session = await the_session(app)
        accepted: asyncio.Future[TurnHandle] = asyncio.get_running_loop().create_future()

        async def cancel() -> None:
            await (await accepted).cancel()

        die_in_the_commit_of(ev.TurnFinished, cancel)
        accepted.set_result(await session.send("Go", key="1"))
        await asyncio.Event().wait()


# -- reading


async def state(child: Child) -> None:
    """What this process makes of the log."""
    for field, value in state_of(await read_log(child.orders.folder / "home" / STORE)).items():
        child.say(f"{field} {value}")


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario
    for scenario in (*(calls, talk, send_twice, cancel_at_the_end, state),)
}
