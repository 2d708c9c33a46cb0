"""The real SmolLM2, which `make setup` has pulled: homes that have it, and what it generated."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import aiohttp

from keryx import events as ev
from keryx.app.handles import TurnHandle
from keryx.models.embedded.model_file import FOLDER, SMOLLM2
from keryx.models.embedded.worker_process import WorkerProcess

NAME = "local:smollm2"
PULLED = Path(sys.prefix) / "smollm2"
"""Where `make setup` keeps the package and the model."""
GGUF = PULLED / FOLDER / SMOLLM2.file_name
PATIENCE = 120.0
"""Only reached by a test that fails."""
SEA = "Tell me a very long story about the sea."


def home_with_model(folder: Path) -> Path:
    assert GGUF.exists(), "run `make setup`: it pulls the model once for all tests"
    home = folder / "home"
    (home / FOLDER).mkdir(parents=True)
    (home / FOLDER / SMOLLM2.file_name).symlink_to(GGUF)
    return home


async def text_pieces(turn: TurnHandle, count: int) -> None:
    """Wait for so many pieces of the reply."""
    async for event in turn.events():
        count -= isinstance(event, ev.TextDelta)
        if not count:
            return
    raise AssertionError("the turn ended before that")


class WorkerProbe:
    """Asks a worker's server about itself, beside the sessions."""

    def __init__(self, worker: WorkerProcess, http: aiohttp.ClientSession) -> None:
        self._worker = worker
        self._http = http

    async def generated(self) -> int:
        """How many tokens all replies that are over had; waits for those that are not."""
        slots: list[dict[str, Any]] = [{"is_processing": True}]
        while any(slot["is_processing"] for slot in slots):
            slots = json.loads(await self._ask("slots"))
        text = await self._ask("metrics")
        match = re.search(r"^llamacpp:tokens_predicted_total (\S+)", text, re.MULTILINE)
        assert match is not None
        return int(float(match[1]))

    async def tokens(self, text: str) -> int:
        """How many tokens the text has."""
        answer: dict[str, Any] = json.loads(await self._ask("tokenize", {"content": text}))
        return len(answer["tokens"])

    async def _ask(self, path: str, body: object = None) -> str:
        headers = {"Authorization": f"Bearer {self._worker.key}"}
        method, url = ("GET" if body is None else "POST"), f"{self._worker.address}/{path}"
        async with self._http.request(method, url, json=body, headers=headers) as answer:
            assert answer.status == 200
            return await answer.text()


def let_computing_wait(pid: int) -> None:
    """Let the threads that generate run behind those that serve connections.

    Which of them a full machine runs first would decide otherwise how many tokens are generated
    before a cancel is read.
    """
    used = {
        int(task.name): sum(map(int, (task / "stat").read_text().rpartition(")")[2].split()[11:13]))
        for task in Path(f"/proc/{pid}/task").iterdir()
    }
    for thread, ticks in used.items():
        if ticks * 2 > max(used.values()):
            os.setpriority(os.PRIO_PROCESS, thread, 10)


def wait_until_read(address: str) -> None:
    """Wait until this process has read everything that this server has sent. Blocking."""
    while _unread_bytes(address):
        pass


def _unread_bytes(address: str) -> int:
    """How many bytes from this server lie in sockets of this machine, sent and not read yet."""
    port = int(address.rpartition(":")[2])
    total = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, _, remote, _, queues, *_ = line.split()
        if int(remote.rpartition(":")[2], 16) == port:
            total += int(queues.partition(":")[2], 16)
    return total
