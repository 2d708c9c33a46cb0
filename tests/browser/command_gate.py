"""A gate in the workspace: a command waits at it until the test lets it go on."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from keryx.testing.modelserver import Call


class Gate:
    """A pipe with a name. It can be opened before or after somebody waits."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self._descriptor = descriptor

    def open(self) -> None:
        os.write(self._descriptor, b"go\n")

    def call(self, before: str, after: str = "", **arguments: object) -> Call:
        """A command that says one thing, waits at the gate, and says the other."""
        command = f"echo {before}; read go < {self.name}; echo {after}"
        # Its own limit is two minutes; the gate opens when the test has seen what it came for.
        return Call("terminal", {"command": command, "timeout": 1_000, **arguments})


@contextmanager
def gate(workspace: Path, name: str) -> Generator[Gate]:
    path = workspace / name
    os.mkfifo(path)
    # For both directions: opening it then never waits for the other side.
    descriptor = os.open(path, os.O_RDWR)
    try:
        yield Gate(name, descriptor)
    finally:
        os.close(descriptor)
        path.unlink()
