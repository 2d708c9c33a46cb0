"""A worker with its own tool and model: `python -m tests.chaos.sharing_program HOME FOLDER`.

It sends messages with unique numbers, and prints each number once its message is acknowledged. Each
call of its tool adds a line to a file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from keryx import NO_EFFECTS, Keryx, tool
from keryx.aio.loops import run_loop
from keryx.ids import new_id
from keryx.messages import ToolMessage
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply, history_of
from keryx.ports.model import ModelRequest

CALLS = "calls.txt"


def sharer(home: Path, folder: Path) -> Keryx:
    @tool(effects=NO_EFFECTS)
    async def work(number: str) -> str:
        """Leave a line."""
        with (folder / CALLS).open("a") as file:
            file.write(f"{number}\n")
        return "done"

    def script(request: ModelRequest) -> ScriptedReply:
        last = history_of(request)[-1]
        if isinstance(last, ToolMessage):
            return ScriptedReply(text="Done.")
        (number,) = re.findall(r"n_[0-9a-f]+", str(last))
        return ScriptedReply(calls=[ScriptedCall("work", {"number": number})])

    model = ScriptedModel(script, name="sharer:own")
    return Keryx(model=model, tools=[work], home=home, workspace=folder)


async def main(home: Path, folder: Path) -> None:
    async with sharer(home, folder) as app:
        session = await app.open()
        while True:
            number = new_id("n")
            turn = await session.send(f"use {number}")
            sys.stdout.write(f"{session.session_id} {turn.turn_id} {number}\n")
            sys.stdout.flush()
            await turn.result()


if __name__ == "__main__":
    run_loop(main(Path(sys.argv[1]), Path(sys.argv[2])))
