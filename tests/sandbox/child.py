"""A host that runs as an ordinary user, for tests: `python -m tests.sandbox.child FOLDER WALL...`.

It does without those walls, and prints as JSON how far it was confined and what got out.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.sandbox.attempts import ATTEMPTS, NEVER
from tests.sandbox.den import PYTHON, Den, opened

NOBODY = 65534


async def main(den: Den, without: tuple[str, ...]) -> None:
    async with opened(den):
        den.change(without=without)
        found = await den.confinement()
        escaped = await den.escapes(ATTEMPTS if without else {**ATTEMPTS, **NEVER})
    report = {"level": found.level, "gaps": found.gaps, "escaped": sorted(escaped)}
    os.write(1, json.dumps(report).encode())


if __name__ == "__main__":
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        sys.executable = PYTHON  # that of the tests may be in a folder of root's
    asyncio.run(main(Den(Path(sys.argv[1])), tuple(sys.argv[2:])))
