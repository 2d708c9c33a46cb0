"""Replaces, creates or deletes several files: all of them, or none.

New content is first written to temporary files in the same folders, then the change is recorded,
then each temporary file is exchanged with the old file. The old file is checked at that moment:
if it is not the one that the edit was made for, all files are restored. The tools know why they
edit, and what they tell the model.
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

from keryx.aio.renames import exchange, rename_to_free
from keryx.errors import ToolFailedError
from keryx.ports.files import FileChange, Files, Stamp
from keryx.ports.store import blob_hash
from keryx.ports.tool_context import ToolContext
from keryx.tools.files import safe_open

MAX_LOGGED: Final = 8 * 1024 * 1024
"""Content up to this size is stored in the log, to be shown and restored."""

_USE_EFFECTIVE_IDS: Final = os.access in os.supports_effective_ids

Record = Callable[[Sequence[FileChange]], None]
"""A function that makes the changes durable, and blocks until they are."""


class FileBefore(msgspec.Struct, frozen=True):
    """A file before an edit; without its data if that is too large."""

    stamp: Stamp
    hash: str
    mode: int
    data: bytes | None

    @property
    def size(self) -> int:
        return self.stamp.size


class Edit(msgspec.Struct, frozen=True):
    """The new content of one file; `after` is None if the file is to be deleted."""

    path: Path
    name: str
    before: FileBefore | None
    after: bytes | None
    mode: int | None = None
    """For a new file; None leaves it to the umask."""
    after_hash: str | None = None
    """The hash of `after`, if the caller has it; for a large file it takes some milliseconds."""

    def change(self) -> FileChange:
        before = self.before
        data = None if before is None else before.data
        after_hash = None if self.after is None else self.after_hash or blob_hash(self.after)
        return FileChange(
            path=self.path,
            before_hash=None if before is None else before.hash,
            after_hash=after_hash,
            before=None if data is None or len(data) > MAX_LOGGED else data,
        )


def read_before(path: Path, name: str, last_stamp: Stamp | None = None) -> FileBefore | None:
    """Return the file as it is now, None if there is none.

    With `last_stamp` a large file that has not changed is not read again.
    """
    with safe_open.readable_errors(name):
        try:
            with safe_open.open_file(path, name) as file:
                data, hash_ = _content_and_hash(file, last_stamp)
                mode = stat.S_IMODE(file.status.st_mode) & 0o777
                return FileBefore(file.stamped(hash_), hash_, mode, data)
        except FileNotFoundError:
            return None


def _content_and_hash(
    file: safe_open.OpenFile, last_stamp: Stamp | None
) -> tuple[bytes | None, str]:
    if last_stamp is not None and last_stamp.hash is not None and file.size > MAX_LOGGED:
        is_same = last_stamp.identity == file.stamped(None).identity
        if is_same and not file.changed_just_now:
            return None, last_stamp.hash
    data = file.read_whole()
    if len(data) > safe_open.MAX_WHOLE:
        return None, file.hash()
    return data, blob_hash(data)


def refuse_stale(files: Files, path: Path, name: str, before: FileBefore) -> None:
    """Raise `ToolFailedError` if the file changed since the session last read it."""
    last_stamp = files.last_seen(path)
    if last_stamp is not None and not last_stamp.matches(before.stamp):
        raise ToolFailedError(f"{name} changed since you read it; read it again. Nothing was done.")


def recorder(context: ToolContext) -> Record:
    """Return a function that records the changes of a call, from the call's thread."""

    def record(changes: Sequence[FileChange]) -> None:
        context.from_thread(context.files.changing, changes, context.call_id)

    return record


def replace_all(files: Files, edits: Sequence[Edit], record: Record) -> None:
    """Make all edits, or raise with every file as it was."""
    changes = [edit.change() for edit in edits]
    new_folders: list[Path] = []
    steps: list[_Step] = []
    with ExitStack() as stack:
        try:
            for edit in edits:
                with safe_open.readable_errors(edit.name):
                    if edit.after is not None:
                        new_folders += safe_open.create_folders(edit.path.parent)
                    folder = stack.enter_context(safe_open.open_folder(edit.path.parent))
                    steps.append(_Step(edit, folder))
                    steps[-1].prepare()
            record(changes)
            for step in steps:
                with safe_open.readable_errors(step.edit.name):
                    step.perform()
        except BaseException as error:
            _undo_all(steps, new_folders, error)
            raise
        for step, change in zip(steps, changes, strict=True):
            step.clean_up()
            files.seen(step.edit.path, step.stamp(change.after_hash))


