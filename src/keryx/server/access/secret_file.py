"""Small files of secrets: readable by their owner only, replaced atomically, changed under a lock.

The callers hash what they store. Everything here uses the disk: call it in a thread.
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

from keryx.decoding import json_decoder
from keryx.errors import UserMustActError

T = TypeVar("T", bound=msgspec.Struct)

Stamp = tuple[int, int, int]


class SecretFile(Generic[T]):
    """One such file; it may not exist yet."""

    def __init__(self, path: Path, kind: type[T], empty: Callable[[], T]) -> None:
        self._path = path
        self._decode = json_decoder(kind).decode
        self._empty = empty

    def read(self) -> T:
        """Return its content; `UserMustActError` if it cannot be read."""
        try:
            return self._decode(self._path.read_bytes())
        except FileNotFoundError:
            return self._empty()
        except (OSError, msgspec.DecodeError) as error:
            raise UserMustActError(
                f"{self._path} cannot be read: {error}; correct it, or remove it and start again"
            ) from error

    def change(self, change: Callable[[T], T]) -> T:
        """Replace the content by what the function returns; concurrent changes wait."""
        try:
            with self._locked():
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
        """Return a value that differs after each change; None: there is no file."""
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    @contextmanager
    def _locked(self) -> Generator[None]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self._path.with_suffix(".lock")
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    def _replace(self, data: bytes) -> None:
        new_path = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(new_path, flags, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            new_path.replace(self._path)
        except BaseException:
            new_path.unlink(missing_ok=True)
            raise
