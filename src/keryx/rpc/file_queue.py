"""The shared folder of the file transport, as it is on disk. Blocking: for threads.

    req/       calls, each a file that was renamed to here; <name>.cancel gives one up
    claimed/   calls that a server has taken, and will not take again
    rep/       answers, under the names of their calls; whoever reads one deletes it
    tmp/       what is being written
    server.json, server.lock   who serves, and that it lives

Whoever shares the folder may put there what it likes. So nothing is followed: the folders are
opened once, files without following links, and only plain names are taken.

It refuses to know what the calls mean and when to look.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import re
import secrets
import stat
from collections import OrderedDict
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from keryx.errors import NobodyMustActError

LOCK: Final = "server.lock"
BEAT: Final = "server.json"
_FOLDERS: Final = ("req", "claimed", "rep", "tmp")
_CANCEL: Final = ".cancel"
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,180}\.json")
# One look costs as much for a folder with millions of files as for one with thousands.
MOST_LOOKED_AT: Final = 4096
# While many calls wait, so many looks take from those that were seen; then it is seen what is new.
MOST_UNSEEN: Final = 32
# Names that are known to be used, so that none of them is ever run again.
MOST_REMEMBERED: Final = 100_000
_TRIES: Final = 10  # for a lock that vanishes while it is taken

_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderTakenError(NobodyMustActError):
    """Another server serves this folder."""


class Claim(NamedTuple):
    """A call that is this server's now, and what is in it."""

    name: str
    data: bytes
    fault: str = ""
    """Why it cannot be read."""


class _Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    instance: str
    pid: int
    beat: float = 0.0


