"""Run as `python -m tests.server.server_program HOME WORKSPACE`: the server in its own process.

It says its address as one line of JSON, and serves until it is killed or its input ends. The model
speaks slowly, so that a kill hits the middle of a turn.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from keryx import Keryx
from keryx.aio.loops import run_loop
from keryx.models.scripted import ScriptedReply
from keryx.server.access.tokens import Tokens
from keryx.server.serve import Settings, serving
from tests.server.served_host import scripted

PACED: Any = {"pause": 0.05, "piece": 6}
WORDS = " ".join(f"word{number}" for number in range(200))


def reply(text: str) -> ScriptedReply:
    if text.startswith("read to me"):  # twenty words a second, as a person reads
        words = int(text.rpartition(" ")[2])
        return ScriptedReply(text="".join(f"{number:05d} " for number in range(words)), **PACED)
    return ScriptedReply(text=WORDS, pause=0.005 if text == "slowly" else 0.0)


async def main(home: Path, workspace: Path) -> None:
    Tokens(home).revoke("child")
    token = Tokens(home).make("child")
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    async with (
        Keryx(model=scripted(reply), home=home, workspace=workspace) as app,
        serving(app.host_client, Settings(port=0, workspace=workspace)) as server,
    ):
        sys.stdout.write(json.dumps({"url": server.url, "token": token}) + "\n")
        sys.stdout.flush()
        loop.add_reader(sys.stdin.fileno(), ended.set)
        await ended.wait()
        loop.remove_reader(sys.stdin.fileno())


if __name__ == "__main__":
    run_loop(main(Path(sys.argv[1]), Path(sys.argv[2])))
