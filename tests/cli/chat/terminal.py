"""A chat in a real terminal: tmux runs it, presses its keys and shows its screen."""

from __future__ import annotations

import shlex
import subprocess
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.commands import COMMAND, environment

PATIENCE = 40.0
"""Only reached by a test that fails."""
KEPT = ("PATH", "PYTHONPATH", "HOME", "KERYX_HOME", "LANG", "TMPDIR")


class Terminal:
    """One tmux server with one window."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._socket = f"keryx-{uuid.uuid4().hex[:12]}"

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def start(self, *words: str, size: tuple[int, int] = (80, 24), **variables: str) -> None:
        # A chat that dies with its terminal leaves temporary files.
        temporary = self._home.parent / "tmp"
        temporary.mkdir(exist_ok=True)
        own = {"LANG": "C.UTF-8", "TMPDIR": str(temporary)}
        env = environment(self._home) | own | variables
        assigned = [f"{name}={env[name]}" for name in (*KEPT, *variables) if name in env]
        chat = shlex.join(["env", *assigned, COMMAND, *words])
        command = f"{chat}; echo left with $?; exec sleep 600"
        columns, rows = map(str, size)
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, "/bin/sh", "-c", command)

    def stop(self) -> None:
        subprocess.run(
            ["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False
        )

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def paste(self, text: str) -> None:
        self.tmux("set-buffer", text)
        self.tmux("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    @property
    def scrollback(self) -> str:
        return self.tmux("capture-pane", "-p", "-S", "-")

    def wait(self, condition: str | Callable[[str], bool]) -> str:
        """Wait until the text is in the scrollback, or the condition holds for it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            text = self.scrollback
            if condition in text if isinstance(condition, str) else condition(text):
                return text
            assert time.monotonic() < deadline, f"{condition} is not in:\n{text}"
            time.sleep(0.05)


@contextmanager
def terminal(home: Path) -> Generator[Terminal]:
    window = Terminal(home)
    try:
        yield window
    finally:
        window.stop()
