"""Run as `python -m tests.app.compaction_program HOME SESSION LINE`: it dies while it sums up.

It kills itself at the given line of all that are executed in the modules of compaction. If there
are fewer, it prints how many there were.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from keryx import Keryx
from keryx.aio.loops import run_loop
from keryx.models.scripted import ScriptedModel, ScriptedReply
from keryx.ports.model import ModelRequest

MODULES = ("operations/compaction.py", "context/summary_input.py", "context/verbatim.py")


def script(request: ModelRequest) -> ScriptedReply:
    is_summing = request.system.startswith("Sum up")
    return ScriptedReply(text="They talked." if is_summing else "Long " * 400, piece=500)


class Killer:
    """A trace function that counts lines, and kills at one of them."""

    def __init__(self, line: int) -> None:
        self.count = 0
        self._line = line

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.endswith(MODULES):
            return None
        if event == "line":
            self.count += 1
            if self.count == self._line:
                os.kill(os.getpid(), signal.SIGKILL)
        return self


async def main(home: Path, session_id: str, line: int) -> None:
    killer = Killer(line)
    async with Keryx(model=ScriptedModel(script), tools=[], home=home) as app:
        session = await app.open(session_id)
        sys.settrace(killer)
        try:
            await session.compact()
        finally:
            sys.settrace(None)
    sys.stdout.write(f"{killer.count}\n")


if __name__ == "__main__":
    run_loop(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
