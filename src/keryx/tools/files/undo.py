"""The diff of what a session changed, and the revert of it.

It works on the logged changes and on the files as they are now. The caller chooses the changes (of
a turn, of a call, or all); a revert is recorded like any other change.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from keryx.errors import ToolFailedError
from keryx.ports.files import FileChange, Files
from keryx.tools.files.content import Content, decode, sized
from keryx.tools.files.edits import Edit, FileBefore, Record, read_before, replace_all

MAX_COMPARED: Final = 20_000
"""The most lines of a file that are compared; the time grows with their square."""


@dataclass(slots=True)
class _FileHistory:
    """All changes of one file, in order."""

    path: Path
    first: FileChange
    session_hashes: set[str | None] = field(default_factory=set[str | None])
    """The hashes that the session gave the file. If a crash prevented the last change, the file
    still has an earlier one of them."""
    interrupted: bool = False
    """Someone else edited the file between two edits of the session."""


def _histories(changes: Iterable[FileChange]) -> list[_FileHistory]:
    histories: dict[Path, _FileHistory] = {}
    for change in changes:
        history = histories.get(change.path)
        if history is None:
            history = histories[change.path] = _FileHistory(change.path, change)
        elif change.before_hash not in {*history.session_hashes, history.first.before_hash}:
            history.interrupted = True
        history.session_hashes.add(change.after_hash)
    return list(histories.values())


def diff(files: Files, changes: Iterable[FileChange]) -> str:
    """Return the diff from the files before the first of these changes to the files now."""
    return "".join(text for history in _histories(changes) for text in _compared(files, history))


class Revert:
    """Restores files to what they were before the first of these changes."""

    def __init__(self, files: Files, changes: Iterable[FileChange]) -> None:
        """Read the files as they are now; nothing is changed yet."""
        self.files = files
        self._edits: list[Edit] = []
        self.obstacles: list[str] = []
        """The reasons against the revert: files that someone edited since."""
        for history in _histories(changes):
            self._add(history)

    def perform(self, record: Record) -> list[str]:
        """Restore all files, or none; return their names."""
        if self._edits:
            replace_all(self.files, self._edits, record)
        return [edit.name for edit in self._edits]

    def _add(self, history: _FileHistory) -> None:
        name = self.files.name(history.path)
        current = _current(self.files, history.path)
        current_hash = None if current is None else current.hash
        if current_hash == history.first.before_hash:
            return
        if current_hash not in history.session_hashes:
            self.obstacles.append(f"{name}: someone edited it since")
        elif history.interrupted:
            reason = "someone edited it in between, and that would be lost too"
            self.obstacles.append(f"{name}: {reason}")
        elif not history.first.can_be_undone:
            self.obstacles.append(f"{name}: what it held before was too large to be stored")
        else:
            self._edits.append(Edit(history.path, name, current, history.first.before))


def check_all(reverts: Iterable[Revert]) -> None:
    """Raise `ToolFailedError` with all obstacles, if there are any."""
    obstacles = [obstacle for revert in reverts for obstacle in revert.obstacles]
    if obstacles:
        raise ToolFailedError("nothing was reverted. " + "; ".join(obstacles))


def revert(files: Files, changes: Iterable[FileChange], record: Record) -> list[str]:
    """Restore the files to what they were before the first of these changes; return their names.

    All of them, or none: `ToolFailedError` names those that someone edited since.
    """
    planned = Revert(files, changes)
    check_all([planned])
    return planned.perform(record)


def _current(files: Files, path: Path) -> FileBefore | None:
    if files.resolve(str(path), write=True) != path:
        raise ToolFailedError(
            f"nothing was reverted. {files.name(path)}: a symbolic link leads elsewhere now"
        )
    return read_before(path, files.name(path))


def _compared(files: Files, history: _FileHistory) -> Iterator[str]:
    name = files.name(history.path)
    try:
        current = read_before(files.resolve(str(history.path), write=False), name)
    except ToolFailedError as error:
        yield f"# {error}\n"  # something else was put in its place
        return
    current_hash = None if current is None else current.hash
    if current_hash == history.first.before_hash:
        return
    if current_hash not in history.session_hashes:
        yield f"# {name}: someone edited it since\n"
    if not history.first.can_be_undone or (current is not None and current.data is None):
        yield f"# {name}: too large to be compared\n"
        return
    old, new = _text(history.first.before), _text(None if current is None else current.data)
    if old is None or new is None:
        size = "deleted" if current is None else f"now {sized(current.size)}"
        yield f"# {name}: binary file, {size}\n"
    elif max(len(old.lines), len(new.lines)) > MAX_COMPARED:
        yield f"# {name}: {len(old.lines)} lines before, {len(new.lines)} now\n"
    else:
        old_name = "/dev/null" if history.first.before_hash is None else f"a/{name}"
        new_name = "/dev/null" if current is None else f"b/{name}"
        yield from _unified(old, new, old_name, new_name)


def _text(data: bytes | None) -> Content | None:
    return decode(data or b"")


def _unified(old: Content, new: Content, old_name: str, new_name: str) -> Iterator[str]:
    for line in difflib.unified_diff(_diff_lines(old), _diff_lines(new), old_name, new_name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _diff_lines(content: Content) -> Sequence[str]:
    lines = [f"{line}\n" for line in content.lines]
    if lines and not content.ends_with_newline:
        lines[-1] = lines[-1].removesuffix("\n")
    return lines