def _undo_all(steps: Sequence[_Step], new_folders: list[Path], error: BaseException) -> None:
    not_undone: list[str] = []
    for step in reversed(steps):
        try:
            step.undo()
        except OSError:
            not_undone.append(step.edit.name)
    safe_open.remove_folders(new_folders)
    if not_undone:
        raise ToolFailedError(
            f"{error} The changes of {', '.join(not_undone)} could not be undone; "
            "check these files."
        ) from error


class _Step:
    """One edit: the temporary file has the new content, and after the exchange the old content."""

    def __init__(self, edit: Edit, folder: int) -> None:
        self.edit = edit
        self._folder = folder
        self._temporary: str | None = None
        self._new_status: os.stat_result | None = None
        self._is_done = False

    def prepare(self) -> None:
        edit, before = self.edit, self.edit.before
        if before is not None and not self._is_writable(edit.path.name):
            raise ToolFailedError(f"{edit.name} is read-only; change its mode first")
        if edit.after is not None:
            mode = edit.mode if before is None else before.mode
            self._temporary = safe_open.write_temporary(self._folder, edit.after, mode)
            self._new_status = self._status(self._temporary)

    def perform(self) -> None:
        name, before = self.edit.path.name, self.edit.before
        if before is None:
            self._create(name)
        elif self._temporary is None:
            # Moved aside only: it is deleted at the end.
            self._temporary = safe_open.temporary_name()
            rename_to_free(self._folder, name, self._temporary)
            self._is_done = True
            self._check(self._temporary, before)
        elif exchange(self._folder, self._temporary, name):
            self._is_done = True
            self._check(self._temporary, before)
        else:
            self._check(name, before)
            self._rename(self._temporary, name)
            self._temporary = None
            self._is_done = True

    def undo(self) -> None:
        name, before = self.edit.path.name, self.edit.before
        if not self._is_done:
            self.clean_up()
        elif before is None:
            self._refuse_foreign(name)
            os.unlink(name, dir_fd=self._folder)
        elif self._temporary is None:
            self._refuse_foreign(name)
            self._write_back(name, before)
        elif self.edit.after is None:
            rename_to_free(self._folder, self._temporary, name)
        else:
            exchange(self._folder, self._temporary, name)
            self._refuse_foreign(self._temporary)
            self.clean_up()

    def clean_up(self) -> None:
        """Delete the temporary file."""
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)
            self._temporary = None

    def stamp(self, hash_: str | None) -> Stamp | None:
        status = self._new_status
        return (
            None
            if status is None
            else Stamp(status.st_ino, status.st_size, status.st_mtime_ns, hash_)
        )

    def _create(self, name: str) -> None:
        assert self._temporary is not None
        try:
            rename_to_free(self._folder, self._temporary, name)
        except FileExistsError:
            raise ToolFailedError(
                f"{self.edit.name} was made by someone else just now; read it first. "
                "Nothing was done."
            ) from None
        self._temporary = None
        self._is_done = True

    def _check(self, name: str, before: FileBefore) -> None:
        status = self._status(name)
        if (status.st_ino, status.st_size, status.st_mtime_ns) != before.stamp.identity:
            raise ToolFailedError(
                f"{self.edit.name} was changed by someone else just now; read it again. "
                "Nothing was done."
            )

    def _is_writable(self, name: str) -> bool:
        """Return whether the file may be written: a rename would replace a read-only file too."""
        return os.access(name, os.W_OK, dir_fd=self._folder, effective_ids=_USE_EFFECTIVE_IDS)

    def _refuse_foreign(self, name: str) -> None:
        """Raise `FileExistsError` if someone else has replaced the file since."""
        if self._new_status is None or self._status(name).st_ino != self._new_status.st_ino:
            raise FileExistsError(errno.EEXIST, "someone else was here", name)

    def _write_back(self, name: str, before: FileBefore) -> None:
        if before.data is None:
            raise OSError(errno.EFBIG, "too large to be kept", name)
        self._rename(safe_open.write_temporary(self._folder, before.data, before.mode), name)

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _status(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._folder, follow_symlinks=False)
