"""Workers that share a home are killed at random, the owner as well as its guests."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from keryx import events as ev
from keryx.ports.store import Store
from tests.chaos.sharing_program import CALLS, sharer

pytestmark = pytest.mark.promise("mended.14")

ROOT = Path(__file__).parent.parent.parent
WORKERS = 3
KILLS = 12
PATIENCE = 30.0


class Worker:
    """One worker in a process; what it was acknowledged."""

    def __init__(self, home: Path, folder: Path) -> None:
        words = [sys.executable, "-m", "tests.chaos.sharing_program", str(home), str(folder)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def acknowledged(self, count: int) -> list[tuple[str, str]]:
        """The next so many: session and turn."""
        assert self._process.stdout is not None
        return [_acknowledged(self._process.stdout.readline()) for _ in range(count)]

    def kill(self) -> list[tuple[str, str]]:
        """What it said before it died."""
        self._process.kill()
        said, _ = self._process.communicate()
        return [_acknowledged(line) for line in said.splitlines(keepends=True) if line[-1] == "\n"]


def _acknowledged(line: str) -> tuple[str, str]:
    session_id, turn_id, _ = line.split()
    return session_id, turn_id


async def test_nothing_is_lost_and_nothing_runs_twice_whoever_is_killed(tmp_path: Path) -> None:
    home, chance = tmp_path / "home", random.Random(13)
    acknowledged = kill_at_random(home, tmp_path, chance)
    counted = Counter((tmp_path / CALLS).read_text().splitlines())
    assert set(counted.values()) == {1}, "no call was run twice"
    async with asyncio.timeout(PATIENCE), sharer(home, tmp_path) as app:
        for session_id, turn_ids in acknowledged.items():
            session = await app.open(session_id)
            await (await session.send("use n_0")).result()
            await check_log(app.store, session_id, turn_ids)


def kill_at_random(home: Path, folder: Path, chance: random.Random) -> dict[str, set[str]]:
    workers = [Worker(home, folder) for _ in range(WORKERS)]
    acknowledged: dict[str, set[str]] = {}
    said: list[tuple[str, str]] = []
    for _ in range(KILLS):
        chosen = chance.randrange(WORKERS)
        said += workers[chosen].acknowledged(chance.randrange(1, 20))
        said += workers[chosen].kill()
        workers[chosen] = Worker(home, folder)
    for worker in workers:
        said += worker.kill()
    for session_id, turn_id in said:
        acknowledged.setdefault(session_id, set()).add(turn_id)
    return acknowledged


async def check_log(store: Store, session_id: str, turn_ids: set[str]) -> None:
    """No gap, and each turn that was acknowledged has one message and one end."""
    log = await store.events(session_id)
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    accepted = Counter(event.turn_id for event in log if isinstance(event, ev.MessageAccepted))
    finished = Counter(event.turn_id for event in log if isinstance(event, ev.TurnFinished))
    for turn_id in turn_ids:
        assert (accepted[turn_id], finished[turn_id]) == (1, 1), (session_id, turn_id)
