"""A server in a process of its own, for tests that kill it or load it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.server.served_host import PATIENCE, ROOT, Client


def resident(process: subprocess.Popen[str]) -> int:
    """Bytes of memory that it has."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@asynccontextmanager
async def served(path: Path) -> AsyncGenerator[tuple[Client, subprocess.Popen[str]]]:
    """The server in a process of its own, which is killed in the end."""
    (path / "workspace").mkdir(exist_ok=True)
    words = [
        sys.executable,
        "-m",
        "tests.server.server_program",
        str(path / "home"),
        str(path / "workspace"),
    ]
    process = subprocess.Popen(  # noqa: ASYNC220 (a moment, in a test)
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        ready = json.loads(process.stdout.readline())
        headers = {"Authorization": f"Bearer {ready['token']}"}
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(headers=headers, connector=connector) as http:
            yield Client(ready["url"], http), process
    finally:
        process.kill()
        process.wait(PATIENCE)
        process.stdin.close()
        process.stdout.close()
