"""The server as tests use it: started, told to misbehave, looked into, killed and started again."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.memory.honcho_server.faults import Fault
from tests.server.served_host import in_thread

KEY = "a-key-of-the-tests"


class HonchoServer:
    """One process, and its address, which stays when it is killed and started again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        program = [sys.executable, "-m", "tests.memory.honcho_server"]
        self._process = subprocess.Popen(
            [*program, str(self._port), str(self._path), KEY], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            assert process.stdout is not None
            process.stdout.close()
            process.wait()

    async def restart(self) -> None:
        await in_thread(self.kill)
        await in_thread(self.start)

    def reset(self) -> None:
        """Let it behave, and forget everything."""
        self._ask("reset", {})

    async def misbehave(self, *script: tuple[str, Fault], **orders: Any) -> None:
        """Let it do what `faults.Orders` says; without arguments it behaves."""
        await in_thread(self._ask, "faults", {**orders, "script": script})

    async def derive(self, workspace: str, session: str, content: str) -> None:
        row = {"workspace": workspace, "session": session, "content": content}
        await in_thread(self._ask, "derive", row)

    async def state(self) -> dict[str, Any]:
        return await in_thread(self._ask, "state", None)

    async def wait_until(self, is_so: Callable[[dict[str, Any]], bool]) -> None:
        """Wait for a state of the server."""
        while not is_so(await self.state()):  # noqa: ASYNC110 (another process has no event)
            await asyncio.sleep(0.02)

    async def wait_conclusions(self, count: int) -> None:
        """Wait until so many are stored."""
        while await in_thread(self._ask, "count", None) < count:  # noqa: ASYNC110 (as above)
            await asyncio.sleep(0.05)

    def _ask(self, route: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"{self.url}/control/{route}", data, timeout=30) as answer:
            return json.load(answer)
