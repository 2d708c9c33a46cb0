"""The folder of one run, in a place where other processes of the session run at the same time.

They may move it away and put a symlink there at any moment. So the host keeps the folder open and
uses its descriptor where the system allows: it writes, binds and opens only inside that folder.
This module knows nothing of what the files are for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Each level costs two descriptors while it is removed. Only a hostile script nests so deep.
DEEPEST: Final = 32


class RunFolder:
    """Created and filled by `lay_out`, deleted by `remove`; call both in threads.

    If `release` is called while `lay_out` runs, `lay_out` removes the folder itself.
    """

    def __init__(self, here: Path) -> None:
        self._here = here
        self._fds: list[int] = []
        self._path = here
        self._laid_out = False
        self._released = False

    @property
    def path(self) -> Path:
        """A path to this folder, also if it was replaced; on Linux it is short."""
        return self._path

    def lay_out(self, files: Mapping[str, str]) -> None:
        # Its name was secret, so what is there is new: this folder, or another folder of the same
        # session that was put in its place; the flags exclude a symlink.
        self._here.mkdir(mode=0o700)
        try:
            fd = os.open(self._here, _FOLDER)
            self._fds.append(fd)
            _write_all(fd, files)
            self._path = _path_of(fd, self._here)
        finally:
            self._laid_out = True
            if self._released:
                self.remove()

    def release(self) -> None:
        """Close the descriptor: `path` is not used any more."""
        self._released = True
        if self._laid_out:
            with suppress(IndexError):
                os.close(self._fds.pop())

    def remove(self) -> None:
        """Delete the folder. What a script made undeletable is left to its session's folder."""
        self.release()
        if not self._laid_out:
            return
        with suppress(OSError):
            # By its name: a symlink that was put there is removed, but not its target.
            parent = os.open(self._here.parent, _FOLDER)
            try:
                _remove(self._here.name, parent, DEEPEST)
            finally:
                os.close(parent)


def _path_of(fd: int, here: Path) -> Path:
    fd_path = Path(f"/proc/self/fd/{fd}")
    try:
        status = fd_path.stat()
    except OSError:
        return here  # not Linux: there is only the name
    return fd_path if os.path.samestat(status, os.fstat(fd)) else here


def _write_all(fd: int, files: Mapping[str, str]) -> None:
    """Write the files. Other processes may replace folders by symlinks; none is followed."""
    with ExitStack() as opened:
        folders = {"": fd}

        def folder(path: str) -> int:
            if path not in folders:
                parent, _, name = path.rpartition("/")
                os.mkdir(name, 0o700, dir_fd=folder(parent))
                folders[path] = os.open(name, _FOLDER, dir_fd=folder(parent))
                opened.callback(os.close, folders[path])
            return folders[path]

        for path, text in files.items():
            parent, _, name = path.rpartition("/")
            with open(os.open(name, _NEW, 0o600, dir_fd=folder(parent)), "wb") as file:  # noqa: PTH123 (a descriptor, not a path)
                file.write(text.encode())


def _remove(name: str, parent: int, depth: int) -> None:
    """Remove a file or folder if possible, without following symlinks or waiting for pipes."""
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        with suppress(OSError):
            fd = os.open(name, _FOLDER, dir_fd=parent)
            try:
                if depth:
                    _empty(fd, depth - 1)
            finally:
                os.close(fd)
            os.rmdir(name, dir_fd=parent)


def _empty(fd: int, depth: int) -> None:
    """Remove the entries one by one, as there may be millions; failures are not tried again."""
    with os.scandir(fd) as entries:
        for entry in entries:
            _remove(entry.name, fd, depth)
