"""Reads patches written in sections: `*** Update File:`, `*** Add File:`, `*** Delete File:`."""

from __future__ import annotations

import re
from typing import Final

from keryx.tools.files.patch.sections import Action, Body, Hunk, PatchError, Section

_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_END_OF_FILE: Final = "*** End of File"
_MOVE: Final = "*** Move to: "
# Texts: compiled when the first patch comes.
_HEADER: Final = r"\*\*\* (Update|Add|Delete) File: (.+)"
_ACTIONS: Final[dict[str, Action]] = {"Update": "update", "Add": "add", "Delete": "delete"}
_COUNTED: Final = r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@"


def is_marked(text: str) -> bool:
    """Whether it is written this way."""
    return (
        re.search(r"^\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File: )", text, re.MULTILINE)
        is not None
    )


def read_marked(text: str) -> list[Section]:
    """Take it apart; raises `PatchError`."""
    reader = _Reader()
    for at, line in enumerate(text.split("\n"), 1):
        if reader.ended:
            break
        reader.take(at, line)
    return reader.finish()


class _Reader:
    def __init__(self) -> None:
        self.ended = False
        self._sections: list[Section] = []
        self._action: Action | None = None
        self._path = ""
        self._move_to: str | None = None
        self._hunks: list[Hunk] = []
        self._body: Body | None = None

    def take(self, at: int, line: str) -> None:
        plain = line.rstrip()
        header = re.fullmatch(_HEADER, plain)
        if header is not None:
            self._close()
            self._action, self._path = _ACTIONS[header[1]], header[2].strip()
        elif plain == _END:
            self.ended = True
        elif plain == _BEGIN or self._action is None:
            return  # what comes before the first section is talk
        elif plain.startswith(_MOVE):
            self._move_to = plain.removeprefix(_MOVE).strip()
        elif plain == _END_OF_FILE:
            if self._body is not None:
                self._body.at_end = True
        elif line.startswith("@@"):
            self._begin_hunk(at, plain)
        else:
            self._add(at, line)

    def finish(self) -> list[Section]:
        self._close()
        if not self._sections:
            raise PatchError(1, "there is no `*** Update File: path` in it")
        return self._sections

    def _begin_hunk(self, at: int, line: str) -> None:
        if self._body is None or not self._body.empty:
            self._end_hunk()
            counted = re.match(_COUNTED, line)
            self._body = Body(at, _expected(counted))
            if counted is not None:
                return
        anchor = line.removeprefix("@@").removesuffix("@@").strip()
        if anchor:
            self._body.anchors.append(anchor)

    def _add(self, at: int, line: str) -> None:
        if self._action == "delete":
            if line.strip():
                raise PatchError(at, f"nothing follows `*** Delete File: {self._path}`")
            return
        if self._body is None:
            self._body = Body(at)
        if self._action == "add" and line.strip() and not line.startswith(("+", "\\")):
            raise PatchError(at, "every line of an added file begins with +")
        if not self._body.add(line):
            raise PatchError(
                at, f"a line begins with a blank, - or +, or with @@ or ***; not so {line[:80]!r}"
            )

    def _end_hunk(self) -> None:
        if self._body is not None and not self._body.empty:
            self._hunks.append(self._body.hunk())
        self._body = None

    def _close(self) -> None:
        self._end_hunk()
        if self._action is not None:
            self._sections.append(
                Section(self._action, self._path, tuple(self._hunks), self._move_to)
            )
        self._action, self._move_to, self._hunks = None, None, []


def _expected(counted: re.Match[str] | None) -> int | None:
    if counted is None:
        return None
    return int(counted[1]) - (counted[2] != "0")
