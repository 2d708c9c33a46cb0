"""A host that runs as an ordinary user: `python -m tests.sandbox.unprivileged_host FOLDER WALL...`.

It leaves out those walls, and prints as JSON how far it was confined and which attempts worked.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.sandbox.confined_workspace import PYTHON, ConfinedWorkspace, opened
from tests.sandbox.escape_attempts import ATTEMPTS, NEVER

NOBODY = 65534


async def main(confined: ConfinedWorkspace, without: tuple[str, ...]) -> None:
    async with opened(confined):
        confined.change(without=without)
        confinement = await confined.confinement()
        escaped = await confined.escapes(ATTEMPTS if without else {**ATTEMPTS, **NEVER})
    report = {"level": confinement.level, "gaps": confinement.gaps, "escaped": sorted(escaped)}
    os.write(1, json.dumps(report).encode())


if __name__ == "__main__":
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        sys.executable = PYTHON  # that of the tests may be in a folder of root's
    asyncio.run(main(ConfinedWorkspace(Path(sys.argv[1])), tuple(sys.argv[2:])))
