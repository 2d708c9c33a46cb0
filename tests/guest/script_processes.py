"""Runs scripts that call tools, each in a process of its own.

KERYX_GUEST_PYTHON names another Python to run them with; any since 3.8 will do.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.guest.server import PATIENCE, SECRET, granted

SOURCES = Path(__file__).parents[2] / "src"
PYTHON = os.environ.get("KERYX_GUEST_PYTHON", sys.executable)
# In what the guests start, a warning is an error too; so is what asyncio or a thread would print.
# Newer Pythons warn of forks beside threads, which is what some of these scripts are about.
SLOW = re.compile(r"Executing <.* took \d+\.\d+ seconds$")
"""What asyncio says in this mode of a machine that has much to do."""
OPTIONS = ["-X", "dev", "-W", "error", "-W", "ignore:This process:DeprecationWarning"]


def environment(address: str, **more: str) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(SOURCES),
        "KERYX_TOOLS_ADDRESS": address,
        "KERYX_TOOLS_SECRET": SECRET,
        "KERYX_TOOLS_GRANTED": json.dumps(granted()),
        **more,
    }


def written(folder: Path, text: str) -> Path:
    """The script as a file: what multiprocessing spawns must be able to import it."""
    file = folder / "script.py"
    file.write_text(textwrap.dedent(text))
    return file


def run(
    folder: Path,
    text: str,
    address: str,
    *,
    descriptors: tuple[int, ...] = (),
    patience: float = PATIENCE,
    **more: str,
) -> Any:
    """Run the script to its end. What it prints last is JSON, and nothing goes to stderr."""
    done = subprocess.run(
        [PYTHON, *OPTIONS, str(written(folder, text))],
        env=environment(address, TMPDIR=str(folder), **more),
        pass_fds=descriptors,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if not SLOW.match(line)]
    assert (done.returncode, lines) == (0, []), done.stderr
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout else None


@contextmanager
def running(folder: Path, text: str, address: str) -> Generator[subprocess.Popen[str]]:
    """The script while it runs, with pipes to it."""
    with subprocess.Popen(
        [PYTHON, *OPTIONS, str(written(folder, text))],
        env=environment(address, TMPDIR=str(folder)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
