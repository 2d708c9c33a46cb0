"""Starting `tests.store.store_program` and talking to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


class Child:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def hear(self) -> Any:
        """The next line that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the child ended with {self.process.wait()}"
        return json.loads(line)

    def hear_all(self) -> list[Any]:
        """All lines until its end; one that was cut in the middle by its death was never said."""
        assert self.process.stdout is not None
        return [json.loads(line) for line in self.process.stdout if line.endswith(b"\n")]

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()


@contextmanager
def child(action: str, path: Path, *flags: str) -> Generator[Child]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.store.store_program", action, str(path), *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        try:
            yield Child(process)
        finally:
            process.kill()


def said_by(action: str, path: Path, *flags: str) -> list[Any]:
    """All that it says, to its own end."""
    with child(action, path, *flags) as started:
        return started.hear_all()
