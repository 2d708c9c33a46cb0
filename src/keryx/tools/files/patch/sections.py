"""What a patch says: for each file, what is to happen to it and where.

Two ways of writing are read into the same words: sections that begin with `*** Update File:`, and
unified diffs as `diff -u` and git make them. Whether it fits any file is not known here.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

Action = Literal["add", "update", "delete"]
Sign = Literal[" ", "-", "+"]


class Hunk(msgspec.Struct, frozen=True):
    """One place to change: the lines that are there, those that go and those that come."""

    lines: tuple[tuple[Sign, str], ...]
    at: int
    """Its line in the patch, for reports."""
    anchors: tuple[str, ...] = ()
    """Lines that stand somewhere above it."""
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
    """What is to happen to one file."""

    action: Action
    path: str
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None


class PatchError(Exception):
    """The text is not a patch; says where and why."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(f"line {at} of the patch: {why}")


NO_NEWLINE: Final = "\\"
"""How the line begins that says: the one above has no newline."""

# A text: compiled when the first patch comes.
_NAMED: Final = (
    r"^(?:\*\*\* (?:Update|Add|Delete) File: |\*\*\* Move to: |(?:---|\+\+\+) (?:[ab]/)?"
    r"|rename (?:from|to) |diff --git a/.* b/)([^\t\r\n]+)"
)


def paths_named(text: str) -> list[str]:
    """All paths that the patch may touch, and perhaps more: a look, not a reading."""
    found = {match.strip() for match in re.findall(_NAMED, text, re.MULTILINE)}
    return sorted(path for path in found if path and path != "/dev/null" and "\0" not in path)


class Body:
    """The lines of a hunk, gathered one by one."""

    def __init__(self, at: int, expected: int | None = None) -> None:
        self.at = at
        self.anchors: list[str] = []
        self.at_end = False
        self._expected = expected
        self._lines: list[tuple[Sign, str]] = []
        self._blank = 0
        self._lacking: set[Sign] = set()

    @property
    def empty(self) -> bool:
        return not self._lines

    def add(self, line: str) -> bool:
        """Take a line with its sign; False if it has none."""
        if line in ("", "\r"):
            # Editors and models cut the blank off an empty line. At the end of a hunk it means
            # nothing, so it counts only if another line follows.
            self._blank += 1
            return True
        match line[0]:
            case " " | "-" | "+" as sign:
                for _ in range(self._blank):
                    self.take_blank()
                self._blank = 0
                self._lines.append((sign, line[1:]))
            case "\\":
                self._lack()
            case _:
                return False
        return True

    def take_blank(self) -> None:
        """An empty line that is known to belong to the hunk."""
        self._lines.append((" ", ""))

    def hunk(self) -> Hunk:
        return Hunk(
            tuple(self._lines),
            self.at,
            anchors=tuple(self.anchors),
            expected=self._expected,
            at_end=self.at_end,
            old_lacks_newline=bool(self._lacking & {" ", "-"}),
            new_lacks_newline=bool(self._lacking & {" ", "+"}),
        )

    def _lack(self) -> None:
        if self._lines:
            self._lacking.add(self._lines[-1][0])
