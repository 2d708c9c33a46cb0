"""What a script takes along: the packages that it may import, its code, and what it was granted.

All of it is text by path, so that it can be laid out in a folder or sent through a pipe. It refuses
to know which.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.ports.tool import Tool

GUESTS: Final = ("keryx_tools", "hermes_tools")
"""What scripts import; it travels with them, so that any place has it."""
SCRIPT: Final = "script.py"
GRANTED: Final = "granted.json"
_ARRIVAL: Final = "keryx_tools/_arrival.py"

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Kit(msgspec.Struct, frozen=True):
    """One script, ready to go."""

    files: Mapping[str, str]
    arguments: Sequence[str]

    @classmethod
    def of(cls, code: str, arguments: Sequence[str], tools: Mapping[str, Tool]) -> Kit:
        """Reads files when it is first called: for threads."""
        granted = msgspec.json.encode([_told(tool) for tool in tools.values()]).decode()
        return cls({**_packages(), SCRIPT: code, GRANTED: granted}, arguments)

    @property
    def arrival(self) -> str:
        """A program for `python -c`: unpacks on the other side what was `packed` here."""
        return self.files[_ARRIVAL]

    def packed(self, environment: Mapping[str, str]) -> bytes:
        """All of it as one piece, with the length before it."""
        packed = {"files": self.files, "arguments": self.arguments, "environment": environment}
        data = json.dumps(packed, default=dict).encode()
        return len(data).to_bytes(4, "big") + data


class Folder:
    """A folder of one run, in a place where others may be at work meanwhile. Both are for threads.

    The one who lays it out may be given up in mid-work; then it tidies up after itself.
    """

    def __init__(self, here: Path) -> None:
        self.here = here
        self._laid_out = False
        self._unwanted = False

    def lay_out(self, files: Mapping[str, str]) -> None:
        self.here.mkdir(mode=0o700)
        try:
            _write_all(self.here, files)
        finally:
            self._laid_out = True
            if self._unwanted:
                self.remove()

    def remove(self) -> None:
        """What a script has made undeletable goes with the folder of its session, or stays."""
        self._unwanted = True
        if self._laid_out:
            with suppress(RecursionError):
                shutil.rmtree(self.here, ignore_errors=True)


def _write_all(here: Path, files: Mapping[str, str]) -> None:
    """Whoever else is in there may replace folders by links; none of them is followed."""
    with ExitStack() as opened:

        def keep(fd: int) -> int:
            opened.callback(os.close, fd)
            return fd

        folders = {"": keep(os.open(here, _FOLDER))}

        def folder(path: str) -> int:
            if path not in folders:
                above, _, name = path.rpartition("/")
                os.mkdir(name, 0o700, dir_fd=folder(above))
                folders[path] = keep(os.open(name, _FOLDER, dir_fd=folder(above)))
            return folders[path]

        for path, text in files.items():
            above, _, name = path.rpartition("/")
            with open(os.open(name, _NEW, 0o600, dir_fd=folder(above)), "wb") as file:  # noqa: PTH123 (a descriptor, not a path)
                file.write(text.encode())


@cache
def _packages() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in GUESTS:
        spec = find_spec(name)
        assert spec is not None, f"{name} is part of Keryx"
        assert spec.origin is not None
        above = Path(spec.origin).parent.parent
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            found[path.relative_to(above).as_posix()] = path.read_text(encoding="utf-8")
    return found


def _told(tool: Tool) -> dict[str, Any]:
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "positional": list(properties),
    }
