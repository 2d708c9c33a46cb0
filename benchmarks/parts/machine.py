"""The machine that is measured on: its cores, its limits, and the model server on its own core.

It does not know what is measured.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Each stream is one descriptor; the rest is for the store and the loop.
MOST_STREAMS: Final = 1_000
_SPARE: Final = 200


@dataclass(frozen=True, slots=True)
class Server:
    """A running model server."""

    url: str

    def cpu_seconds(self) -> float:
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            return float(answer.read())


@contextmanager
def model_server() -> Generator[Server]:
    """The model server on one core and this process, with all that it starts, on another."""
    _allow_streams()
    command = [sys.executable, str(Path(__file__).with_name("streamserver.py"))]
    cores = _cores()
    if len(cores) > 1:
        command += ["--core", str(cores[1])]
        os.sched_setaffinity(0, {cores[0]})
        print(f"(the model server runs on core {cores[1]}, what is measured on core {cores[0]})")
    else:
        print("(nothing is pinned: there is one core, or this system cannot say)")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield Server(server.stdout.readline().strip())
        finally:
            server.terminate()
            if cores:
                os.sched_setaffinity(0, cores)


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _allow_streams() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = MOST_STREAMS + _SPARE
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), hard))
