"""The folder of one run, in a place where other processes of its session are at work meanwhile.

They may move it away and put a link there at any moment. So the host keeps hold of what it made and
goes by that, wherever the system has a way to: what it writes, binds and opens is in that folder or
nowhere. It refuses to know what the files are for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Each level costs two descriptors while it is removed. Nobody but a bad actor goes so deep.
DEEPEST: Final = 32


class Folder:
    """Made and filled by `lay_out`, gone after `remove`; both are for threads.

    The one who lays it out may be given up in mid-work; then it tidies up after itself.
    """

    def __init__(self, here: Path) -> None:
        self._here = here
        self._held: list[int] = []
        self._way = here
        self._laid_out = False
        self._unwanted = False

    @property
    def way(self) -> Path:
        """A path that leads to this folder, whatever is put in its place; short, on Linux."""
        return self._way

    def lay_out(self, files: Mapping[str, str]) -> None:
        # Its name was not known before, so what is there is new: this one, or what its session put
        # in its place, which then is a folder of that session too and no link.
        self._here.mkdir(mode=0o700)
        try:
            held = os.open(self._here, _FOLDER)
            self._held.append(held)
            _write_all(held, files)
            self._way = _way_through(held, self._here)
        finally:
            self._laid_out = True
            if self._unwanted:
                self.remove()

    def let_go(self) -> None:
        """Nobody uses its way any more."""
        self._unwanted = True
        if self._laid_out:
            with suppress(IndexError):
                os.close(self._held.pop())

    def remove(self) -> None:
        """What a script has made undeletable goes with the folder of its session, or stays."""
        self.let_go()
        if not self._laid_out:
            return
        with suppress(OSError):
            # By its name: what was put there instead is removed, and what it leads to is not.
            above = os.open(self._here.parent, _FOLDER)
            try:
                _remove(self._here.name, above, DEEPEST)
            finally:
                os.close(above)


def _way_through(held: int, here: Path) -> Path:
    through = Path(f"/proc/self/fd/{held}")
    try:
        found = through.stat()
    except OSError:
        return here  # not Linux: a name is all there is
    return through if os.path.samestat(found, os.fstat(held)) else here


def _write_all(held: int, files: Mapping[str, str]) -> None:
    """Whoever else is in there may replace folders by links; none of them is followed."""
    with ExitStack() as opened:
        folders = {"": held}

        def folder(path: str) -> int:
            if path not in folders:
                above, _, name = path.rpartition("/")
                os.mkdir(name, 0o700, dir_fd=folder(above))
                folders[path] = os.open(name, _FOLDER, dir_fd=folder(above))
                opened.callback(os.close, folders[path])
            return folders[path]

        for path, text in files.items():
            above, _, name = path.rpartition("/")
            with open(os.open(name, _NEW, 0o600, dir_fd=folder(above)), "wb") as file:  # noqa: PTH123 (a descriptor, not a path)
                file.write(text.encode())


def _remove(name: str, above: int, depth: int) -> None:
    """Remove it if that can be done. Nothing is followed, and no pipe is waited for."""
    try:
        os.unlink(name, dir_fd=above)
    except OSError:
        with suppress(OSError):
            held = os.open(name, _FOLDER, dir_fd=above)
            try:
                if depth:
                    _empty(held, depth - 1)
            finally:
                os.close(held)
            os.rmdir(name, dir_fd=above)


def _empty(held: int, depth: int) -> None:
    """One by one, for there may be millions; and once, for what resists would do so again."""
    with os.scandir(held) as entries:
        for entry in entries:
            _remove(entry.name, held, depth)
