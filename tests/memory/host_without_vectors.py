"""A host in an environment without the extra `vector`: `python host_without_vectors.py HOME`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from keryx import Keryx
from keryx import events as ev
from keryx.memory.providers.vector.minilm import missing
from keryx.models.scripted import ScriptedModel
from keryx.tools.memory.memory_tools import memory_tools
from tests.memory.test_sessions import ask, call, facts, said


async def main(home: Path) -> None:
    text = "The user drinks green tea."
    model = ScriptedModel([call("memory", action="add", text=text), said(), said()])
    async with Keryx(model=model, home=home, tools=memory_tools()) as app:
        await ask(await app.open(), "Remember it")
        other = await app.open()
        await ask(other, "What tea?")
        (recalled,) = await facts(app, other, ev.MemoryRecalled)
        sys.stdout.write(f"{missing()}\nrecalled: {[m.text for m in recalled.memories]}\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
