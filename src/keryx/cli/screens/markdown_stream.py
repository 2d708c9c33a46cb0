"""Divides Markdown that is still being streamed into finished blocks and an open tail.

A finished block is shown once and never changes. An open code fence is finished line by line, and
a list item by item, so that the open tail stays small.
"""

from __future__ import annotations

import re
from typing import Final

from keryx.cli.chatting.pieces import Piece

LONGEST_BLOCK: Final = 40
"""Lines of a table or a paragraph before its first part is shown as finished."""
_FENCE: Final = re.compile(r" {0,3}(?P<marks>`{3,}|~{3,})(?P<language>[^`]*)$")
_INNER_FENCE: Final = re.compile(r"\s+(`{3,}|~{3,})")
_ITEM: Final = re.compile(r" {0,3}([-*+]|\d{1,9}[.)])(\s+|$)")
NEXT_ITEM: Final = "item"
"""The detail of a piece that continues the list of the piece before it."""


class MarkdownStream:
    """Takes text as it comes; returns what is finished and keeps the rest."""

    def __init__(self) -> None:
        self._line = ""
        self._block: list[str] = []
        self._fence = ""
        self._language = ""
        self._in_inner_fence = False
        self._list_goes_on = False

    @property
    def tail(self) -> Piece | None:
        """The open block."""
        if self._fence:
            return Piece("code", self._line, self._language) if self._line else None
        text = "\n".join([*self._block, self._line])
        return Piece("reply", text, self._detail) if text.strip() else None

    @property
    def _detail(self) -> str:
        return NEXT_ITEM if self._list_goes_on and self._is_list() else ""

    def feed(self, text: str) -> list[Piece]:
        """Take more text, and return the pieces that it finishes."""
        *lines, self._line = (self._line + text).split("\n")
        pieces: list[Piece] = []
        for line in lines:
            self._take(line, pieces)
        return pieces

    def end(self) -> list[Piece]:
        """Return all that is left: the text has ended."""
        pieces: list[Piece] = []
        if self._line:
            self._take(self._line, pieces)
        self._finish(pieces)
        self._line = self._fence = ""
        return pieces

    def _take(self, line: str, pieces: list[Piece]) -> None:
        if self._fence:
            self._take_code(line, pieces)
            return
        if self._in_inner_fence or (self._is_list() and _INNER_FENCE.match(line)):
            if _INNER_FENCE.match(line):
                self._in_inner_fence = not self._in_inner_fence
            self._block.append(line)
            return
        fence = _FENCE.match(line)
        if fence is not None:
            self._finish(pieces)
            self._fence, self._language = fence["marks"], fence["language"].strip().lower()
            return
        if self._ends_before(line):
            self._finish(pieces)
        if line.strip() or self._block:
            self._block.append(line)

    def _take_code(self, line: str, pieces: list[Piece]) -> None:
        marks = line.strip()
        if len(marks) >= len(self._fence) and set(marks) == {self._fence[0]}:
            self._fence = ""
            return
        if pieces and pieces[-1].kind == "code":
            before = pieces.pop()
            pieces.append(before._replace(text=f"{before.text}\n{line}"))
        else:
            pieces.append(Piece("code", line, self._language))

    def _ends_before(self, line: str) -> bool:
        """Return whether the block is finished when this line comes."""
        if not self._block:
            return False
        is_item, is_blank = _ITEM.match(line) is not None, not line.strip()
        if not self._is_list():
            return is_blank or (len(self._block) >= LONGEST_BLOCK and self._block[-1] != "")
        if is_item:
            return _indent(line) < _content_offset(self._block[0])
        return not is_blank and self._block[-1] == "" and not line.startswith((" ", "\t"))

    def _is_list(self) -> bool:
        return bool(self._block) and _ITEM.match(self._block[0]) is not None

    def _finish(self, pieces: list[Piece]) -> None:
        text, detail = "\n".join(self._block).strip("\n"), self._detail
        self._list_goes_on = self._is_list() and self._block[-1].strip() != ""
        self._block, self._in_inner_fence = [], False
        if text.strip():
            pieces.append(Piece("reply", text, detail))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _content_offset(line: str) -> int:
    """Return the column from which on lines belong to this item of a list."""
    item = _ITEM.match(line)
    assert item is not None
    return len(item[0]) if item[2] else len(item[0]) + 1
