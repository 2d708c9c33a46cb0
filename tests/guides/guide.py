"""Follows a guide as a reader would: writes its files, makes its edits, runs its commands.

- A `python` block begins with a comment that names its file. The file is written.
- A `diff` block names a file; its lines with `-` must be there once, and become those with `+`.
- A `console` block is run. After each `$ command` stands what it prints; `...` is any text. A
  command that ends in `&` goes on until the guide is over.

Everything happens in a copy of the sources, with a home of its own, on loopback.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
GUIDES: Final = ROOT / "docs/guides"
PORT: Final = "8377"
"""The port that the guides name. Each run gets one of its own instead, which is free."""
PATIENCE: Final = 120.0
"""Seconds until a command that hangs is ended."""
COPIED: Final = (
    "src",
    "pyproject.toml",
    "tests/__init__.py",
    "tests/conftest.py",
    "tests/cli/__init__.py",
    "tests/store/__init__.py",
    "tests/store/contracts",
)
ANY: Final = "..."
_BLOCK: Final = re.compile(r"^```(python|diff|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# (?P<path>[\w./-]+\.py)\n")


class Block(NamedTuple):
    """One block of code of a guide."""

    language: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    return [Block(*groups) for groups in _BLOCK.findall(page.read_text())]


def follow(page: Path, folder: Path) -> None:
    """Do all that the page says, in its order, in a copy of the sources."""
    _copy_sources(folder)
    port = _free_port()
    with ExitStack() as background:
        for block in blocks_of(page):
            text = block.text.replace(PORT, port)
            match block.language:
                case "python":
                    _write(text, folder)
                case "diff":
                    _edit(text, folder)
                case _:
                    _run_all(text, folder, background)


def write_files(page: Path, folder: Path) -> list[Path]:
    """Write the files of a page; return those that would become part of the repository."""
    _copy_sources(folder)
    files = [_write(block.text, folder) for block in blocks_of(page) if block.language == "python"]
    return [file for file in files if file.parent != folder]


def _copy_sources(folder: Path) -> None:
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def _write(text: str, folder: Path) -> Path:
    named = _FILE.match(text)
    assert named is not None, f"the block names no file: {text[:80]!r}"
    file = folder / named["path"]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def _edit(text: str, folder: Path) -> None:
    head, *lines = text.splitlines(keepends=True)
    file = folder / head.split()[1]
    source = file.read_text()
    for hunk in "".join(lines).split("@@\n"):
        changed = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in changed if line[0] in "- ")
        after = "".join(line[1:] for line in changed if line[0] in "+ ")
        assert source.count(before) == 1, f"{file.name} holds this not exactly once:\n{before}"
        source = source.replace(before, after)
    file.write_text(source)


def _run_all(text: str, folder: Path, background: ExitStack) -> None:
    for command, expected in _commands(text):
        if command.endswith("&"):
            background.enter_context(_running(command.removesuffix("&"), folder))
        else:
            _run(command, expected, folder)


def _commands(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command.strip(), expected.strip()


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "KERYX_HOME": str(folder / "home"),
        "PYTHONPATH": str(folder / "src"),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
    }


def _run(command: str, expected: str, folder: Path) -> None:
    ended = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    output = ended.stdout.strip()
    fits = re.fullmatch(_pattern(expected), output, re.DOTALL)
    assert fits, f"$ {command}\n{output}\n-- expected:\n{expected}"


def _pattern(expected: str) -> str:
    """A line of dots is any number of lines, also none; dots within a line are any text."""
    lines = [".*" if line == ANY else _line_pattern(line) for line in expected.splitlines()]
    return "\n".join(lines).replace(".*\n", "(?:.*\n)?")


def _line_pattern(line: str) -> str:
    return "[^\n]*".join(map(re.escape, line.split(ANY)))


@contextmanager
def _running(command: str, folder: Path) -> Generator[None]:
    """A command in the background; it is up once it has printed a line."""
    with subprocess.Popen(
        f"exec {command}",
        shell=True,
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline(), f"{command} ended before it said anything"
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
