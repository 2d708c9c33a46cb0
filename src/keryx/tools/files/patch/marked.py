"""Reads patches with marked sections: `*** Update File:`, `*** Add File:`, `*** Delete File:`."""

from __future__ import annotations

import re
from typing import Final

from keryx.tools.files.patch.sections import Action, Hunk, HunkBuilder, PatchError, Section

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_END_OF_FILE: Final = "*** End of File"
_MOVE: Final = "*** Move to: "
# Plain texts: they are compiled with the first patch.
_HEADER: Final = r"\*\*\* (Update|Add|Delete) File: (.+)"
_ACTIONS: Final[dict[str, Action]] = {"Update": "update", "Add": "add", "Delete": "delete"}
_RANGE: Final = r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@"


def is_marked(text: str) -> bool:
    """Return whether the patch has marked sections."""
    return (
        re.search(r"^\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File: )", text, re.MULTILINE)
        is not None
    )


def read_marked(text: str) -> list[Section]:
    """Parse the patch. Raise `PatchError` if it is not valid."""
    reader = _MarkedReader()
    for line_number, line in enumerate(text.split("\n"), 1):
        if reader.is_ended:
            break
        reader.read_line(line_number, line)
    return reader.finish()


class _MarkedReader:
    def __init__(self) -> None:
        self.is_ended = False
        self._sections: list[Section] = []
        self._action: Action | None = None
        self._path = ""
        self._move_to: str | None = None
        self._hunks: list[Hunk] = []
        self._builder: HunkBuilder | None = None

    def read_line(self, line_number: int, line: str) -> None:
        plain = line.rstrip()
        header = re.fullmatch(_HEADER, plain)
        if header is not None:
            self._close()
            self._action, self._path = _ACTIONS[header[1]], header[2].strip()
        elif plain == _END:
            self.is_ended = True
        elif plain == _BEGIN or self._action is None:
            return  # text before the first section is ignored
        elif plain.startswith(_MOVE):
            self._move_to = plain.removeprefix(_MOVE).strip()
        elif plain == _END_OF_FILE:
            if self._builder is not None:
                self._builder.at_end = True
        elif line.startswith("@@"):
            self._begin_hunk(line_number, plain)
        else:
            self._add_line(line_number, line)

    def finish(self) -> list[Section]:
        self._close()
        if not self._sections:
            raise PatchError(1, "there is no `*** Update File: path` in it")
        return self._sections

    def _begin_hunk(self, line_number: int, line: str) -> None:
        if self._builder is None or not self._builder.empty:
            self._end_hunk()
            range_match = re.match(_RANGE, line)
            self._builder = HunkBuilder(line_number, _expected(range_match))
            if range_match is not None:
                return
        anchor = line.removeprefix("@@").removesuffix("@@").strip()
        if anchor:
            self._builder.anchors.append(anchor)

    def _add_line(self, line_number: int, line: str) -> None:
        if self._action == "delete":
            if line.strip():
                raise PatchError(line_number, f"nothing follows `*** Delete File: {self._path}`")
            return
        if self._builder is None:
            self._builder = HunkBuilder(line_number)
        if self._action == "add" and line.strip() and not line.startswith(("+", "\\")):
            raise PatchError(line_number, "every line of an added file begins with +")
        if not self._builder.add(line):
            raise PatchError(
                line_number,
                f"a line must begin with a blank, -, +, @@ or ***; this does not: {line[:80]!r}",
            )

    def _end_hunk(self) -> None:
        if self._builder is not None and not self._builder.empty:
            self._hunks.append(self._builder.hunk())
        self._builder = None

    def _close(self) -> None:
        self._end_hunk()
        if self._action is not None:
            self._sections.append(
                Section(self._action, self._path, tuple(self._hunks), self._move_to)
            )
        self._action, self._move_to, self._hunks = None, None, []


def _expected(range_match: re.Match[str] | None) -> int | None:
    if range_match is None:
        return None
    return int(range_match[1]) - (range_match[2] != "0")
