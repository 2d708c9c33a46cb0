"""Finds the places of a patch's hunks in a file, and builds the new file.

Lines are compared exactly first, then without blanks at their ends, then with another indentation.
A place must be the only match, or the one that the patch names. Pure: text in, text out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from keryx.tools.files.content import Content
from keryx.tools.files.patch.nearest import describe_closest
from keryx.tools.files.patch.sections import Hunk

_MAX_PLACES: Final = 8  # the most places that a message lists


class Shift(msgspec.Struct, frozen=True):
    """The difference between the indentation of the file and of the patch."""

    added: str = ""
    removed: str = ""

    def applied(self, line: str) -> str:
        return self.added + line.removeprefix(self.removed) if line.strip() else line


class _Place(msgspec.Struct, frozen=True):
    start: int
    hunk: Hunk
    shift: Shift
    verbatim: bool
    """The lines of the patch have the same endings as the lines of the file."""

    @property
    def end(self) -> int:
        return self.start + len(self.hunk.old)


class Applied(msgspec.Struct):
    """The new content of a file, or the failures."""

    data: bytes = b""
    notes: list[str] = msgspec.field(default_factory=list[str])
    failures: list[str] = msgspec.field(default_factory=list[str])
    added: int = 0
    removed: int = 0


def apply(content: Content, hunks: Sequence[Hunk]) -> Applied:
    """Apply all hunks, each to the file as it was before any of them."""
    result = Applied()
    finder = _PlaceFinder(_lines_with_returns(content))
    for number, hunk in enumerate(hunks, 1):
        message = finder.find(hunk)
        place = f"hunk {number} (line {hunk.at} of the patch)"
        if message is not None and finder.failed:
            result.failures.append(f"{place}: {message}")
        elif message is not None:
            result.notes.append(f"{place} {message}")
        result.added += sum(sign == "+" for sign, _ in hunk.lines)
        result.removed += sum(sign == "-" for sign, _ in hunk.lines)
    if not result.failures:
        try:
            result.data = _rebuild(content, finder.lines, finder.places)
        except UnicodeEncodeError as error:
            letter = error.object[error.start]
            result.failures.append(f"the file is {content.encoding}, which has no {letter!r}")
    return result


def _lines_with_returns(content: Content) -> list[str]:
    """Return the lines of the file; in a CRLF file also the last one gets its carriage return."""
    lines = list(content.lines)
    if content.ending == "\r\n" and lines and not content.ends_with_newline:
        lines[-1] += "\r"
    return lines


class _PlaceFinder:
    """Finds a place for one hunk after another."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.places: list[_Place] = []
        self.failed = False
        self._plain = [line.removesuffix("\r") for line in lines]
        self._drift = 0

    def find(self, hunk: Hunk) -> str | None:
        """Add the hunk's place; return a note or, if `failed` is set, an error."""
        self.failed = False
        old = hunk.old
        if not old:
            self._add_place(self._insertion(hunk), hunk, verbatim=not self.lines)
            return None
        plain = [line.removesuffix("\r") for line in old]
        levels: tuple[tuple[list[str], list[str], Callable[[str], str], str | None], ...] = (
            (self.lines, old, str, None),
            (self._plain, plain, str, None),
            (self._plain, plain, str.rstrip, "matched except for blanks at the ends of lines"),
            (self._plain, plain, str.strip, "matched with another indentation"),
        )
        for number, (lines, pattern, view, note) in enumerate(levels):
            shifts = _find_matches(lines, pattern, view, shifted=number == len(levels) - 1)
            starts = self._allowed(hunk, shifts)
            if not starts:
                continue
            start = self._choose(hunk, starts)
            if start is None:
                self.failed = True
                return _ambiguous_message(starts)
            self._add_place(start, hunk, shifts[start], verbatim=number == 0)
            return f"{note}, at line {start + 1}" if note else None
        self.failed = True
        return describe_closest(self._plain, plain)

    def _add_place(
        self, start: int, hunk: Hunk, shift: Shift | None = None, *, verbatim: bool = False
    ) -> None:
        self.places.append(_Place(start, hunk, shift or Shift(), verbatim))
        if hunk.expected is not None:
            self._drift = start - hunk.expected

    def _insertion(self, hunk: Hunk) -> int:
        """Return the place of added lines that have no context."""
        if hunk.expected is not None:
            return min(hunk.expected, len(self.lines))
        anchor = self._anchor(hunk)
        return len(self.lines) if anchor is None else anchor + 1

    def _allowed(self, hunk: Hunk, shifts: dict[int, Shift]) -> list[int]:
        size = len(hunk.old)
        free = [
            start
            for start in shifts
            if all(start >= place.end or start + size <= place.start for place in self.places)
        ]
        if hunk.at_end:
            free = [start for start in free if start + size == len(self.lines)] or free
        anchor = self._anchor(hunk)
        if anchor is None:
            return free
        inside = [start for start in free if anchor <= start < self._end_of_block(anchor)]
        return inside or [start for start in free if start >= anchor] or free

    def _choose(self, hunk: Hunk, starts: list[int]) -> int | None:
        if hunk.expected is not None:
            for start in (hunk.expected, hunk.expected + self._drift):
                if start in starts:
                    return start
        if len(starts) == 1:
            return starts[0]
        last_end = max((place.end for place in self.places), default=0)
        after = [start for start in starts if start >= last_end]
        return after[0] if len(after) == 1 and self.places else None

    def _anchor(self, hunk: Hunk) -> int | None:
        """Return the line of the last anchor; each is searched below the one before."""
        position: int | None = None
        for anchor in hunk.anchors:
            begin = 0 if position is None else position + 1
            line_number = next(
                (
                    number
                    for compare in (str.__eq__, str.startswith)
                    for number in range(begin, len(self._plain))
                    if compare(self._plain[number].strip(), anchor)
                ),
                None,
            )
            position = position if line_number is None else line_number
        return position

    def _end_of_block(self, anchor: int) -> int:
        depth = _depth(self._plain[anchor])
        for number in range(anchor + 1, len(self._plain)):
            line = self._plain[number]
            if line.strip() and _depth(line) <= depth:
                return number
        return len(self._plain)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _find_matches(
    lines: list[str], pattern: list[str], view: Callable[[str], str], *, shifted: bool
) -> dict[int, Shift]:
    """Return all places where the lines match the pattern, after `view` is applied to both."""
    viewed_lines = lines if view is str else [view(line) for line in lines]
    viewed_pattern = pattern if view is str else [view(line) for line in pattern]
    size = len(viewed_pattern)
    matches: dict[int, Shift] = {}
    start = -1
    for _ in range(viewed_lines.count(viewed_pattern[0])):
        start = viewed_lines.index(viewed_pattern[0], start + 1)
        if viewed_lines[start : start + size] == viewed_pattern:
            shift = _indent_shift(lines[start : start + size], pattern) if shifted else Shift()
            if shift is not None:
                matches[start] = shift
    return matches


