"""A text and how far it has been read. Knows no grammar."""

from __future__ import annotations

import re

from keryx.tools.shell.syntax.nodes import ParseError

DEPTH = 40
"""How deep brackets may nest: more than people write, and far from the interpreter's own bound,
which every level of ours uses up several times."""


class Source:
    """The text, and how far it has been read."""

    __slots__ = ("at", "depth", "text")

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth

    def startswith(self, *texts: str) -> bool:
        return self.text.startswith(texts, self.at)

    def take(self, text: str) -> bool:
        """Go past the text if it comes next."""
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def match(self, pattern: re.Pattern[str]) -> str:
        """Go past what the pattern matches here; empty if it does not."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found.group()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        """Take one character; there must be one."""
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
