"""A home with five sessions, one of which has a turn that kills its host whenever it runs."""

from __future__ import annotations

import asyncio
import os
import signal

from keryx import ToolContext, tool
from keryx import events as ev
from keryx.messages import ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.tool import Tool
from tests.chaos.child import Child, Scenario
from tests.chaos.program import keryx, said

WORK = 0.05
"""How long a call of a neighbour takes, in seconds."""
NEIGHBOURS = 4
STEPS = 3
"""How many steps with a call the neighbours have."""


def neighbourly(request: ModelRequest) -> ScriptedReply:
    """A killer kills at once; the others have a few steps to make."""
    history = history_of(request)
    assert isinstance(history[0], UserMessage)
    done = sum(isinstance(message, ToolMessage) for message in history)
    if said(history[0]) == "kill":
        return ScriptedReply(text="Killing.", calls=[ScriptedCall("kill")])
    if done == STEPS:
        return ScriptedReply(text="Done.")
    return ScriptedReply(text="Working.", calls=[ScriptedCall("work")])


def neighbourly_tools(child: Child, *, begin: bool) -> list[Tool]:
    started = 0

    async def stay() -> None:
        """In the first life every turn comes as far as its first call, and the host dies then."""
        nonlocal started
        started += 1
        if started == NEIGHBOURS + 1:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.Event().wait()

    @tool(replay="safe")
    async def kill() -> str:
        """Takes the host along."""
        if begin:
            await stay()
        os.kill(os.getpid(), signal.SIGKILL)
        return "never"

    @tool(replay="safe")
    async def work(context: ToolContext) -> str:
        """Leave a trace."""
        if begin:
            await stay()
        # Longer than a killer needs: whoever runs beside one dies with it.
        await asyncio.sleep(WORK)
        child.trace(context.call_id)
        return "worked"

    return [kill, work]


async def begin_neighbours(child: Child) -> None:
    """A life that leaves unfinished turns in five sessions; the subject says which one kills."""
    async with keryx(child, neighbourly, neighbourly_tools(child, begin=True)) as app:
        for number in range(NEIGHBOURS + 1):
            session = await app.open()
            text = "kill" if str(number) == child.orders.subject else "work"
            await session.send(text)
            child.say(f"{text} {session.session_id}")
        await asyncio.Event().wait()


async def go_on_with_neighbours(child: Child) -> None:
    """A host that starts, resumes what it finds, and ends when nothing is left to do."""
    async with keryx(child, neighbourly, neighbourly_tools(child, begin=False)) as app:
        for session_id in await app.store.unfinished():
            session = await app.open(session_id)
            async for event in session.events():
                if isinstance(event, ev.TurnFinished):
                    break


SCENARIOS: dict[str, Scenario] = {
    scenario.__name__: scenario for scenario in (begin_neighbours, go_on_with_neighbours)
}
