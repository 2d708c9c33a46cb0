"""Reads unified diffs, as `diff -u` and git write them and as models remember them.

The counts in a hunk's header say where it ends; if they are wrong, as a model's often are, the
lines themselves do.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from keryx.tools.files.patch.sections import NO_NEWLINE, Action, Body, Hunk, PatchError, Section

# Texts: compiled when the first patch comes.
_RANGE: Final = r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@"
_GIT: Final = r"diff --git a/(.*) b/(.*)"
_NOWHERE: Final = "/dev/null"


def is_unified(text: str) -> bool:
    """Whether it is written this way."""
    return re.search(r"^(?:--- .*\r?\n\+\+\+ |diff --git )", text, re.MULTILINE) is not None


def read_unified(text: str) -> list[Section]:
    """Take it apart; raises `PatchError`."""
    reader = _Reader(text.split("\n"))
    while reader.at < len(reader.lines):
        reader.take()
    reader.close()
    return reader.sections


class _File(msgspec.Struct):
    """What is known of a file so far."""

    old: str = ""
    new: str = ""
    made: bool = False
    deleted: bool = False
    renamed: bool = False

    @property
    def action(self) -> Action:
        if self.made or self.old == _NOWHERE:
            return "add"
        return "delete" if self.deleted or self.new == _NOWHERE else "update"


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.sections: list[Section] = []
        self._file: _File | None = None
        self._hunks: list[Hunk] = []

    def take(self) -> None:
        """Read what stands here: a header, a hunk, or talk."""
        line = self.lines[self.at].rstrip("\r")
        git = re.fullmatch(_GIT, line)
        if git is not None:
            self.close()
            self._file = _File(git[1], git[2])
        elif self._is_header(self.at):
            self._take_names(line)
        elif line.startswith("@@"):
            self._take_hunk(line)
            return
        elif self._file is not None and not self._hunks:
            self._take_extended(line)
        self.at += 1

    def close(self) -> None:
        """The file is complete."""
        file = self._file
        if file is not None:
            action = file.action
            path = file.old if action == "delete" or file.renamed else file.new
            move_to = file.new if file.renamed else None
            self.sections.append(Section(action, path, tuple(self._hunks), move_to))
        self._file, self._hunks = None, []

    def _is_header(self, at: int) -> bool:
        return self.lines[at].startswith("--- ") and self._begins(at + 1, "+++ ")

    def _begins(self, at: int, start: str) -> bool:
        return at < len(self.lines) and self.lines[at].startswith(start)

    def _take_names(self, line: str) -> None:
        old, new = _name(line[4:]), _name(self.lines[self.at + 1][4:].rstrip("\r"))
        if _has_side(old, "a/") and _has_side(new, "b/"):
            old, new = _without_side(old, "a/"), _without_side(new, "b/")
        file = self._file
        if file is None or self._hunks:
            self.close()
            file = self._file = _File()
        file.old, file.new = old, new
        self.at += 1

    def _take_extended(self, line: str) -> None:
        file = self._file
        assert file is not None
        if line.startswith("new file mode"):
            file.made = True
        elif line.startswith("deleted file mode"):
            file.deleted = True
        elif line.startswith("rename from "):
            file.renamed, file.old = True, _name(line.removeprefix("rename from "))
        elif line.startswith("rename to "):
            file.renamed, file.new = True, _name(line.removeprefix("rename to "))
        elif line.startswith(("GIT binary patch", "Binary files ")):
            raise PatchError(self.at + 1, "a binary file cannot be patched")

    def _take_hunk(self, line: str) -> None:
        if self._file is None:
            raise PatchError(self.at + 1, "no `--- path` and `+++ path` before this hunk")
        counted = re.match(_RANGE, line)
        old_left = new_left = 0
        expected = None
        if counted is not None:
            old_left, new_left = (
                1 if count is None else int(count) for count in counted.group(2, 4)
            )
            expected = int(counted[1]) - (old_left > 0)
        body = Body(self.at + 1, expected)
        self.at += 1
        while self.at < len(self.lines) and not self._is_over(old_left <= 0 and new_left <= 0):
            line = self.lines[self.at]
            if line in ("", "\r") and old_left > 0 and new_left > 0:
                body.take_blank()
            elif not body.add(line):
                break
            old_left -= line[:1] in ("-", " ", "", "\r")
            new_left -= line[:1] in ("+", " ", "", "\r")
            self.at += 1
        if not body.empty:
            self._hunks.append(body.hunk())

    def _is_over(self, counts_met: bool) -> bool:  # noqa: FBT001 (one fact, named at its only call)
        """Whether the hunk ends before this line."""
        line = self.lines[self.at]
        if line.startswith(NO_NEWLINE):
            return False
        if self._is_header(self.at) and (counts_met or self._begins(self.at + 2, "@@")):
            return True
        return line.startswith(("@@", "diff --git "))


def _has_side(name: str, side: str) -> bool:
    return name == _NOWHERE or name.startswith(side)


def _without_side(name: str, side: str) -> str:
    return name if name == _NOWHERE else name.removeprefix(side)


def _name(text: str) -> str:
    name = text.split("\t", maxsplit=1)[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        # git writes unusual bytes as octal numbers.
        quoted = name[1:-1].encode().decode("unicode_escape", errors="replace")
        return quoted.encode("latin-1", errors="replace").decode(errors="replace")
    return name
