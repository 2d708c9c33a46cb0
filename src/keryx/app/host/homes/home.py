"""The home of a host: where its state lives, which process owns it, how others reach the owner.

A file lock shows that the host is alive: the kernel releases it when the process ends. Taking the
home, listening on its socket and writing the address happen under a second lock, so a process that
finds the home taken also finds the address of its owner.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from keryx.app.host.homes.host_address import (
    SOCKET,
    HostAddress,
    listen,
    new_tmp,
    read_address,
    remove_remains,
    remove_socket,
    socket_path,
)
from keryx.errors import UserMustActError

LOCK: Final = "host.lock"
TRANSFER_LOCK: Final = "host.door"
ADDRESS_FILE: Final = "host.json"
STORE: Final = "keryx.db"
GUESTS: Final = "guests"


class HomeTakenError(UserMustActError):
    """Another process owns this home, and this process cannot use it."""

    @classmethod
    def unreachable(cls, home: Path) -> HomeTakenError:
        return cls(
            f"another Keryx process owns the home {home} and does not answer; "
            "stop that process, or choose another home with KERYX_HOME"
        )


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
            if read_address(self.path / ADDRESS_FILE) == self.address:
                remove_socket(self.address, self.path)
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
            address = HostAddress(
                os.getpid(),
                socket_path(folder / f"{name}.sock"),
                secrets.token_hex(32),
                new_tmp(),
                name,
            )
            listening = listen(address, folder / f"{name}.json")
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
        _remove_guest(self.path / GUESTS, self.address.guest)
        close_lock(self._lock)


def live_guests(path: Path) -> list[HostAddress]:
    """Return the guests that are alive, and remove the files of dead ones. Blocking."""
    folder = path / GUESTS
    addresses: list[HostAddress] = []
    for name in sorted({file.name.partition(".")[0] for file in folder.glob("*.json*")}):
        file = folder / f"{name}.json"
        try:
            lock = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            _remove_guest(folder, name)
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            address = read_address(file)  # None: it does not listen yet
            if address is not None and address.guest == name:
                addresses.append(address)
        else:
            _remove_guest(folder, name)
        finally:
            os.close(lock)
    return addresses


def _remove_guest(folder: Path, name: str) -> None:
    remove_remains(folder / f"{name}.json")
    with suppress(OSError):
        (folder / f"{name}.lock").unlink()


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
        return read_address(path / ADDRESS_FILE) or HostAddress(0, "", "")
    try:
        remove_remains(path / ADDRESS_FILE)
        address = HostAddress(
            os.getpid(), socket_path(path / SOCKET), secrets.token_hex(32), new_tmp()
        )
        listening = listen(address, path / ADDRESS_FILE)
    except BaseException:
        os.close(lock)
        raise
    return Home(path, lock, listening, address)


def read_owner_address(path: Path) -> HostAddress | None:
    """Return the address of the present or last owner of the home. Blocking."""
    return read_address(path / ADDRESS_FILE)
