"""A text and the current position in it. It knows no grammar."""

from __future__ import annotations

import re

from keryx.tools.shell.syntax.nodes import ParseError

MAX_DEPTH = 40
"""How deep brackets may nest: more than people write, and far from Python's recursion limit, of
which every level uses several frames."""


class Source:
    """The text, and the current position in it."""

    __slots__ = ("at", "depth", "text")

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth

    def startswith(self, *texts: str) -> bool:
        return self.text.startswith(texts, self.at)

    def take(self, text: str) -> bool:
        """Skip the text if it comes next; return whether it does."""
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def match(self, pattern: re.Pattern[str]) -> str:
        """Skip and return what the pattern matches here; empty if it does not match."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        """Skip and return one character; there must be one."""
        character = self.peek()
        if not character:
            raise ParseError("the command ends inside of a quotation or an expansion")
        self.at += 1
        return character

    def enter(self) -> None:
        if self.depth <= 0:
            raise ParseError("nested too deep")
        self.depth -= 1

    def leave(self) -> None:
        self.depth += 1
