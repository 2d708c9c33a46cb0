"""Several files replaced, made or deleted: all of them, or none.

Everything is written beside its place first, then the change is recorded, then the files change
places with what was there. What was there is looked at once more at that instant: if it is not
what the edit was made for, everything goes back to where it was. Reasons to edit, and what the
model is told of success, belong to the tools.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.files import FileChange, Files, Stamp
from keryx.ports.store import blob_hash
from keryx.ports.tool import ToolContext
from keryx.tools.files import safe_open
from keryx.tools.files.renames import exchange, rename_to_free

KEPT: Final = 8 * 1024 * 1024
"""Content up to this size is kept in the log, to be shown and restored."""

_EFFECTIVE: Final = os.access in os.supports_effective_ids

Record = Callable[[Sequence[FileChange]], None]
"""Makes the changes durable, and blocks until they are."""


class Before(msgspec.Struct, frozen=True):
    """A file as it was found; its data only if that is not too large."""

    stamp: Stamp
    hash: str
    mode: int
    data: bytes | None

    @property
    def size(self) -> int:
        return self.stamp.size


class Edit(msgspec.Struct, frozen=True):
    """What one file is to become; None: there is no file."""

    path: Path
    name: str
    before: Before | None
    after: bytes | None
    mode: int | None = None
    """For a new file; None leaves it to the umask."""
    after_hash: str | None = None
    """If the caller has it already; that of a large file costs some milliseconds."""

    def change(self) -> FileChange:
        before = self.before
        data = None if before is None else before.data
        hashed = None if self.after is None else self.after_hash or blob_hash(self.after)
        return FileChange(
            path=self.path,
            before_hash=None if before is None else before.hash,
            after_hash=hashed,
            before=None if data is None or len(data) > KEPT else data,
        )


def look(path: Path, name: str, last: Stamp | None = None) -> Before | None:
    """What is there now, None if nothing is; `last` may save reading what will not be kept."""
    with safe_open.telling(name):
        try:
            with safe_open.open_file(path, name) as file:
                data, hashed = _taken(file, last)
                mode = stat.S_IMODE(file.status.st_mode) & 0o777
                return Before(file.stamped(hashed), hashed, mode, data)
        except FileNotFoundError:
            return None


def _taken(file: safe_open.OpenFile, last: Stamp | None) -> tuple[bytes | None, str]:
    if last is not None and last.hash is not None and file.size > KEPT:
        is_same = last.identity == file.stamped(None).identity
        if is_same and not file.may_change_unseen:
            return None, last.hash
    data = file.read_whole()
    if len(data) > safe_open.WHOLE:
        return None, file.hash()
    return data, blob_hash(data)


def refuse_stale(files: Files, path: Path, name: str, before: Before) -> None:
    """Refuse to edit what is not as the session last saw it."""
    last = files.last_seen(path)
    if last is not None and not last.matches(before.stamp):
        raise ToolFailedError(f"{name} changed since you read it; read it again. Nothing was done.")


def recorder(context: ToolContext) -> Record:
    """Makes the changes of a call known, from its thread."""

    def record(changes: Sequence[FileChange]) -> None:
        context.from_thread(context.files.changing, changes, context.call_id)

    return record


def replace_all(files: Files, edits: Sequence[Edit], record: Record) -> None:
    """Make all edits, or raise with every file as it was."""
    changes = [edit.change() for edit in edits]
    made: list[Path] = []
    steps: list[_Step] = []
    with ExitStack() as stack:
        try:
            for edit in edits:
                with safe_open.telling(edit.name):
                    if edit.after is not None:
                        made += safe_open.make_folders(edit.path.parent)
                    folder = stack.enter_context(safe_open.open_folder(edit.path.parent))
                    steps.append(_Step(edit, folder))
                    steps[-1].prepare()
            record(changes)
            for step in steps:
                with safe_open.telling(step.edit.name):
                    step.act()
        except BaseException as error:
            _undo(steps, made, error)
            raise
        for step, change in zip(steps, changes, strict=True):
            step.settle()
            files.seen(step.edit.path, step.stamp(change.after_hash))


def _undo(steps: Sequence[_Step], made: list[Path], error: BaseException) -> None:
    lost: list[str] = []
    for step in reversed(steps):
        try:
            step.undo()
        except OSError:
            lost.append(step.edit.name)
    safe_open.remove_folders(made)
    if lost:
        raise ToolFailedError(
            f"{error} And what had been done to {', '.join(lost)} could not be undone; look at it."
        ) from error


class _Step:
    """One edit on its way: `beside` names the new content first, and then what was there."""

    def __init__(self, edit: Edit, folder: int) -> None:
        self.edit = edit
        self._folder = folder
        self._beside: str | None = None
        self._new: os.stat_result | None = None
        self._acted = False

    def prepare(self) -> None:
        edit, before = self.edit, self.edit.before
        if before is not None and not self._is_writable(edit.path.name):
            raise ToolFailedError(f"{edit.name} is read-only; change its mode first")
        if edit.after is not None:
            mode = edit.mode if before is None else before.mode
            self._beside = safe_open.make_temporary(self._folder, edit.after, mode)
            self._new = self._status(self._beside)

    def act(self) -> None:
        name, before = self.edit.path.name, self.edit.before
        if before is None:
            self._make(name)
        elif self._beside is None:
            # Out of the way, not yet gone.
            self._beside = safe_open.temporary_name()
            rename_to_free(self._folder, name, self._beside)
            self._acted = True
            self._check(self._beside, before)
        elif exchange(self._folder, self._beside, name):
            self._acted = True
            self._check(self._beside, before)
        else:
            self._check(name, before)
            self._rename(self._beside, name)
            self._beside = None
            self._acted = True

    def undo(self) -> None:
        name, before = self.edit.path.name, self.edit.before
        if not self._acted:
            self.settle()
        elif before is None:
            self._refuse_foreign(name)
            os.unlink(name, dir_fd=self._folder)
        elif self._beside is None:
            self._refuse_foreign(name)
            self._write_back(name, before)
        elif self.edit.after is None:
            rename_to_free(self._folder, self._beside, name)
        else:
            exchange(self._folder, self._beside, name)
            self._refuse_foreign(self._beside)
            self.settle()

    def settle(self) -> None:
        """Remove what is left beside."""
        if self._beside is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._beside, dir_fd=self._folder)
            self._beside = None

    def stamp(self, hashed: str | None) -> Stamp | None:
        new = self._new
        return None if new is None else Stamp(new.st_ino, new.st_size, new.st_mtime_ns, hashed)

    def _make(self, name: str) -> None:
        assert self._beside is not None
        try:
            rename_to_free(self._folder, self._beside, name)
        except FileExistsError:
            raise ToolFailedError(
                f"{self.edit.name} was made by someone else just now; read it first. "
                "Nothing was done."
            ) from None
        self._beside = None
        self._acted = True

    def _check(self, name: str, before: Before) -> None:
        found = self._status(name)
        if (found.st_ino, found.st_size, found.st_mtime_ns) != before.stamp.identity:
            raise ToolFailedError(
                f"{self.edit.name} was changed by someone else just now; read it again. "
                "Nothing was done."
            )

    def _is_writable(self, name: str) -> bool:
        """A rename would replace a read-only file too, which is not what its mode asks for."""
        return os.access(name, os.W_OK, dir_fd=self._folder, effective_ids=_EFFECTIVE)

    def _refuse_foreign(self, name: str) -> None:
        """To undo must not destroy what someone else has put there since."""
        if self._new is None or self._status(name).st_ino != self._new.st_ino:
            raise FileExistsError(errno.EEXIST, "someone else was here", name)

    def _write_back(self, name: str, before: Before) -> None:
        if before.data is None:
            raise OSError(errno.EFBIG, "too large to be kept", name)
        self._rename(safe_open.make_temporary(self._folder, before.data, before.mode), name)

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _status(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._folder, follow_symlinks=False)
