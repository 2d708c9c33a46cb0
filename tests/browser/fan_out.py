"""A script that fans out: many quick commands, and two that wait, each at a gate of its own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from keryx.testing.modelserver import Call
from tests.browser.command_gate import Gate, gate

QUICK = 11
CROWD = 400
"""So many that they are counted, and no longer told one by one."""
SCRIPT = """\
from keryx_tools import parallel, terminal

commands = [f"echo region-{{number}}" for number in range({quick})]
commands += [f"echo {{name}}; read go < {{name}}" for name in {waiting}]
for answer in parallel(terminal, commands, limit=13):
    print(answer["output"].strip() if isinstance(answer, dict) else "none")
"""


@dataclass(frozen=True, slots=True)
class Fan:
    """The calls of one script, of which the last two wait."""

    first: Gate
    second: Gate
    quick: int

    @property
    def call(self) -> Call:
        waiting = [self.first.name, self.second.name]
        return Call("execute_code", {"code": SCRIPT.format(quick=self.quick, waiting=waiting)})


@contextmanager
def fan(workspace: Path, name: str, quick: int = QUICK) -> Generator[Fan]:
    with gate(workspace, f"{name}-one") as first, gate(workspace, f"{name}-two") as second:
        yield Fan(first, second, quick)