def _indent_shift(lines: Sequence[str], pattern: Sequence[str]) -> Shift | None:
    """Return the difference of indentation; None if it is not the same for all lines."""
    shifts: set[Shift] = set()
    for file_line, patch_line in zip(lines, pattern, strict=True):
        if file_line.strip():
            file_indent, patch_indent = (
                file_line[: _depth(file_line)],
                patch_line[: _depth(patch_line)],
            )
            if file_indent.endswith(patch_indent):
                shifts.add(
                    Shift(
                        added=file_indent.removesuffix(patch_indent)
                        if patch_indent
                        else file_indent
                    )
                )
            elif patch_indent.endswith(file_indent):
                shifts.add(
                    Shift(
                        removed=patch_indent.removesuffix(file_indent)
                        if file_indent
                        else patch_indent
                    )
                )
            else:
                return None
    return shifts.pop() if len(shifts) == 1 else None


def _rebuild(content: Content, lines: list[str], places: Sequence[_Place]) -> bytes:
    new_lines: list[str] = []
    ends_with_newline = content.ends_with_newline
    at = 0
    has_returns = content.ending == "\r\n"
    for place in sorted(places, key=lambda place: place.start):
        new_lines += lines[at : place.start]
        at = place.start
        for sign, text in place.hunk.lines:
            if sign == "+":
                new_lines.append(_adapt(text, place, has_returns=has_returns))
                continue
            if sign == " ":
                new_lines.append(lines[at])
            at += 1
        hunk = place.hunk
        if place.end == len(lines) and (hunk.old_lacks_newline or hunk.new_lacks_newline):
            ends_with_newline = not hunk.new_lacks_newline
    new_lines += lines[at:]
    if has_returns and new_lines and not ends_with_newline:
        new_lines[-1] = new_lines[-1].removesuffix("\r")
    return content.encoded(new_lines, ends_with_newline=ends_with_newline)


def _adapt(text: str, place: _Place, *, has_returns: bool) -> str:
    if place.verbatim:
        return text
    plain = place.shift.applied(text.removesuffix("\r"))
    return f"{plain}\r" if has_returns else plain


def _ambiguous_message(starts: list[int]) -> str:
    numbers = ", ".join(str(start + 1) for start in starts[:_MAX_PLACES])
    others = "" if len(starts) <= _MAX_PLACES else f" and {len(starts) - _MAX_PLACES} more"
    return (
        f"fits at {len(starts)} places, at the lines {numbers}{others}; "
        "add more lines around it, or an @@ line that names the function or class"
    )
