"""A bad actor in the sandbox cannot make the host's memory grow past what the limits say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.rpc.memory_attacks import HOW, LIMITS, WANTED
from tests.rpc.server_process import ROOT

# What is held, once more while it is put together or sent, and what an allocator keeps for itself.
BOUND = 4 * LIMITS.most_held


@pytest.mark.parametrize("how", HOW)
def test_memory_is_bounded_whatever_the_other_side_does(how: str) -> None:
    argv = [sys.executable, "-m", "tests.rpc.memory_attacks", how]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=50, check=True)
    assert done.stderr == ""
    assert int(done.stdout) < BOUND < WANTED // 4
