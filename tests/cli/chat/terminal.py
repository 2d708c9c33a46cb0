"""A chat in a real terminal: tmux runs it, presses its keys and shows its screen."""

from __future__ import annotations

import shlex
import subprocess
import termios
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
        self.through: tuple[str, ...] = ()
        """A program that runs the chat."""
        self.is_hidden = False
        """Whether the chat takes tmux for another terminal, which wraps rows in the same way."""
        self.in_shell = False
        """Whether an interactive shell starts the chat, as its job."""

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
        hidden = ("-u", "TMUX", "-u", "TMUX_PANE", "TERM=xterm-256color") if self.is_hidden else ()
        chat = shlex.join(["env", *hidden, *assigned, *self.through, COMMAND, *words])
        # The settings of the terminal come first: who sees how the chat ended sees them too.
        command = f"{chat}; code=$?; stty -a; echo left with $code; exec sleep 600"
        if self.in_shell:
            self._open(size, "env", *assigned, "PS1=shell$ ", "bash", "--norc", "-i")
            self.type(shlex.join([COMMAND, *words]))
            self.keys("Enter")
        else:
            self._open(size, "/bin/sh", "-c", command)

    def _open(self, size: tuple[int, int], *words: str) -> None:
        columns, rows = map(str, size)
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, *words)

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

    def send(self, text: str) -> None:
        """Type a message and press Enter."""
        self.type(text)
        self.keys("Enter")

    def record(self, file: Path) -> None:
        """Write all that the chat writes from now on to a file, which lags behind the screen."""
        file.touch()
        self.tmux("pipe-pane", f"cat >> {file}")

    def recorded(self, file: Path, end: bytes) -> bytes:
        """Wait until the record has these bytes, and return all of it."""
        self.wait(lambda _: end in file.read_bytes())
        return file.read_bytes()

    @property
    def pid(self) -> int:
        """The process of the chat."""
        shell = self.tmux("display", "-p", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    @property
    def caret(self) -> tuple[int, str]:
        """The column of the cursor, and the row that it is in."""
        x, y = map(int, self.tmux("display", "-p", "#{cursor_x} #{cursor_y}").split())
        return x, self.screen.split("\n")[y]

    @property
    def styled(self) -> str:
        """The screen with its colours."""
        return self.tmux("capture-pane", "-p", "-e")

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_told(self, columns: int, rows: int) -> None:
        """Wait until tmux has told the chat of this size: it does so up to 250 ms later."""
        tty = self.tmux("display", "-p", "#{pane_tty}").strip()
        deadline = time.monotonic() + PATIENCE
        with open(tty, "rb", buffering=0) as file:  # noqa: PTH123 (a device, not to be read)
            while termios.tcgetwinsize(file) != (rows, columns):
                assert time.monotonic() < deadline, termios.tcgetwinsize(file)
                time.sleep(0.01)

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
            assert time.monotonic() < deadline, f"{condition} is not in:\n{text[-3_000:]}"
            time.sleep(0.03)


@contextmanager
def terminal(home: Path) -> Generator[Terminal]:
    window = Terminal(home)
    try:
        yield window
    finally:
        window.stop()
