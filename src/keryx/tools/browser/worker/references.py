"""The text of a page with references, made from playwright's snapshot. Pure.

Playwright counts references anew for every document. A reference from here is never used twice, so
one from an old page cannot hit an element of a new page.
"""

from __future__ import annotations

import re

# One line: a role, perhaps a name, then attributes. A name may look like an attribute, so the
# line is read from its start.
_LINE = re.compile(
    r"""^(?P<indent>\s*-\ )(?P<quote>'?)
    (?P<role>[\w-]+)
    (?P<name>\ (?:"(?:[^"\\]|\\.)*"|/(?:[^/\\]|\\.)*/))?
    (?P<before>(?:\ \[(?!ref=)[^\]]*\])*)
    \ \[ref=(?P<ref>\w+)\]
    (?P<rest>.*)$""",
    re.VERBOSE,
)
SHORTEST_CUT = 200
"""A line up to this length is never cut."""


class References:
    """The references of the current page, and what playwright calls them."""

    def __init__(self) -> None:
        self._count = 0
        self._own: dict[str, str] = {}
        self._playwrights: dict[str, str] = {}

    def forget(self, *, frames_only: bool = False) -> None:
        """Forget all references, or those of the frames inside the page: they show others now."""
        for playwrights, own in tuple(self._own.items()):
            if not frames_only or playwrights.startswith("f"):
                del self._own[playwrights]
                del self._playwrights[own]

    def find(self, reference: str) -> str | None:
        """Return what playwright calls the element; None if the reference is outdated."""
        return self._playwrights.get(reference.strip().strip("[]"))

    def text(self, snapshot: str) -> list[str]:
        """Return the lines of a snapshot, each with our reference before its role."""
        return [self._line(line) for line in snapshot.splitlines()]

    def _line(self, line: str) -> str:
        match = _LINE.match(line)
        if match is None:
            return line
        parts = match.groupdict(default="")
        reference = self._reference(parts["ref"])
        text = f"{parts['role']}{parts['name']}{parts['before']}{parts['rest']}"
        return f"{parts['indent']}{parts['quote']}[{reference}] {text}"

    def _reference(self, playwrights: str) -> str:
        own = self._own.get(playwrights)
        if own is None:
            self._count += 1
            own = self._own[playwrights] = f"e{self._count}"
            self._playwrights[own] = playwrights
        return own


def excerpt(lines: list[str], start: int, most: int) -> tuple[str, int]:
    """Return the lines from `start` (from 1 on) within `most` characters, and how many follow.

    No line takes more than a quarter of the room.
    """
    shown: list[str] = []
    size = 0
    for line in lines[start - 1 :]:
        line_text = _cut(line, max(SHORTEST_CUT, most // 4))
        size += len(line_text) + 1
        if size > most and shown:
            break
        shown.append(line_text)
    return "\n".join(shown), max(0, len(lines) - (start - 1) - len(shown))


def _cut(line: str, longest: int) -> str:
    if len(line) <= longest:
        return line
    return f"{line[:longest]}… [{len(line) - longest} characters left out]"
