"""Opening, reading and making files without ever following a symbolic link.

A canonical path holds no link. Walking it component by component from the root, refusing links,
therefore arrives where it names, or not at all: a link that is swapped in after the check cannot
lead elsewhere. Everything after the walk works on the folder's descriptor. Which paths are
allowed is not decided here.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.files import Stamp
from keryx.ports.store import blob_hash

WHOLE: Final = 16 * 1024 * 1024
"""A file up to this size is taken into memory as a whole; a larger one is read in pieces."""
PIECE: Final = 1024 * 1024
# Below this a hash costs less than a millisecond.
HASHED: Final = 1024 * 1024
# Clocks of file systems tick every 10 ms at the slowest. A change so soon after the last one
# might not show in the time, so only the hash can tell.
TICK_NS: Final = 20_000_000

_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LISTED: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Not blocking: opening a pipe would wait for a writer.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_SAID: Final = {
    errno.ELOOP: "symbolic links lead in a circle, or one was put there just now",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ENOENT: "no such file or folder",
}


@contextlib.contextmanager
def telling(name: str) -> Generator[None]:
    """Turn what the system says into an error that a model can act on."""
    try:
        yield
    except OSError as error:
        said = _SAID.get(error.errno or 0) or (error.strerror or str(error)).lower()
        raise ToolFailedError(f"{name}: {said}") from error


@contextlib.contextmanager
def open_folder(path: Path, *, listed: bool = False) -> Generator[int]:
    """The descriptor of a folder by its canonical path; to be listed, it must be readable."""
    fd = _walk(path)
    try:
        if listed:
            reopened = os.open(".", LISTED, dir_fd=fd)
            os.close(fd)
            fd = reopened
        yield fd
    finally:
        os.close(fd)


def make_folders(path: Path) -> list[Path]:
    """Make the folder and those above it; returns the ones that were not there, outermost first."""
    missing: list[Path] = []
    while not os.path.lexists(path):
        missing.append(path)
        path = path.parent
    made: list[Path] = []
    try:
        for folder in reversed(missing):
            with open_folder(folder.parent) as above, contextlib.suppress(FileExistsError):
                os.mkdir(folder.name, dir_fd=above)
                made.append(folder)
    except OSError:
        remove_folders(made)
        raise
    return made


def remove_folders(made: list[Path]) -> None:
    """Take back folders that were made for nothing, as far as they are empty."""
    for folder in reversed(made):
        with contextlib.suppress(OSError), open_folder(folder.parent) as above:
            os.rmdir(folder.name, dir_fd=above)


def _walk(path: Path) -> int:
    fd = os.open(path.anchor, _FOLDER)
    for part in path.parts[1:]:
        try:
            below = os.open(part, _FOLDER, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


class OpenFile(msgspec.Struct, frozen=True):
    """A regular file that is open for reading."""

    fd: int
    status: os.stat_result

    @property
    def size(self) -> int:
        return self.status.st_size

    def read(self, start: int, size: int) -> bytes:
        """Up to that many bytes from there; fewer only at the end."""
        pieces: list[bytes] = []
        while size > 0 and (piece := os.pread(self.fd, size, start)):
            pieces.append(piece)
            start += len(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_whole(self) -> bytes:
        """All of it, if that is not too much: one byte more than `WHOLE` says that it is."""
        # The size is a hint only: a file may grow, and some of the system's say 0.
        hint = min(self.size, WHOLE) + 1
        data = self.read(0, hint)
        return data if len(data) < hint else data + self.read(hint, WHOLE + 1 - hint)

    def hash(self) -> str:
        """The hash of all of it, read in pieces."""
        found = hashlib.sha256()
        at = 0
        while piece := os.pread(self.fd, PIECE, at):
            found.update(piece)
            at += len(piece)
        return found.hexdigest()

    def stamp(self, data: bytes | None) -> Stamp:
        """What the file is, given the whole content if it was read."""
        hashed = None
        if data is not None and (len(data) <= HASHED or self.may_change_unseen):
            hashed = blob_hash(data)
        return self.stamped(hashed)

    def stamped(self, hashed: str | None) -> Stamp:
        status = self.status
        return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, hashed)

    @property
    def may_change_unseen(self) -> bool:
        """Whether it changed just now, and might again without another time."""
        return time.time_ns() - self.status.st_mtime_ns < TICK_NS


@contextlib.contextmanager
def open_file(path: Path, name: str) -> Generator[OpenFile]:
    """Open a regular file by its canonical path; anything else is refused without waiting."""
    with open_folder(path.parent) as folder:
        # Looked at first: to open a device may already do something.
        _refuse_special(os.stat(path.name, dir_fd=folder, follow_symlinks=False), name)
        fd = os.open(path.name, _READ, dir_fd=folder)
    try:
        status = os.fstat(fd)
        _refuse_special(status, name)
        yield OpenFile(fd, status)
    finally:
        os.close(fd)


def is_folder(path: Path, name: str) -> bool:
    """Whether it is a folder, by its canonical path; what is neither that nor a file is refused."""
    status = path.lstat()
    if stat.S_ISDIR(status.st_mode):
        return True
    _refuse_special(status, name)
    return False


def _refuse_special(status: os.stat_result, name: str) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "a symbolic link")
    kind = next((kind for holds, kind in _KINDS if holds(mode)), "not a file")
    advice = "; use list_files to see what is in it" if stat.S_ISDIR(mode) else ""
    raise ToolFailedError(f"{name} is {kind}, not a file{advice}")


def temporary_name() -> str:
    return f".keryx-{secrets.token_hex(8)}"


def make_temporary(folder: int, data: bytes, mode: int | None) -> str:
    """Write a new file next to its later place; a mode of None leaves it to the umask."""
    name = temporary_name()
    fd = os.open(name, _MAKE, 0o666 if mode is None else 0o600, dir_fd=folder)
    try:
        with memoryview(data) as rest:
            at = 0
            while at < len(rest):
                at += os.write(fd, rest[at:])
        if mode is not None:
            os.fchmod(fd, mode)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(fd)
    return name
