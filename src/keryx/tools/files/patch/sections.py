"""The sections of a patch: for each file, what to change and where.

Two formats are parsed into the same structs: sections that begin with `*** Update File:`, and
unified diffs of `diff -u` and git. It refuses to know whether a patch matches any file.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

Action = Literal["add", "update", "delete"]
Sign = Literal[" ", "-", "+"]


class Hunk(msgspec.Struct, frozen=True):
    """One place to change: its context lines, removed lines and added lines."""

    lines: tuple[tuple[Sign, str], ...]
    at: int
    """Its line in the patch, for reports."""
    anchors: tuple[str, ...] = ()
    """Lines that are somewhere above it in the file."""
    expected: int | None = None
    """The line of the file where it should be, counted from 0."""
    at_end: bool = False
    old_lacks_newline: bool = False
    new_lacks_newline: bool = False

    @property
    def old(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        return [text for sign, text in self.lines if sign != "-"]


class Section(msgspec.Struct, frozen=True):
    """The changes of one file."""

    action: Action
    path: str
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None


class PatchError(Exception):
    """The text is not a valid patch; the message says where and why."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(f"line {at} of the patch: {reason}")


NO_NEWLINE: Final = "\\"
"""The beginning of the line that says that the line above has no newline."""

# A plain text: it is compiled with the first patch.
_PATHS: Final = (
    r"^(?:\*\*\* (?:Update|Add|Delete) File: |\*\*\* Move to: |(?:---|\+\+\+) (?:[ab]/)?"
    r"|rename (?:from|to) |diff --git a/.* b/)([^\t\r\n]+)"
)


def paths_named(text: str) -> list[str]:
    """Return all paths that the patch may change, and perhaps more: it is not parsed for this."""
    paths = {match.strip() for match in re.findall(_PATHS, text, re.MULTILINE)}
    return sorted(path for path in paths if path and path != "/dev/null" and "\0" not in path)


class HunkBuilder:
    """Collects the lines of a hunk one by one."""

    def __init__(self, at: int, expected: int | None = None) -> None:
        self.at = at
        self.anchors: list[str] = []
        self.at_end = False
        self._expected = expected
        self._lines: list[tuple[Sign, str]] = []
        self._blank_count = 0
        self._without_newline: set[Sign] = set()

    @property
    def empty(self) -> bool:
        return not self._lines

    def add(self, line: str) -> bool:
        """Add a line with its sign; return False if it has none."""
        if line in ("", "\r"):
            # Editors and models remove the blank of an empty line. At the end of a hunk an empty
            # line means nothing, so it counts only if another line follows.
            self._blank_count += 1
            return True
        match line[0]:
            case " " | "-" | "+" as sign:
                for _ in range(self._blank_count):
                    self.add_blank()
                self._blank_count = 0
                self._lines.append((sign, line[1:]))
            case "\\":
                self._mark_no_newline()
            case _:
                return False
        return True

    def add_blank(self) -> None:
        """Add an empty line that belongs to the hunk for certain."""
        self._lines.append((" ", ""))

    def hunk(self) -> Hunk:
        return Hunk(
            tuple(self._lines),
            self.at,
            anchors=tuple(self.anchors),
            expected=self._expected,
            at_end=self.at_end,
            old_lacks_newline=bool(self._without_newline & {" ", "-"}),
            new_lacks_newline=bool(self._without_newline & {" ", "+"}),
        )

    def _mark_no_newline(self) -> None:
        if self._lines:
            self._without_newline.add(self._lines[-1][0])
