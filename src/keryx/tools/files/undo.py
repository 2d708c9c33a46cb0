"""What a session changed, as a diff, and its way back.

Works on changes as they were logged and on the files as they are now. Which changes are meant (a
turn's, a call's, all) is the caller's affair; a revert is recorded like any other change.
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
from keryx.tools.files.edits import Before, Edit, Record, look, replace_all

COMPARED: Final = 20_000
"""Lines of a file that are compared; the time grows with their square."""


@dataclass(slots=True)
class _Course:
    """All that was done to one file, in order."""

    path: Path
    first: FileChange
    left: set[str | None] = field(default_factory=set[str | None])
    """What the session had there at some time. A change that a crash came before counts for none:
    the one before it is what is there."""
    interrupted: bool = False
    """Someone else's edit lies between two of the session's own."""


def _courses(changes: Iterable[FileChange]) -> list[_Course]:
    found: dict[Path, _Course] = {}
    for change in changes:
        course = found.get(change.path)
        if course is None:
            course = found[change.path] = _Course(change.path, change)
        elif change.before_hash not in {*course.left, course.first.before_hash}:
            course.interrupted = True
        course.left.add(change.after_hash)
    return list(found.values())


def diff(files: Files, changes: Iterable[FileChange]) -> str:
    """The files before the first of these changes against what they are now."""
    return "".join(text for course in _courses(changes) for text in _compared(files, course))


class Revert:
    """Makes files what they were before the first of these changes."""

    def __init__(self, files: Files, changes: Iterable[FileChange]) -> None:
        """Asks the disk what stands there now; nothing is changed yet."""
        self.files = files
        self._edits: list[Edit] = []
        self.obstacles: list[str] = []
        """Why it cannot be done: files that someone edited since."""
        for course in _courses(changes):
            self._add(course)

    def perform(self, record: Record) -> list[str]:
        """All of them, or none; returns their names."""
        if self._edits:
            replace_all(self.files, self._edits, record)
        return [edit.name for edit in self._edits]

    def _add(self, course: _Course) -> None:
        name = self.files.name(course.path)
        now = _now(self.files, course.path)
        current = None if now is None else now.hash
        if current == course.first.before_hash:
            return
        if current not in course.left:
            self.obstacles.append(f"{name}: someone edited it since")
        elif course.interrupted:
            why = "someone edited it in between, and that would be lost too"
            self.obstacles.append(f"{name}: {why}")
        elif not course.first.can_be_undone:
            self.obstacles.append(f"{name}: what it held before was too large to be kept")
        else:
            self._edits.append(Edit(course.path, name, now, course.first.before))


def check_all(reverts: Iterable[Revert]) -> None:
    """`ToolFailedError` names what stands in the way of any of them."""
    obstacles = [obstacle for revert in reverts for obstacle in revert.obstacles]
    if obstacles:
        raise ToolFailedError("nothing was reverted. " + "; ".join(obstacles))


def revert(files: Files, changes: Iterable[FileChange], record: Record) -> list[str]:
    """Make the files what they were before the first of these changes; returns their names.

    All of them, or none: `ToolFailedError` names those that someone edited since.
    """
    whole = Revert(files, changes)
    check_all([whole])
    return whole.perform(record)


def _now(files: Files, path: Path) -> Before | None:
    if files.resolve(str(path), write=True) != path:
        raise ToolFailedError(
            f"nothing was reverted. {files.name(path)}: a symbolic link leads elsewhere now"
        )
    return look(path, files.name(path))


def _compared(files: Files, course: _Course) -> Iterator[str]:
    name = files.name(course.path)
    try:
        now = look(files.resolve(str(course.path), write=False), name)
    except ToolFailedError as error:
        yield f"# {error}\n"  # something else was put in its place
        return
    current = None if now is None else now.hash
    if current == course.first.before_hash:
        return
    if current not in course.left:
        yield f"# {name}: someone edited it since\n"
    if not course.first.can_be_undone or (now is not None and now.data is None):
        yield f"# {name}: too large to be compared\n"
        return
    old, new = _text(course.first.before), _text(None if now is None else now.data)
    if old is None or new is None:
        size = "deleted" if now is None else f"now {sized(now.size)}"
        yield f"# {name}: binary file, {size}\n"
    elif max(len(old.lines), len(new.lines)) > COMPARED:
        yield f"# {name}: {len(old.lines)} lines before, {len(new.lines)} now\n"
    else:
        there = "/dev/null" if course.first.before_hash is None else f"a/{name}"
        here = "/dev/null" if now is None else f"b/{name}"
        yield from _unified(old, new, there, here)


def _text(data: bytes | None) -> Content | None:
    return decode(data or b"")


def _unified(old: Content, new: Content, there: str, here: str) -> Iterator[str]:
    for line in difflib.unified_diff(_kept(old), _kept(new), there, here):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _kept(content: Content) -> Sequence[str]:
    lines = [f"{line}\n" for line in content.lines]
    if lines and not content.ends_with_newline:
        lines[-1] = lines[-1].removesuffix("\n")
    return lines