class FileQueue:
    """One folder, held by one server."""

    def __init__(self, root: int, folders: dict[str, int], lock: int, instance: str) -> None:
        self._root = root
        self._lock = lock
        self._folders = folders
        self._req, self._claimed, self._rep, self._tmp = (folders[name] for name in _FOLDERS)
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._waiting: OrderedDict[str, tuple[int, int]] = OrderedDict()  # by age and size
        self._unseen = 0
        self.instance = instance

    @classmethod
    def open(cls, path: Path) -> Self:
        """`FolderTakenError` if it is served already."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        instance = secrets.token_hex(16)
        with contextlib.ExitStack() as opened:

            def keep(fd: int) -> int:
                opened.callback(os.close, fd)
                return fd

            root = keep(os.open(path, _OPEN_FOLDER))
            lock = keep(_take_lock(root, path, instance))
            folders: dict[str, int] = {}
            for name in _FOLDERS:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=root)
                folders[name] = keep(os.open(name, _OPEN_FOLDER, dir_fd=root))
            opened.pop_all()
            return cls(root, folders, lock, instance)

    def close(self) -> None:
        """Let go of the folder; calls that nobody claimed wait for the next server."""
        _remove(BEAT, self._root)
        _remove(LOCK, self._root)
        for fd in (*self._folders.values(), self._root, self._lock):
            os.close(fd)

    # -- calls

    def look(
        self, most: int, room: int, *, largest: int, idle: bool
    ) -> tuple[list[Claim], list[str]]:
        """Take calls, so many of so many bytes at most, or one if idle; and what was given up."""
        self._unseen += 1
        enough = 0 < most <= len(self._waiting) and self._unseen < MOST_UNSEEN
        given_up = [] if enough else self._scan()
        claims: list[Claim] = []
        while self._waiting and len(claims) < most:
            name, (_, size) = next(iter(self._waiting.items()))
            room -= size
            if room < 0 and (claims or not idle):
                break
            del self._waiting[name]
            if self._claim(name):
                claims.append(self.read(name, largest))
        return claims, given_up

    def _scan(self) -> list[str]:
        """See what waits, the oldest first; what was given up is named."""
        self._unseen = 0
        waiting: dict[str, tuple[int, int]] = {}
        cancels: list[str] = []
        with os.scandir(self._req) as entries:
            for entry in itertools.islice(entries, MOST_LOOKED_AT):
                if entry.name.endswith(_CANCEL):
                    cancels.append(entry.name)
                elif _NAME.fullmatch(entry.name):
                    with contextlib.suppress(FileNotFoundError):
                        waiting[entry.name] = self._waiting.get(entry.name) or _age_and_size(entry)
        self._waiting = OrderedDict(sorted(waiting.items(), key=itemgetter(1)))
        return [self._give_up(name) for name in cancels]

    def orphans(self) -> list[str]:
        """Calls that another server had taken when it ended, and did not answer."""
        with os.scandir(self._claimed) as entries:
            names = [entry.name for entry in itertools.islice(entries, MOST_LOOKED_AT)]
        found = [name for name in names if _NAME.fullmatch(name)]
        for name in found:
            if self._is_in(self._rep, name):
                _remove(name, self._claimed)
        return [name for name in found if self._is_in(self._claimed, name)]

    def read(self, name: str, largest: int) -> Claim:
        """What is in a call that was claimed."""
        try:
            fd = os.open(name, _READ, dir_fd=self._claimed)
        except OSError as error:
            return Claim(name, b"", f"the call cannot be read: {error.strerror}")
        try:
            seen = os.fstat(fd)
            if not stat.S_ISREG(seen.st_mode):
                return Claim(name, b"", "the call is no file")
            if seen.st_size > largest:
                return Claim(
                    name, b"", f"the call is larger than the {largest} bytes that are taken"
                )
            with open(fd, "rb", closefd=False) as file:
                return Claim(name, file.read(seen.st_size))
        except OSError as error:
            return Claim(name, b"", f"the call cannot be read: {error.strerror}")
        finally:
            os.close(fd)

    def _claim(self, name: str) -> bool:
        if name in self._seen or self._is_in(self._claimed, name) or self._is_in(self._rep, name):
            # The name is another call's. This one is not run, and does not get that one's answer.
            _remove(name, self._req)
            return False
        try:
            os.rename(name, name, src_dir_fd=self._req, dst_dir_fd=self._claimed)
        except FileNotFoundError:
            return False  # it was given up just now
        self._seen[name] = None
        if len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return True

    def _give_up(self, cancel: str) -> str:
        name = cancel.removesuffix(_CANCEL)
        if not name.endswith(".json"):
            name += ".json"
        for folder in (self._req, self._rep):
            _remove(name, folder)
        _remove(cancel, self._req)
        return name

    # -- answers

    def answer(self, name: str, data: bytes) -> None:
        """Answer a call; `FileExistsError`, and the call is done with, if it has an answer."""
        is_answered = self._is_in(self._rep, name)
        if not is_answered:
            self._write(data, name, self._rep)
        self.drop(name)
        if is_answered:
            raise FileExistsError(f"there is an answer to {name} already")

    def drop(self, name: str) -> None:
        """A claimed call is over."""
        _remove(name, self._claimed)

    def withdraw(self, name: str) -> None:
        """Take back an answer that nobody waits for."""
        _remove(name, self._rep)

    def sweep(self, before: float) -> None:
        """Remove answers from before that time (on the wall): nobody has come for them."""
        with os.scandir(self._rep) as entries:
            for entry in itertools.islice(entries, MOST_LOOKED_AT):
                with contextlib.suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.name, dir_fd=self._rep)

    def beat(self, now: float) -> None:
        """Say that this server lives."""
        alive = _Holder(self.instance, os.getpid(), now)
        self._write(msgspec.json.encode(alive), BEAT, self._root)

    def _write(self, data: bytes, name: str, folder: int) -> None:
        tmp = f"server-{secrets.token_hex(16)}"
        fd = os.open(tmp, _MAKE, 0o600, dir_fd=self._tmp)
        try:
            with open(fd, "wb") as file:  # noqa: PTH123 (a descriptor, not a path)
                file.write(data)
            os.rename(tmp, name, src_dir_fd=self._tmp, dst_dir_fd=folder)
        except OSError:
            _remove(tmp, self._tmp)
            raise

    @staticmethod
    def _is_in(folder: int, name: str) -> bool:
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


def _age_and_size(entry: os.DirEntry[str]) -> tuple[int, int]:
    seen = entry.stat(follow_symlinks=False)
    return seen.st_mtime_ns, seen.st_size


def _remove(name: str, folder: int) -> None:
    """Whatever it is; what cannot be removed stays, and is never run."""
    with contextlib.suppress(FileNotFoundError):
        try:
            os.unlink(name, dir_fd=folder)
        except (IsADirectoryError, PermissionError):
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=folder)


def _take_lock(root: int, path: Path, instance: str) -> int:
    """The lock's descriptor. The file says who holds it, and the kernel whether that one lives."""
    for _ in range(_TRIES):
        try:
            fd = os.open(LOCK, _MAKE, 0o600, dir_fd=root)
        except FileExistsError:
            try:
                fd = os.open(LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
            except FileNotFoundError:
                continue
        try:
            if _hold(fd, root, path):
                os.ftruncate(fd, 0)
                os.pwrite(fd, msgspec.json.encode(_Holder(instance, os.getpid())), 0)
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    raise FolderTakenError(f"{path / LOCK} comes and goes; other servers want this folder too")


def _hold(fd: int, root: int, path: Path) -> bool:
    """False if the file was removed meanwhile: then it is not the lock any more."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 1000, 0).decode(errors="replace")
        raise FolderTakenError(f"another server serves {path}: {holder}") from None
    try:
        there = os.stat(LOCK, dir_fd=root, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(fd))
