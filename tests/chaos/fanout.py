"""A host whose call makes thirteen calls, ten of which end; then it waits to be killed.

Run as `python -m tests.chaos.fanout FOLDER`. It says `ten` once the log knows of ten.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from keryx import NO_EFFECTS, Keryx, tool
from keryx import events as ev
from keryx.aio.loops import run_loop
from keryx.messages import ToolMessage, text_of
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.tool import Tool
from keryx.ports.tool_context import ToolContext

CALLS: Final = 13
ENDED: Final = 10


def tools() -> list[Tool]:
    @tool(effects=NO_EFFECTS)
    async def look(region: int) -> str:
        """Look at a region; the last ones hang."""
        if region >= ENDED:
            await asyncio.Event().wait()
        return f"region {region}"

    @tool(effects=NO_EFFECTS, container=True)
    async def fan_out(context: ToolContext) -> str:
        """Look at all regions."""
        async with asyncio.TaskGroup() as group:
            for region in range(CALLS):
                group.create_task(call(context, region))
        return "all"

    async def call(context: ToolContext, region: int) -> Any:
        return await context.call("look", {"region": region})

    return [look, fan_out]


def script(request: ModelRequest) -> ScriptedReply:
    last = history_of(request)[-1]
    if isinstance(last, ToolMessage):
        return ScriptedReply(text=text_of(last.content))
    return ScriptedReply(text="I look.", calls=[ScriptedCall("fan_out")])


def host(folder: Path) -> Keryx:
    return Keryx(model=ScriptedModel(script), tools=tools(), home=folder / "home", workspace=folder)


async def first_life(folder: Path) -> None:
    async with host(folder) as app:
        session = await app.open()
        turn = await session.send("look")
        async with aclosing(turn.events()) as events:
            async for event in events:
                if isinstance(event, ev.NestedFinished) and event.total == ENDED:
                    sys.stdout.write(f"{session.session_id}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    run_loop(first_life(Path(sys.argv[1])))
