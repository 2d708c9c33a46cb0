"""`config.toml` of a home: read with its revision, changed under a lock, replaced atomically.

A person may save the file in an editor at any time. A change that they made to other settings is
kept; a change to the same settings is never overwritten. Everything here uses the disk.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from keryx.aio.renames import exchange
from keryx.config.editing.errors import CannotEditError, ChangedMeanwhileError
from keryx.config.editing.text_edits import Change, edited, value_at

FILE: Final = "config.toml"
LOCK: Final = "config.lock"
BYTE_ORDER_MARK: Final = "\ufeff"
"""Some editors write it at the beginning of a file; it means nothing, and stays."""
MOST_ATTEMPTS: Final = 10
"""How often a person may save the file while one change is written."""

Shown = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns a document as people see it: with marks in place of secrets."""


def revision_of(text: str) -> str:
    """Return a name for exactly this text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class ConfigFile:
    """The file of one home. It may not exist yet."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def path(self) -> Path:
        return self._home / FILE

    def read(self) -> str:
        """Return the text without a byte order mark; `CannotEditError` if it cannot be read."""
        return self._content().removeprefix(BYTE_ORDER_MARK)

    def _content(self) -> str:
        try:
            # Without translation of line ends: what is not changed stays as it is.
            return self.path.read_bytes().decode()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise CannotEditError(
                f"{self.path} cannot be read: {error}; correct it, or choose another home with "
                "KERYX_HOME"
            ) from error

    def change(
        self,
        changes: Sequence[Change],
        check: Callable[[str], None],
        *,
        revision: str | None = None,
        shown: Shown = lambda document: document,
    ) -> str:
        """Write the changes, and return the new text.

        `revision` is that of the text that the person saw; None: whatever it is now. `check` raises
        an error if the new text cannot be used. Nothing is written then.
        """
        try:
            with self._locked():
                return self._change(changes, check, revision, shown)
        except OSError as error:
            reason = error.strerror or str(error)
            raise CannotEditError(
                f"{self.path} cannot be written: {reason}; correct that, or choose another home "
                "with KERYX_HOME"
            ) from error

    def _change(
        self,
        changes: Sequence[Change],
        check: Callable[[str], None],
        revision: str | None,
        shown: Shown,
    ) -> str:
        target = self._target()
        for _ in range(MOST_ATTEMPTS):
            content = self._content()
            text = content.removeprefix(BYTE_ORDER_MARK)
            document = _parsed(text, self.path)
            if revision is not None and revision != revision_of(text):
                _check_unchanged(changes, shown(document))
            new = edited(text, changes)
            if new == text:
                return text
            check(new)
            if _replaced(target, content, content.removesuffix(text) + new):
                return new
        raise CannotEditError(f"{self.path} keeps changing; try again")

    def _target(self) -> Path:
        """Return the file itself: people keep it elsewhere, with a link to it in the home."""
        return Path(os.path.realpath(self.path))

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the lock file, so that concurrent writers of ours do not overwrite each other."""
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEditError(
            f"{path} is not valid TOML: {error}; correct it by hand: it is not changed until then"
        ) from error


def _check_unchanged(changes: Sequence[Change], document: Mapping[str, Any]) -> None:
    """Raise `ChangedMeanwhileError` if one of these settings is not what the person saw."""
    paths = [
        change.path
        for change in changes
        if value_at(document, change.path) not in (change.before, change.value)
    ]
    if paths:
        raise ChangedMeanwhileError(paths)


def _replaced(path: Path, old: str, new: str) -> bool:
    """Replace the text; return False, and change nothing, if the file is not the old one any more.

    The files are exchanged, so that a text that somebody saved at this very instant is not lost.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _write(temporary, new, _mode(path))
        if not path.exists():
            if old:
                return False
            temporary.replace(path)
        elif path.read_bytes() != old.encode():
            return False
        elif exchange(folder, temporary.name, path.name):
            if temporary.read_bytes() != old.encode():
                exchange(folder, temporary.name, path.name)
                return False
        else:
            temporary.replace(path)
        os.fsync(folder)
        return True
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
        os.close(folder)


def _write(path: Path, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _mode(path: Path) -> int:
    """Return the permissions of the file; a new one is readable for its owner only."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return 0o600
