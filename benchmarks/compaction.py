"""How long it takes to sum up a session of 100,000 events, without the time of the model.

The session is opened from its log, summed up by a model that answers at once, and then a message is
sent. What the model is given is bounded by its window, so most of the time is reading the log.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from keryx import Keryx
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest
from keryx.testing.longsession import write_long_session

EVENTS: Final = 100_000
MESSAGES: Final = 24_000
SESSION: Final = "s_long"


def script(request: ModelRequest) -> ScriptedReply:
    return ScriptedReply(text="They worked on the reader.", piece=100)


async def measure(home: Path) -> None:
    async with Keryx(model=ScriptedModel(script), tools=[], home=home) as app:
        await write_long_session(app.store, SESSION, messages=MESSAGES)
        row = await app.store.session(SESSION)
        assert row is not None
        print(f"a session of {row.last_seq:,} events (at least {EVENTS:,} wanted)")
    model = ScriptedModel(script)
    async with Keryx(model=model, tools=[], home=home) as app:
        started = time.perf_counter()
        session = await app.open(SESSION)
        await session.change(model=model.name)
        opened = time.perf_counter()
        await session.compact()
        compacted = time.perf_counter()
        await (await session.send("Go on")).result()
        answered = time.perf_counter()
    print(f"  opened from its log   {opened - started:6.2f} s")
    print(f"  summed up             {compacted - opened:6.2f} s")
    print(f"  next message answered {answered - compacted:6.2f} s")
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak memory           {megabytes:6.0f} MB")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="keryx-compaction-") as folder:
        asyncio.run(measure(Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
