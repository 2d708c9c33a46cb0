"""A program with a tool and a model of its own, in a process: it does what its lines of input say.

`open`, `send ID TEXT`, `result`, `resume`, `leave`; each is answered with one line of JSON.
A call of its tool is told in a file, once when it begins and once when it ends, and waits for a
file called `go`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from keryx import NO_EFFECTS, Keryx, tool
from keryx.app import SessionHandle, TurnHandle
from keryx.messages import ToolMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest

TOLD = "told.txt"
GO = "go"


def answer(**fields: Any) -> None:
    sys.stdout.write(json.dumps({"pid": os.getpid(), **fields}) + "\n")
    sys.stdout.flush()


def program(home: Path, folder: Path) -> Keryx:
    def tell(what: str) -> None:
        with (folder / TOLD).open("a") as file:
            file.write(f"{what}\n")

    @tool(effects=NO_EFFECTS)
    async def work(name: str) -> str:
        """Work until it may end."""
        tell(f"began {name}")
        while name == "wait" and not (folder / GO).exists():  # noqa: ASYNC110 (a test's own)
            await asyncio.sleep(0.01)
        tell(f"ended {name}")
        return f"done by {os.getpid()}"

    def script(request: ModelRequest) -> ScriptedReply:
        last = history_of(request)[-1]
        if isinstance(last, ToolMessage):
            return ScriptedReply(text="Done.")
        text = str(last)
        if "use" not in text:
            return ScriptedReply(text="Hello.")
        name = "wait" if "wait" in text else "quick"
        return ScriptedReply(calls=[ScriptedCall("work", {"name": name})])

    model = ScriptedModel(script, name="program:own")
    return Keryx(model=model, tools=[work], home=home, workspace=folder)


async def ended(turn: TurnHandle | None) -> dict[str, str]:
    assert turn is not None
    result = await turn.result()
    return {"outcome": result.outcome, "text": result.text}


async def main(home: str, folder: str) -> None:
    loop = asyncio.get_running_loop()
    session: SessionHandle | None = None
    turn: TurnHandle | None = None
    async with program(Path(home), Path(folder)) as app:
        answer(ready=True)
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            verb, _, rest = line.partition(" ")
            if verb == "open":
                session = await app.open(rest or None)
                answer(session=session.session_id)
            elif verb == "send":
                assert session is not None
                turn = await session.send(rest)
                answer(turn=turn.turn_id)
            elif verb == "result":
                answer(**await ended(turn))
            else:
                break
    answer(left=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
