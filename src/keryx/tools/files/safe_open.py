"""Opens, reads and creates files without ever following a symbolic link.

A canonical path has no links. Each part of it is opened from the root on, and links are refused, so
a link that replaces a folder after the check cannot lead elsewhere. Everything else works on the
descriptor of the folder. It refuses to know which paths are allowed.
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

MAX_WHOLE: Final = 16 * 1024 * 1024
"""A file up to this size is read into memory as a whole; a larger one is read in pieces."""
PIECE: Final = 1024 * 1024
# Below this a hash costs less than a millisecond.
MAX_HASHED: Final = 1024 * 1024
# The clocks of file systems tick at least every 10 ms. A second change within a tick may not change
# the modification time, so only the hash shows it.
TICK_NS: Final = 20_000_000

_FOLDER_FLAGS: Final = (
    getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
)
LIST_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking, because opening a pipe would wait for a writer.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_MESSAGES: Final = {
    errno.ELOOP: "symbolic links lead in a circle, or a link was put there just now",
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
def readable_errors(name: str) -> Generator[None]:
    """Turn errors of the system into a `ToolFailedError` that a model can act on."""
    try:
        yield
    except OSError as error:
        message = _MESSAGES.get(error.errno or 0) or (error.strerror or str(error)).lower()
        raise ToolFailedError(f"{name}: {message}") from error


@contextlib.contextmanager
def open_folder(path: Path, *, listed: bool = False) -> Generator[int]:
    """Yield the descriptor of a folder by its canonical path; `listed` needs a readable folder."""
    fd = _open_by_parts(path)
    try:
        if listed:
            reopened = os.open(".", LIST_FLAGS, dir_fd=fd)
            os.close(fd)
            fd = reopened
        yield fd
    finally:
        os.close(fd)


def create_folders(path: Path) -> list[Path]:
    """Create the folder and its parents; return the new ones, outermost first."""
    missing: list[Path] = []
    while not os.path.lexists(path):
        missing.append(path)
        path = path.parent
    created: list[Path] = []
    try:
        for folder in reversed(missing):
            with open_folder(folder.parent) as above, contextlib.suppress(FileExistsError):
                os.mkdir(folder.name, dir_fd=above)
                created.append(folder)
    except OSError:
        remove_folders(created)
        raise
    return created


def remove_folders(created: list[Path]) -> None:
    """Remove created folders again, if they are empty."""
    for folder in reversed(created):
        with contextlib.suppress(OSError), open_folder(folder.parent) as above:
            os.rmdir(folder.name, dir_fd=above)


def _open_by_parts(path: Path) -> int:
    fd = os.open(path.anchor, _FOLDER_FLAGS)
    for part in path.parts[1:]:
        try:
            below = os.open(part, _FOLDER_FLAGS, dir_fd=fd)
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
        """Return `size` bytes from `start`; fewer only at the end of the file."""
        pieces: list[bytes] = []
        while size > 0 and (piece := os.pread(self.fd, size, start)):
            pieces.append(piece)
            start += len(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_whole(self) -> bytes:
        """Return the whole content; `MAX_WHOLE` + 1 bytes mean that the file is too large."""
        # The size is only a hint: a file may grow, and some system files report 0.
        hint = min(self.size, MAX_WHOLE) + 1
        data = self.read(0, hint)
        return data if len(data) < hint else data + self.read(hint, MAX_WHOLE + 1 - hint)

    def hash(self) -> str:
        """Return the hash of the whole content, read in pieces."""
        digest = hashlib.sha256()
        at = 0
        while piece := os.pread(self.fd, PIECE, at):
            digest.update(piece)
            at += len(piece)
        return digest.hexdigest()

    def stamp(self, data: bytes | None) -> Stamp:
        """Return the stamp of the file; `data` is the whole content if it was read."""
        hash_ = None
        if data is not None and (len(data) <= MAX_HASHED or self.changed_just_now):
            hash_ = blob_hash(data)
        return self.stamped(hash_)

    def stamped(self, hash_: str | None) -> Stamp:
        status = self.status
        return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, hash_)

    @property
    def changed_just_now(self) -> bool:
        """Whether the file changed so recently that another change may not change its time."""
        return time.time_ns() - self.status.st_mtime_ns < TICK_NS


@contextlib.contextmanager
def open_file(path: Path, name: str) -> Generator[OpenFile]:
    """Open a regular file by its canonical path; anything else is refused without waiting."""
    with open_folder(path.parent) as folder:
        # Checked before opening: to open a device can already have an effect.
        _refuse_special(os.stat(path.name, dir_fd=folder, follow_symlinks=False), name)
        fd = os.open(path.name, _READ_FLAGS, dir_fd=folder)
    try:
        status = os.fstat(fd)
        _refuse_special(status, name)
        yield OpenFile(fd, status)
    finally:
        os.close(fd)


def is_folder(path: Path, name: str) -> bool:
    """Return whether a canonical path is a folder. Raise if it is neither a folder nor a file."""
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
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "not a file")
    advice = "; use list_files to see what is in it" if stat.S_ISDIR(mode) else ""
    raise ToolFailedError(f"{name} is {kind}, not a file{advice}")


def temporary_name() -> str:
    return f".keryx-{secrets.token_hex(8)}"


def write_temporary(folder: int, data: bytes, mode: int | None) -> str:
    """Write a new temporary file into the folder; with mode None the umask decides."""
    name = temporary_name()
    fd = os.open(name, _CREATE_FLAGS, 0o666 if mode is None else 0o600, dir_fd=folder)
    try:
        with memoryview(data) as view:
            at = 0
            while at < len(view):
                at += os.write(fd, view[at:])
        if mode is not None:
            os.fchmod(fd, mode)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(fd)
    return name
