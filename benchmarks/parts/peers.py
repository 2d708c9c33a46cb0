"""Other agent packages in the same run, each with a Python of its own that has it installed.

`--peer openai-agents=/path/to/python` or KERYX_PEERS with the same, separated by commas, adds a
line for that peer to each figure. What a peer does stands in `benchmarks/peers`, one program each;
this module only runs them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROGRAMS: Final = {
    "openai-agents": "agents_sdk.py",
    "pydantic-ai": "pydanticai.py",
    "langgraph": "lang_graph.py",
}
SCRIPT_PROGRAMS: Final = {"hermes-agent": "hermes_scripts.py"}
COLD_ROUNDS: Final = 3
# Seconds. A peer that needs longer has no figure.
TIMEOUT: Final = 300.0

# Some packages have a slim form under a name of its own.
_VERSION: Final = """
import sys
from importlib.metadata import distributions
names = (sys.argv[1], sys.argv[1] + "-slim")
print(*{each.version for each in distributions() if each.metadata["Name"] in names})
"""
_BENCHMARKS: Final = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Peer:
    """A package, and the Python in which it is installed."""

    package: str
    python: str
    program: str

    @property
    def name(self) -> str:
        process = subprocess.run(
            [self.python, "-c", _VERSION, self.package], check=True, capture_output=True, text=True
        )
        return f"{self.package} {process.stdout.strip()}"

    def measure(self, what: str, url: str) -> float:
        """`cold`, `turn` and `steps` in seconds; `streams` in CPU seconds for each token."""
        if what == "cold":
            return min(self._cold(url) for _ in range(COLD_ROUNDS))
        return float(json.loads(self._run(what, url)))

    def run_script(self, script: Path, home: Path) -> str:
        """Return the output of a script that the peer runs, in the folder of the script."""
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}
        return subprocess.run(
            [self.python, str(_BENCHMARKS / "peers" / self.program), str(script)],
            check=True,
            stdout=subprocess.PIPE,
            cwd=script.parent,
            env={**env, "HERMES_HOME": str(home)},
            timeout=TIMEOUT,
            text=True,
        ).stdout.strip()

    def _cold(self, url: str) -> float:
        began = time.perf_counter()
        self._run("cold", url)
        return time.perf_counter() - began

    def _run(self, what: str, url: str) -> str:
        program = str(_BENCHMARKS / "peers" / self.program)
        env = {
            "PATH": os.defpath,
            "HOME": os.environ.get("HOME", "/"),
            "PYTHONPATH": str(_BENCHMARKS),
            "OPENAI_API_KEY": "none",
        }
        command = [self.python, program, what, url]
        ended = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, env=env, timeout=TIMEOUT
        )
        return ended.stdout.decode()


def requested_peers(programs: Mapping[str, str] = PROGRAMS) -> list[Peer]:
    """Return the peers that the command line and the environment name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", action="append", default=[], metavar="PACKAGE=PYTHON")
    options: list[str] = list(parser.parse_args().peer)
    options += [option for option in os.environ.get("KERYX_PEERS", "").split(",") if option]
    return [_peer(parser, option, programs) for option in options]


def _peer(parser: argparse.ArgumentParser, option: str, programs: Mapping[str, str]) -> Peer:
    package, _, python = option.partition("=")
    if package not in programs or not python:
        parser.error(f"{option!r}: write PACKAGE=PYTHON, with one of {', '.join(programs)}")
    return Peer(package, python, programs[package])
