"""Reads and writes files in a folder that others can change: no links, no pipes, nothing endless.

Linux can say whether a program has a file open for writing; elsewhere nobody knows, and a file that
is written in place in the very moment of a change may be read half.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from keryx.ports.memory import ProviderUnavailableError

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UnusableFileError(ProviderUnavailableError):
    """A file or folder of notes is not what it must be; a person has to mend it."""


class BusyFileError(ProviderUnavailableError):
    """Another program is writing the file now."""


@contextmanager
def open_folder(root: Path, name: str, *, create: bool) -> Generator[int | None]:
    """Open a folder of a folder, both only for their owner. None: there is no such folder."""
    descriptors: list[int] = []
    try:
        try:
            if create and not root.is_symlink():
                root.mkdir(mode=0o700, exist_ok=True)
            descriptors.append(os.open(root, _FOLDER))
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=descriptors[0])
            descriptors.append(os.open(name, _FOLDER, dir_fd=descriptors[0]))
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            path = root / name if descriptors else root
            raise UnusableFileError(_not_a(path, "folder", error)) from None
        if create:
            for descriptor in descriptors:
                os.fchmod(descriptor, 0o700)
        yield descriptors[1]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


@contextmanager
def locked(folder: int, name: str) -> Generator[None]:
    """Hold the lock of a file of notes; other processes of the home wait for it."""
    descriptor = _open(folder, name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_file(folder: int, name: str, most: int, *, whole: bool = False) -> bytes | None:
    """Read a regular file. None: there is none. `whole`: refuse one that is being written."""
    try:
        descriptor = _open(folder, name, _READ)
    except FileNotFoundError:
        return None
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise UnusableFileError(_not_a(Path(name), "file", None))
        if whole and is_being_written(descriptor):
            raise BusyFileError(f"a program is writing {name}; it is read again soon")
        content = _read(descriptor, most)
    finally:
        os.close(descriptor)
    if content is None:
        raise UnusableFileError(
            f"{name} has more than {most} bytes; shorten it, or move it away and start anew"
        )
    return content


def write_file(folder: int, name: str, content: bytes) -> None:
    descriptor = _open(folder, name, _WRITE)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def is_being_written(descriptor: int) -> bool:
    """Return whether some program has the file open for writing. False if nobody can say."""
    lease = getattr(fcntl, "F_SETLEASE", None)
    if lease is None:
        return False
    try:
        # A program that opens the file meanwhile makes the kernel send a signal; the default one
        # ends the process, this one does nothing.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, lease, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, lease, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def remove_file(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return


def _open(folder: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags, 0o600, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnusableFileError(_not_a(Path(name), "file", error)) from None


def _read(descriptor: int, most: int) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while part := os.read(descriptor, 65_536):
        parts.append(part)
        size += len(part)
        if size > most:
            return None
    return b"".join(parts)


def _not_a(path: Path, kind: str, error: OSError | None) -> str:
    if error is None or error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
        return (
            f"{path} must be a plain {kind} and no link, pipe or anything else; move it away, "
            f"and Keryx writes it anew"
        )
    return f"{path} cannot be opened ({error.strerror}); mend that, and it is tried again"
