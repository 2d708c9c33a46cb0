"""The home of a host: where its state lives, who owns it, and how others reach the owner.

A lock of the kernel is the host's sign of life, not a clock: it is gone with its process, however
that ended. Taking the home, listening on its socket and saying where that is happen behind one
door, so whoever finds the home taken finds its owner's plate too.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import UserMustActError

LOCK: Final = "host.lock"
DOOR: Final = "host.door"
PLATE: Final = "host.json"
SOCKET: Final = "host.sock"
STORE: Final = "keryx.db"
GUESTS: Final = "guests"
TMP_PREFIX: Final = "keryx-"
# The kernel's limit for the path of a socket is 108 bytes, on macOS 104.
LONGEST_SOCKET_PATH: Final = 100
BACKLOG: Final = 128


class HomeTakenError(UserMustActError):
    """Another host owns this home, and cannot do what is asked."""

    @classmethod
    def unreachable(cls, home: Path) -> HomeTakenError:
        return cls(
            f"another Keryx owns the home {home} and cannot be reached; "
            "stop it, or choose another home with KERYX_HOME"
        )


class Plate(msgspec.Struct, frozen=True):
    """Who owns the home, and how to reach it."""

    pid: int
    socket: str
    secret: str
    tmp: str = ""
    """A folder for what is temporary, which need not be there; a killed host leaves it behind."""
    guest: str = ""
    """The id of a guest; a host has none."""


class Home:
    """A home that this process owns, until it is released."""

    def __init__(self, path: Path, lock: int, listening: socket.socket, plate: Plate) -> None:
        self.path = path
        self.listening = listening
        self.plate = plate
        self.guests: list[Plate] = []
        """Programs that host sessions of their own here, and were alive when it was taken."""
        self._lock = keep_from_forks(lock)

    @classmethod
    def take(cls, path: Path, *, by_force: bool = False) -> Home | Plate:
        """Own the home, made if there is none; or learn who does. Asks the disk: use a thread.

        By force also from a host that does not let go; the store keeps that one from writing.
        """
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _door(path):
                found = _take(path)
                if by_force and isinstance(found, Plate):
                    # The old host's lock stays with the file that it has open, under no name.
                    (path / LOCK).unlink()
                    found = _take(path)
                if isinstance(found, Home):
                    found.guests = live_guests(path)
                return found
        except OSError as error:
            raise UserMustActError(
                f"the home {path} cannot be used: {error}; choose another with KERYX_HOME"
            ) from error

    @property
    def store(self) -> Path:
        return self.path / STORE

    def release(self) -> None:
        """Let others have it. Whoever is connected stays so."""
        with suppress(OSError), _door(self.path):
            # Not if it was taken by force: then all that is there belongs to the new host.
            if _read_plate(self.path / PLATE) == self.plate:
                _remove_socket(self.plate, self.path)
                (self.path / PLATE).unlink()
        self.listening.close()
        let_go_of(self._lock)


class GuestRoom:
    """What a program has in a home that another process owns: a lock and a socket of its own.

    The lock is the guest's sign of life, as the host's is: whoever takes the home next finds the
    guests that live, and asks each which sessions it hosts.
    """

    def __init__(self, path: Path, lock: int, listening: socket.socket, plate: Plate) -> None:
        self.path = path
        self.listening = listening
        self.plate = plate
        self._lock = keep_from_forks(lock)

    @classmethod
    def make(cls, path: Path) -> GuestRoom:
        """Asks the disk: use a thread."""
        folder, name = path / GUESTS, secrets.token_hex(8)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            # Locked before anything tells of it: whoever finds it unlocked finds it dead.
            lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            listening, where = _listen(folder / f"{name}.sock")
            plate = Plate(os.getpid(), where, secrets.token_hex(32), new_tmp(), name)
            _write_plate(folder / f"{name}.json", plate)
        except OSError as error:
            raise UserMustActError(
                f"the home {path} cannot be used: {error}; choose another with KERYX_HOME"
            ) from error
        return cls(path, lock, listening, plate)

    @property
    def store(self) -> Path:
        return self.path / STORE

    def release(self) -> None:
        """Nothing of the guest is left in the home."""
        self.listening.close()
        _remove_guest(self.path / GUESTS, self.plate)
        let_go_of(self._lock)


def live_guests(path: Path) -> list[Plate]:
    """The guests of a home whose processes live; what dead ones left is removed. Blocking."""
    plates: list[Plate] = []
    for file in sorted((path / GUESTS).glob("*.json")):
        plate = _read_plate(file)
        if plate is None or plate.guest != file.stem:
            continue
        try:
            lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            _remove_guest(file.parent, plate)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            plates.append(plate)
        else:
            _remove_tmp(plate)
            _remove_guest(file.parent, plate)
        finally:
            os.close(lock)
    return plates


def _remove_guest(folder: Path, plate: Plate) -> None:
    _remove_socket(plate, folder)
    with suppress(OSError):
        for suffix in ("json", "lock"):
            (folder / f"{plate.guest}.{suffix}").unlink(missing_ok=True)


_locks: set[int] = set()


def keep_from_forks(lock: int) -> int:
    """A lock belongs to its process: a child that was forked would hold it on after its death."""
    _locks.add(lock)
    return lock


def let_go_of(lock: int) -> None:
    _locks.discard(lock)
    os.close(lock)


def _close_inherited() -> None:
    while _locks:
        with suppress(OSError):
            os.close(_locks.pop())


os.register_at_fork(after_in_child=_close_inherited)


class _door:  # noqa: N801 (reads as a word where it is used)
    """Held for the moment in which a home changes hands."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path / DOOR, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *exc: object) -> None:
        os.close(self._file)


