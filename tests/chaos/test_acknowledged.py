"""Acknowledged means durable: the host is killed the instant that a command is acknowledged.

The cases stand in `tests.chaos.acknowledged`; every command of the vocabulary has at least one.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path
from typing import get_args

import pytest

from keryx import commands as cm
from keryx.aio.loops import run_loop
from tests.app.hosts import PATIENCE, ROOT
from tests.chaos.acknowledged import CASES, open_world


@pytest.mark.promise("mended.4")
def test_every_command_has_a_case() -> None:
    assert {case.kind for case in CASES.values()} == set(get_args(cm.Command))


@pytest.mark.promise("mended.4")
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_command_holds_that_was_acknowledged_before_the_host_died(
    name: str, tmp_path: Path
) -> None:
    life = subprocess.run(
        [sys.executable, "-m", "tests.chaos.acknowledged", name, str(tmp_path)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        timeout=PATIENCE,
    )
    assert life.returncode == -signal.SIGKILL, life.stderr.decode()
    run_loop(second_life(name, tmp_path))


async def second_life(name: str, folder: Path) -> None:
    async with asyncio.timeout(PATIENCE), aclosing(open_world(folder)) as worlds:
        async for world in worlds:
            await CASES[name].check(world)
