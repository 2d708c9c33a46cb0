"""Servers in processes of their own, that are ended with the test."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from keryx.aio.scope import Scope
from keryx.warden import Process, Warden
from tests.aio.world import Lines

ROOT = Path(__file__).parent.parent.parent


class Child:
    def __init__(self, process: Process, lines: Lines) -> None:
        self._process = process
        self._lines = lines
        self.pid = process.pid

    async def says(self, line: str) -> None:
        assert await self._lines.next() == line

    async def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        await self._process.wait()


@asynccontextmanager
async def child(how: str, path: Path) -> AsyncGenerator[Child]:
    """A server in a process of its own, which serves by now."""
    scope = Scope("child")
    warden = Warden(scope)
    argv = (sys.executable, "-m", "tests.rpc.serving", how, str(path))
    lines = Lines()
    try:
        async with await warden.spawn(argv, env={}, cwd=str(ROOT), output=lines) as process:
            made = Child(process, lines)
            await made.says("serving")
            yield made
    finally:
        await warden.close()
        for left in scope.children:
            left.close()
        scope.close()
