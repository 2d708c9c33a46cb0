"""A host that remembers until it is killed: `python -m tests.memory.doomed_host FOLDER`.

Every id that it prints was accepted. With `finish` behind the folder it only delivers the rest; an
address behind it is that of a Honcho server to deliver to.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from keryx.aio.bridge import Bridge
from keryx.memory.memory_file import MemoryFile
from keryx.ports.memory import MemoryProvider
from tests.memory.remembering_store import remembering_store
from tests.memory.shelf import Shelf

SESSIONS = 4


async def main(folder: Path, url: str | None, *, finish: bool) -> None:
    def open_provider(file: MemoryFile, bridge: Bridge) -> MemoryProvider:
        if url is None:
            return Shelf(folder / "shelf")
        # Only here: the other hosts start faster without it.
        from keryx.memory.providers.honcho.provider import HonchoProvider
        from tests.memory.honcho_home import CONFIGURED, SETTLE
        from tests.memory.honcho_server.process import KEY

        return HonchoProvider(
            file, bridge, url=url, api_key=KEY, workspace=CONFIGURED, settle=SETTLE
        )

    async with remembering_store(folder, open_provider) as memory:
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
    address = next((word for word in sys.argv if word.startswith("http")), None)
    asyncio.run(main(Path(sys.argv[1]), address, finish="finish" in sys.argv))
