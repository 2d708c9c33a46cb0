"""Run as `python -m tests.server.v1.agent_program HOME WORKSPACE`: a scripted agent that is served.

It says its address as one line of JSON, and serves until it is killed or its input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from keryx import Keryx
from keryx.aio.loops import run_loop
from keryx.server.access.tokens import Tokens
from keryx.server.serve import Settings, serving
from tests.server.v1.scripted_agent import ScriptedAgent, shout


async def main(home: Path, workspace: Path) -> None:
    Tokens(home).revoke("child")
    token = Tokens(home).make("child")
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    async with (
        Keryx(model=ScriptedAgent().model, tools=[shout], home=home, workspace=workspace) as app,
        serving(app.host_client, Settings(port=0, workspace=workspace)) as server,
    ):
        sys.stdout.write(json.dumps({"url": server.url, "token": token}) + "\n")
        sys.stdout.flush()
        loop.add_reader(sys.stdin.fileno(), ended.set)
        await ended.wait()
        loop.remove_reader(sys.stdin.fileno())


if __name__ == "__main__":
    run_loop(main(Path(sys.argv[1]), Path(sys.argv[2])))
