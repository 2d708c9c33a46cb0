"""A host that remembers until it is killed: `python -m tests.memory.doomed_host FOLDER`.

Every id that it prints was accepted. With `finish` behind the folder it only delivers the rest.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from tests.memory.remembering_store import remembering_store
from tests.memory.shelf import Shelf

SESSIONS = 4


async def main(folder: Path, *, finish: bool) -> None:
    shelf = Shelf(folder / "shelf")
    async with remembering_store(folder, [shelf]) as memory:
        if finish:
            assert await memory.service.wait_delivered(20.0)
            return
        for number in itertools.count():
            texts = ("The build is red.", f"Attempt {number} failed.")
            accepted = await memory.conclude(f"s{number % SESSIONS}", *texts)
            sys.stdout.write(" ".join(accepted) + "\n")
            sys.stdout.flush()
            await asyncio.sleep(0)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), finish="finish" in sys.argv))
