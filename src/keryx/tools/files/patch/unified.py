"""Reads unified diffs as `diff -u` and git write them, and as models imitate them.

The counts in a hunk's header say where it ends; models often write wrong counts, then the lines
themselves decide.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from keryx.tools.files.patch.sections import (
    NO_NEWLINE,
    Action,
    Hunk,
    HunkBuilder,
    PatchError,
    Section,
)

# Plain texts: they are compiled with the first patch.
_RANGE: Final = r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@"
_GIT: Final = r"diff --git a/(.*) b/(.*)"
_NO_FILE: Final = "/dev/null"


def is_unified(text: str) -> bool:
    """Return whether the patch is a unified diff."""
    return re.search(r"^(?:--- .*\r?\n\+\+\+ |diff --git )", text, re.MULTILINE) is not None


def read_unified(text: str) -> list[Section]:
    """Parse the patch. Raise `PatchError` if it is not valid."""
    reader = _UnifiedReader(text.split("\n"))
    while reader.at < len(reader.lines):
        reader.read_next()
    reader.close()
    return reader.sections


class _FileHeader(msgspec.Struct):
    """The header of one file, as far as it was read."""

    old: str = ""
    new: str = ""
    is_new: bool = False
    is_deleted: bool = False
    is_renamed: bool = False

    @property
    def action(self) -> Action:
        if self.is_new or self.old == _NO_FILE:
            return "add"
        return "delete" if self.is_deleted or self.new == _NO_FILE else "update"


class _UnifiedReader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.sections: list[Section] = []
        self._file: _FileHeader | None = None
        self._hunks: list[Hunk] = []

    def read_next(self) -> None:
        """Read the next line or hunk; ignore text that is neither a header nor a hunk."""
        line = self.lines[self.at].rstrip("\r")
        git = re.fullmatch(_GIT, line)
        if git is not None:
            self.close()
            self._file = _FileHeader(git[1], git[2])
        elif self._is_header(self.at):
            self._read_names(line)
        elif line.startswith("@@"):
            self._read_hunk(line)
            return
        elif self._file is not None and not self._hunks:
            self._read_git_header(line)
        self.at += 1

    def close(self) -> None:
        """Add the section of the current file."""
        file = self._file
        if file is not None:
            action = file.action
            path = file.old if action == "delete" or file.is_renamed else file.new
            move_to = file.new if file.is_renamed else None
            self.sections.append(Section(action, path, tuple(self._hunks), move_to))
        self._file, self._hunks = None, []

    def _is_header(self, at: int) -> bool:
        return self.lines[at].startswith("--- ") and self._begins(at + 1, "+++ ")

    def _begins(self, at: int, start: str) -> bool:
        return at < len(self.lines) and self.lines[at].startswith(start)

    def _read_names(self, line: str) -> None:
        old, new = _name(line[4:]), _name(self.lines[self.at + 1][4:].rstrip("\r"))
        if _has_prefix(old, "a/") and _has_prefix(new, "b/"):
            old, new = _without_prefix(old, "a/"), _without_prefix(new, "b/")
        file = self._file
        if file is None or self._hunks:
            self.close()
            file = self._file = _FileHeader()
        file.old, file.new = old, new
        self.at += 1

    def _read_git_header(self, line: str) -> None:
        file = self._file
        assert file is not None
        if line.startswith("new file mode"):
            file.is_new = True
        elif line.startswith("deleted file mode"):
            file.is_deleted = True
        elif line.startswith("rename from "):
            file.is_renamed, file.old = True, _name(line.removeprefix("rename from "))
        elif line.startswith("rename to "):
            file.is_renamed, file.new = True, _name(line.removeprefix("rename to "))
        elif line.startswith(("GIT binary patch", "Binary files ")):
            raise PatchError(self.at + 1, "a binary file cannot be patched")

    def _read_hunk(self, line: str) -> None:
        if self._file is None:
            raise PatchError(self.at + 1, "no `--- path` and `+++ path` before this hunk")
        range_match = re.match(_RANGE, line)
        old_left = new_left = 0
        expected = None
        if range_match is not None:
            old_left, new_left = (
                1 if count is None else int(count) for count in range_match.group(2, 4)
            )
            expected = int(range_match[1]) - (old_left > 0)
        builder = HunkBuilder(self.at + 1, expected)
        self.at += 1
        while self.at < len(self.lines) and not self._is_hunk_end(old_left <= 0 and new_left <= 0):
            line = self.lines[self.at]
            if line in ("", "\r") and old_left > 0 and new_left > 0:
                builder.add_blank()
            elif not builder.add(line):
                break
            old_left -= line[:1] in ("-", " ", "", "\r")
            new_left -= line[:1] in ("+", " ", "", "\r")
            self.at += 1
        if not builder.empty:
            self._hunks.append(builder.hunk())

    def _is_hunk_end(self, counts_met: bool) -> bool:  # noqa: FBT001 (one value, named at its only call)
        """Return whether the hunk ends before this line."""
        line = self.lines[self.at]
        if line.startswith(NO_NEWLINE):
            return False
        if self._is_header(self.at) and (counts_met or self._begins(self.at + 2, "@@")):
            return True
        return line.startswith(("@@", "diff --git "))


def _has_prefix(name: str, prefix: str) -> bool:
    return name == _NO_FILE or name.startswith(prefix)


def _without_prefix(name: str, prefix: str) -> str:
    return name if name == _NO_FILE else name.removeprefix(prefix)


def _name(text: str) -> str:
    name = text.split("\t", maxsplit=1)[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        # git writes unusual bytes as octal numbers.
        quoted = name[1:-1].encode().decode("unicode_escape", errors="replace")
        return quoted.encode("latin-1", errors="replace").decode(errors="replace")
    return name
