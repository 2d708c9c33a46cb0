"""The home of a host: where its state lives, and the lock that says that it is taken.

A lock of the kernel is the host's sign of life, not a clock: it is gone with its process, however
that ended.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from keryx.errors import UserMustActError

LOCK: Final = "host.lock"
STORE: Final = "keryx.db"


class HomeTakenError(UserMustActError):
    """Another host owns this home."""


class Home:
    """A home that this process owns, until it is released."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def take(cls, path: Path) -> Home:
        """Own the home, made if there is none. Asks the disk: call it in a thread."""
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UserMustActError(
                f"the home {path} cannot be used: {error}; choose another with KERYX_HOME"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(lock, 100).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise HomeTakenError(
                f"another Keryx (process {owner}) uses the home {path}; "
                "wait for it, stop it, or choose another home with KERYX_HOME"
            ) from None
        os.truncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        return cls(path, lock)

    @property
    def store(self) -> Path:
        return self.path / STORE

    def release(self) -> None:
        os.close(self._lock)
