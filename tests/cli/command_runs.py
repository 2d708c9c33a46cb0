"""Runs commands in prepared homes and environments, by the hundred."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keryx.app.host.homes.home import STORE
from tests.cli.commands import COMMAND, environment
from tests.cli.generated import ENDLESS, Leaf, fill

AT_ONCE: Final = 4
"""Each waits for itself now and then, so more than there are cores."""
PATIENCE: Final = 50.0
RULE_KEY: Final = "approval/a_0123456789abcdef/0"
UP: Final = b"Sign in on the page"
UNWANTED: Final = (
    "Traceback",
    "Exception ignored",
    "Fatal Python error",
    "Assertion",
    "never awaited",
    "was destroyed",
    "an error in Keryx itself",
)
DOCUMENTED: Final = {0, 1, 2, 3, 4, 130, 141}
"""The exit codes that `keryx --help` explains; 70 is there too, and means a fault."""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    leaf: str
    command: list[str]
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"{self.command} -> {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    def check(self, *, codes: Iterable[int] = DOCUMENTED) -> None:
        """What holds whatever the surroundings are."""
        said = self.out + self.err
        assert not [text for text in UNWANTED if text in said], str(self)
        assert self.code in codes, str(self)


@dataclass(frozen=True)
class Around:
    """What a command finds around it. `redirect` is written as in a shell."""

    redirect: str = ""
    broken: str = ""
    """The stream, `stdout` or `stderr`, that nobody reads any more."""
    before: str = ""
    """What the shell does first."""
    variables: Mapping[str, str | bytes | None] = field(default_factory=dict[str, str | bytes])
    stdin: bytes = b""
    words: Sequence[str] = ()
    """Other words than those that fit the command."""
    more: bytes | None = None
    """A word after all others."""


class World:
    """A home with a session, a token and a rule in it, to be copied for every command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = folder / "template"
        self._script = folder / "script.py"
        self._script.write_text("print('grüße ✓ 😀')\n")
        messages = '[{"role": "user", "content": "from elsewhere"}]'
        self._script.with_suffix(".py.json").write_text(messages)  # a file to import
        # Compiled once for all: a third of a short command's time.
        self._cache = folder / "pycache"
        self._run("run", "a herald ✓ 😀")
        self._run("tokens", "make", "made before")
        self.session = self._run("sessions", "list").split()[0]
        self._make_rule()

    def _make_rule(self) -> None:
        """Something that was allowed for always."""
        with closing(sqlite3.connect(self._home / STORE)) as connection, connection:
            value = b'{"verdict":"allow","tool":"write_file"}'
            connection.execute("INSERT INTO records VALUES (?, 1, ?)", (RULE_KEY, value))

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [COMMAND, *words], env=self.variables(self._home), capture_output=True, check=True
        )
        return done.stdout.decode()

    def variables(self, home: Path) -> dict[str, str]:
        env = environment(home)
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        return {
            **env,
            "KERYX_MODEL": "scripted:demo",
            "PYTHONPYCACHEPREFIX": str(self._cache),
            "PYTHONIOENCODING": "utf-8",
        }

    def all(
        self, around: Around | Callable[[Leaf], Around], leaves: Iterable[Leaf]
    ) -> dict[str, Ended]:
        """Run every command in these surroundings, each with a home of its own."""

        def run(leaf: Leaf) -> Ended:
            return self.run(leaf, around if isinstance(around, Around) else around(leaf))

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return {end.leaf: end for end in pool.map(run, leaves)}

    def run(self, leaf: Leaf, around: Around) -> Ended:
        place = Path(tempfile.mkdtemp(dir=self._folder))
        home = place / "home"
        shutil.copytree(self._home, home)
        for name in ("work", "tmp"):
            (place / name).mkdir()
        words = around.words or leaf.arguments(from_stdin=bool(around.stdin))
        words = fill(words, self.session, self._script)
        script = f'{around.before} exec "$@" {around.redirect}'
        command = [COMMAND, *words, *([] if around.more is None else [os.fsdecode(around.more)])]
        env = {**self.variables(home), "TMPDIR": str(place / "tmp"), **around.variables}
        broken = _broken_pipe() if around.broken else subprocess.PIPE
        process = subprocess.Popen(
            ["/bin/sh", "-c", script, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=broken if around.broken == "stdout" else subprocess.PIPE,
            stderr=broken if around.broken == "stderr" else subprocess.PIPE,
            env={name: os.fsdecode(value) for name, value in env.items() if value is not None},
            cwd=place / "work",
        )
        if around.broken:
            os.close(broken)
        out, err = _finish(process, around.stdin, endless=leaf.name in ENDLESS)
        shutil.rmtree(place, ignore_errors=True)
        texts = (data.decode(errors="replace") for data in (out, err))
        return Ended(leaf.name, command, process.returncode, *texts)


def _finish(
    process: subprocess.Popen[bytes], stdin: bytes, *, endless: bool
) -> tuple[bytes, bytes]:
    output = b""
    try:
        if endless and process.stdout is not None:
            for line in process.stdout:
                output += line
                if UP in line:
                    process.send_signal(signal.SIGINT)
                    break
        out, err = process.communicate(stdin, timeout=PATIENCE)
    finally:
        process.kill()
    return output + (out or b""), err or b""


def _broken_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing
