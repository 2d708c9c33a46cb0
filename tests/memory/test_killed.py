"""Killed at any instant, a host has lost nothing that it accepted, and stores nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from keryx import Keryx
from keryx.models.scripted import ScriptedModel
from tests.conftest import SOAK
from tests.memory.shelf import OPENED, Shelf
from tests.server.served_host import in_thread

KILLS = 200 if SOAK else 20
SEED = 20_261_116
PROGRAM = [sys.executable, "-m", "tests.memory.doomed_host"]


@pytest.mark.promise("003.3")
@pytest.mark.timeout(60 + 6 * KILLS)
def test_killed_at_random_instants_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    accepted: list[str] = []
    for _ in range(KILLS):
        with subprocess.Popen([*PROGRAM, tmp_path], stdout=subprocess.PIPE, text=True) as host:
            assert host.stdout is not None
            for _ in range(dice.randint(1, 40)):
                accepted += host.stdout.readline().split()
            host.kill()
            # What it printed before it died was accepted too; the last line may be torn.
            rest = host.stdout.read()
            accepted += rest[: rest.rfind("\n") + 1].split()
    subprocess.run([*PROGRAM, tmp_path, "finish"], check=True, timeout=60)
    stored = Shelf(tmp_path / "shelf").ids()
    assert set(accepted) <= set(stored), "accepted and lost"
    doubles = [name for name, count in Counter(stored).items() if count > 1]
    assert doubles == [], "stored twice"
    for session in {name.partition("/")[0] for name in stored}:
        numbers = [int(name.partition("/")[2]) for name in stored if name.startswith(f"{session}/")]
        assert numbers == sorted(numbers), f"{session} is out of order"


@pytest.mark.promise("003.3")
async def test_killed_before_the_memory_heard_that_an_answer_is_restored_it_counts_again(
    home: Path, tmp_path: Path
) -> None:
    names = tmp_path / "turns"
    path = os.pathsep.join([str(tmp_path / "packages"), *sys.path])
    packages = {**os.environ, "PYTHONPATH": path}
    program = [sys.executable, "-m", "tests.memory.restoring_host", home, names]
    run = partial(subprocess.run, program, env=packages, check=False, timeout=60)
    host = await in_thread(run)
    assert host.returncode == -signal.SIGKILL
    first, second = (await in_thread(names.read_text)).split()
    async with Keryx(model=ScriptedModel([]), home=home) as app:
        assert [memory.text for memory in await app.memory.export()] == ["The user drinks tea."]
    at_provider = await in_thread(OPENED[-1].active)
    assert (first in at_provider, second in at_provider, len(at_provider)) == (True, False, 2)
