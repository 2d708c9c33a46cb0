"""The home of a host: where its state lives, which process owns it, how others reach the owner.

A file lock shows that the host is alive: the kernel releases it when the process ends. Taking the
home, listening on its socket and writing the address happen under a second lock, so a process that
finds the home taken also finds the address of its owner.
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
TRANSFER_LOCK: Final = "host.door"
ADDRESS_FILE: Final = "host.json"
SOCKET: Final = "host.sock"
STORE: Final = "keryx.db"
GUESTS: Final = "guests"
TMP_PREFIX: Final = "keryx-"
# The kernel limits the path of a socket to 108 bytes, macOS to 104.
LONGEST_SOCKET_PATH: Final = 100
BACKLOG: Final = 128


class HomeTakenError(UserMustActError):
    """Another process owns this home, and this process cannot use it."""

    @classmethod
    def unreachable(cls, home: Path) -> HomeTakenError:
        return cls(
            f"another Keryx process owns the home {home} and does not answer; "
            "stop that process, or choose another home with KERYX_HOME"
        )


class HostAddress(msgspec.Struct, frozen=True):
    """Which process owns the home, and how to reach it. Written to `host.json`."""

    pid: int
    socket: str
    secret: str
    tmp: str = ""
    """The folder for temporary files, if it exists; a killed host leaves it behind."""
    guest: str = ""
    """The id of a guest; empty for the owner of the home."""


class Home:
    """A home that this process owns until it calls `release`."""

    def __init__(
        self, path: Path, lock: int, listening: socket.socket, address: HostAddress
    ) -> None:
        self.path = path
        self.listening = listening
        self.address = address
        self.guests: list[HostAddress] = []
        """The guests (programs that host their own sessions) that ran when the home was taken."""
        self._lock = close_in_forks(lock)

    @classmethod
    def take(cls, path: Path, *, by_force: bool = False) -> Home | HostAddress:
        """Take the home (created if needed), or return its owner's address. Blocking.

        `by_force` takes it even from a live owner; the store then refuses that owner's writes.
        """
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _TransferLock(path):
                home = _take(path)
                if by_force and isinstance(home, HostAddress):
                    # The old host keeps its lock on the file that it has open, without a name.
                    (path / LOCK).unlink()
                    home = _take(path)
                if isinstance(home, Home):
                    home.guests = live_guests(path)
                return home
        except OSError as error:
            raise UserMustActError(
                f"the home {path} cannot be used: {error}; choose another with KERYX_HOME"
            ) from error

    @property
    def store(self) -> Path:
        return self.path / STORE

    def release(self) -> None:
        """Make the home free for other processes. Open connections stay open."""
        with suppress(OSError), _TransferLock(self.path):
            # After a take-over by force the files belong to the new host.
            if _read_address(self.path / ADDRESS_FILE) == self.address:
                _remove_socket(self.address, self.path)
                (self.path / ADDRESS_FILE).unlink()
        self.listening.close()
        close_lock(self._lock)


class GuestRegistration:
    """The files of a guest in a home that another process owns: a lock, a socket and an address.

    The lock shows that the guest is alive: the next owner asks each live guest for its sessions.
    """

    def __init__(
        self, path: Path, lock: int, listening: socket.socket, address: HostAddress
    ) -> None:
        self.path = path
        self.listening = listening
        self.address = address
        self._lock = close_in_forks(lock)

    @classmethod
    def create(cls, path: Path) -> GuestRegistration:
        """Create the files. Blocking: use a thread."""
        folder, name = path / GUESTS, secrets.token_hex(8)
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            # Locked before the address is written: a guest without a lock is therefore dead.
            lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            listening, socket_path = _listen(folder / f"{name}.sock")
            address = HostAddress(os.getpid(), socket_path, secrets.token_hex(32), new_tmp(), name)
            _write_address(folder / f"{name}.json", address)
        except OSError as error:
            raise UserMustActError(
                f"the home {path} cannot be used: {error}; choose another with KERYX_HOME"
            ) from error
        return cls(path, lock, listening, address)

    @property
    def store(self) -> Path:
        return self.path / STORE

    def release(self) -> None:
        """Remove all files of the guest from the home."""
        self.listening.close()
        _remove_guest(self.path / GUESTS, self.address)
        close_lock(self._lock)


def live_guests(path: Path) -> list[HostAddress]:
    """Return the guests that are alive, and remove the files of dead ones. Blocking."""
    addresses: list[HostAddress] = []
    for file in sorted((path / GUESTS).glob("*.json")):
        address = _read_address(file)
        if address is None or address.guest != file.stem:
            continue
        try:
            lock = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            _remove_guest(file.parent, address)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            addresses.append(address)
        else:
            _remove_tmp(address)
            _remove_guest(file.parent, address)
        finally:
            os.close(lock)
    return addresses


def _remove_guest(folder: Path, address: HostAddress) -> None:
    _remove_socket(address, folder)
    with suppress(OSError):
        for suffix in ("json", "lock"):
            (folder / f"{address.guest}.{suffix}").unlink(missing_ok=True)


_locks: set[int] = set()


def close_in_forks(lock: int) -> int:
    """Close this lock in forked children: they would hold it after this process has ended."""
    _locks.add(lock)
    return lock


def close_lock(lock: int) -> None:
    _locks.discard(lock)
    os.close(lock)


def _close_inherited() -> None:
    while _locks:
        with suppress(OSError):
            os.close(_locks.pop())


os.register_at_fork(after_in_child=_close_inherited)


class _TransferLock:
    """A lock that is held while a home gets or loses its owner."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path / TRANSFER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *exc: object) -> None:
        os.close(self._file)


def _take(path: Path) -> Home | HostAddress:
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return _read_address(path / ADDRESS_FILE) or HostAddress(0, "", "")
    try:
        last_owner = _read_address(path / ADDRESS_FILE)
        if last_owner is not None:
            _remove_socket(last_owner, path)
            _remove_tmp(last_owner)
        listening, socket_path = _listen(path / SOCKET)
        address = HostAddress(os.getpid(), socket_path, secrets.token_hex(32), new_tmp())
        _write_address(path / ADDRESS_FILE, address)
    except BaseException:
        os.close(lock)
        raise
    return Home(path, lock, listening, address)


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


def read_owner_address(path: Path) -> HostAddress | None:
    """Return the address of the present or last owner of the home. Blocking."""
    return _read_address(path / ADDRESS_FILE)


def _read_address(file: Path) -> HostAddress | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=HostAddress)
    except (OSError, msgspec.DecodeError):
        return None


def _write_address(at: Path, address: HostAddress) -> None:
    new = at.with_name(f"{at.name}.new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, msgspec.json.encode(address))
    finally:
        os.close(file)
    new.replace(at)


def new_tmp() -> str:
    """Return a name for a temporary folder that nobody can guess; the folder is not created."""
    return f"{tempfile.gettempdir()}/{TMP_PREFIX}{secrets.token_hex(8)}"


def _remove_tmp(address: HostAddress) -> None:
    """Remove the temporary folder of a killed host, if the name and the owner are as expected."""
    folder = Path(address.tmp)
    with suppress(OSError):
        status = folder.lstat()
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        if is_ours and folder.name.startswith(TMP_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)


def _remove_socket(address: HostAddress, path: Path) -> None:
    where = Path(address.socket)
    with suppress(OSError):
        where.unlink()
        if where.parent != path.absolute():
            where.parent.rmdir()  # created because the path of the home is too long
