"""A host to be killed: it sends one message, and its tools leave traces in a file.

Run as `python -m tests.chaos.program HOME TRACES RUN`. It says on stdout what is acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from keryx import NO_EFFECTS, ToolContext, tool
from keryx.app import Keryx
from keryx.messages import ToolMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest
from keryx.ports.tool import Replay, Tool

STEPS = 6


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def script(request: ModelRequest) -> ScriptedReply:
    """Six steps of three calls each, then rest. It only looks at its history."""
    results = sum(isinstance(message, ToolMessage) for message in history_of(request))
    if results >= 3 * STEPS:
        return ScriptedReply(text="Done.")
    calls = [ScriptedCall("act_never"), ScriptedCall("act_safe"), ScriptedCall("act_keyed")]
    return ScriptedReply(text="Acting.", calls=calls, piece=1000)


def acting(replay: Replay, traces: Path, run: str) -> Tool:
    @tool(name=f"act_{replay}", effects=NO_EFFECTS, replay=replay)
    def act(context: ToolContext) -> str:
        """Leave a trace."""
        with traces.open("a") as file:
            file.write(f"{run} {context.call_id}\n")
        return "acted"

    return act


async def main(home: str, traces: Path, run: str) -> None:
    tools = [acting(replay, traces, run) for replay in ("never", "safe", "keyed")]
    model = ScriptedModel(script)
    async with Keryx(model=model, tools=tools, workspace="/", home=home) as app:
        rows = await app.store.sessions()
        session = await app.open(rows[0].session_id if rows else None)
        turn = await session.send("Go", key="the one message")
        say(f"accepted {turn.turn_id}")
        async for event in turn.events():
            if event.session_id == "":
                return
        result = await turn.result()
        say(f"finished {result.outcome}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
