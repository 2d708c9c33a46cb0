"""A host that restores a replaced answer and is killed before its memory has heard of it.

Arguments: the home, and the file of the answer's turn.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path

from keryx import Keryx
from keryx.models.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from keryx.tools.memory.memory_tools import memory_tools


async def main(home: Path, names: Path) -> None:
    model = ScriptedModel(
        [
            ScriptedReply(
                calls=[ScriptedCall("memory", {"action": "add", "text": "The user drinks tea."})]
            ),
            ScriptedReply(text="Tea."),
            ScriptedReply(text="Noted."),
        ]
    )
    async with Keryx(model=model, home=home, tools=memory_tools()) as app:
        session = await app.open()
        first = await session.send("I drink tea")
        await first.result()
        second = await session.send("I drink", replaces=first.turn_id)
        await second.result()
        assert await app.memory.export() == []
        # While another process writes the file of the memories, nothing is taken in.
        other = sqlite3.connect(home / "memory.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        await session.restore(first.turn_id)
        names.write_text(f"{first.turn_id} {second.turn_id}")  # noqa: ASYNC240 (killed right after)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
