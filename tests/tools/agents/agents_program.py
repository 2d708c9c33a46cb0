"""A host with twenty child agents, in a process of its own.

Run as `python -m tests.tools.agents.agents_program HOME TRACES LIFE`.

Each child first leaves a trace, then waits for ever, some of them in a process. Three
children are cancelled and one is steered; then the program says so and waits to be killed. Started
again, it goes on and prints the parent's result.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keryx import Keryx, ToolContext, tool
from keryx import events as ev
from keryx.messages import Text, ToolMessage, UserMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.effects import NO_EFFECTS
from keryx.ports.model import ModelRequest
from keryx.ports.tool import Tool
from keryx.tools.agents.delegate import delegate

CHILDREN = 20
CANCELLED = 3


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def text_of(message: Any) -> str:
    text = "".join(part.text for part in message.content if isinstance(part, Text))
    return text.splitlines()[-1]  # the workspace stands before it


def script(request: ModelRequest) -> ScriptedReply:
    history = history_of(request)
    users = [text_of(message) for message in history if isinstance(message, UserMessage)]
    results = sum(isinstance(message, ToolMessage) for message in history)
    usage = ev.Usage(input_tokens=10, output_tokens=1)
    if users[0].startswith("Parent"):
        tasks = [{"task": f"Child {number}"} for number in range(CHILDREN)]
        if results == 0:
            return ScriptedReply(calls=(ScriptedCall("delegate", {"tasks": tasks}),), usage=usage)
        return ScriptedReply(text="All children have ended.", usage=usage)
    if len(users) > 1:
        return ScriptedReply(text=f"Steered: {users[-1]}", usage=usage)
    if results == 0:
        return ScriptedReply(calls=(ScriptedCall("trace", {"text": users[0]}),), usage=usage)
    if results == 1:
        # A process for each would only take time.
        process = users[0][-1] in "05"
        return ScriptedReply(calls=(ScriptedCall("wait", {"process": process}),), usage=usage)
    return ScriptedReply(text=f"{users[0]} is done.", usage=usage)


def tools_for(traces: Path, waiting: asyncio.Semaphore) -> Sequence[Tool]:
    @tool(effects=NO_EFFECTS)
    async def trace(text: str) -> str:
        """Leave a trace that a second run would double."""
        with traces.open("a") as file:
            file.write(f"{text}\n")
        return "left"

    @tool(effects=NO_EFFECTS)
    async def wait(context: ToolContext, *, process: bool) -> str:
        """Wait for ever, in a process of its own or without one."""
        sleeping = await context.place.spawn(["sleep", "1000"]) if process else None
        waiting.release()
        await (asyncio.Event().wait() if sleeping is None else sleeping.wait())
        return "waited"

    return (delegate, trace, wait)


async def first_life(app: Keryx, waiting: asyncio.Semaphore) -> None:
    session = await app.open()
    turn = await session.send("Parent, go", key="go")
    for _ in range(CHILDREN):
        await waiting.acquire()
    children = {
        row.title: row
        for row in await app.store.sessions(parent=session.session_id, limit=CHILDREN)
    }
    for number in range(CANCELLED):
        parent = children[f"Child {number}"].parent
        assert parent is not None
        await turn.cancel(call=parent.call_id)
    steered = await app.open(children[f"Child {CANCELLED}"].session_id)
    await steered.steer("that is enough")
    async for event in steered.events():
        if isinstance(event, ev.TurnFinished):
            break
    say("waiting")
    await asyncio.Event().wait()


async def second_life(app: Keryx) -> None:
    (row,) = await app.store.sessions()
    session = await app.open(row.session_id)
    turn = await session.send("Parent, go", key="go")  # the same message: its turn goes on
    result = await turn.result()
    say(f"result {result.outcome} {result.text}")


async def main(home: Path, traces: Path, *, is_first: bool) -> None:
    waiting = asyncio.Semaphore(0)
    model = ScriptedModel(script)
    tools = tools_for(traces, waiting)
    async with Keryx(model=model, tools=tools, home=home, workspace=traces.parent) as app:
        await (first_life(app, waiting) if is_first else second_life(app))


if __name__ == "__main__":
    HOME, TRACES, LIFE = sys.argv[1:]
    asyncio.run(main(Path(HOME), Path(TRACES), is_first=LIFE == "first"))