def _take(path: Path) -> Home | Plate:
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return _read_plate(path / PLATE) or Plate(0, "", "")
    try:
        before = _read_plate(path / PLATE)
        if before is not None:
            _remove_socket(before, path)
            _remove_tmp(before)
        listening, where = _listen(path / SOCKET)
        plate = Plate(os.getpid(), where, secrets.token_hex(32), new_tmp())
        _write_plate(path / PLATE, plate)
    except BaseException:
        os.close(lock)
        raise
    return Home(path, lock, listening, plate)


def _listen(at: Path) -> tuple[socket.socket, str]:
    where = str(at.absolute())
    if len(os.fsencode(where)) > LONGEST_SOCKET_PATH:
        where = str(Path(tempfile.mkdtemp(prefix="keryx-")) / SOCKET)
    listening = socket.socket(socket.AF_UNIX)
    try:
        with suppress(FileNotFoundError):
            Path(where).unlink()
        listening.bind(where)
        Path(where).chmod(0o600)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening, where


def owner_of(path: Path) -> Plate | None:
    """The plate of whoever owns the home, or owned it last. Asks the disk."""
    return _read_plate(path / PLATE)


def _read_plate(file: Path) -> Plate | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Plate)
    except (OSError, msgspec.DecodeError):
        return None


def _write_plate(at: Path, plate: Plate) -> None:
    made = at.with_name(f"{at.name}.new")
    file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, msgspec.json.encode(plate))
    finally:
        os.close(file)
    made.replace(at)


def new_tmp() -> str:
    """A name for a folder that nobody can guess; who needs it makes it."""
    return f"{tempfile.gettempdir()}/{TMP_PREFIX}{secrets.token_hex(8)}"


def _remove_tmp(plate: Plate) -> None:
    """What a killed host left. Only a folder of ours, by the name that such folders have."""
    folder = Path(plate.tmp)
    with suppress(OSError):
        found = folder.lstat()
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
        if ours and folder.name.startswith(TMP_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)


def _remove_socket(plate: Plate, path: Path) -> None:
    where = Path(plate.socket)
    with suppress(OSError):
        where.unlink()
        if where.parent != path.absolute():
            where.parent.rmdir()  # made for a home whose own path is too long
