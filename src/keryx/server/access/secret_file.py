"""Small files of secrets: readable by their owner only, replaced as a whole, changed one at a time.

What lies in them is hashed by whoever puts it there. Everything here asks the disk: use a thread.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from keryx.errors import UserMustActError

T = TypeVar("T", bound=msgspec.Struct)

Stamp = tuple[int, int, int]


class SecretFile(Generic[T]):
    """One such file, which need not be there."""

    def __init__(self, path: Path, kind: type[T], empty: Callable[[], T]) -> None:
        self._path = path
        self._decode = msgspec.json.Decoder(kind).decode
        self._empty = empty

    def read(self) -> T:
        """What lies in it; `UserMustActError` if that cannot be read."""
        try:
            return self._decode(self._path.read_bytes())
        except FileNotFoundError:
            return self._empty()
        except (OSError, msgspec.DecodeError) as error:
            raise UserMustActError(
                f"{self._path} cannot be read: {error}; mend it, or remove it and begin anew"
            ) from error

    def change(self, change: Callable[[T], T]) -> T:
        """Put in what the function makes of what lies there; others wait for their turn."""
        try:
            with self._alone():
                before = self.read()
                after = change(before)
                if after != before:
                    self._replace(msgspec.json.encode(after))
                return after
        except OSError as error:
            raise UserMustActError(
                f"{self._path} cannot be written: {error}; choose another home with KERYX_HOME"
            ) from error

    def stamp(self) -> Stamp | None:
        """Another one after each change; None: there is no file."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    @contextmanager
    def _alone(self) -> Generator[None]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self._path.with_suffix(".lock")
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def _replace(self, data: bytes) -> None:
        made = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(made, flags, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            made.replace(self._path)
        except BaseException:
            made.unlink(missing_ok=True)
            raise
