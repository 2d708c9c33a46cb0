"""Where the hunks of a patch belong in a file, and what the file becomes.

Lines are compared exactly first, then without blanks at their ends, then with another indentation.
A place must be the only one that fits, or the one that the patch names. Pure: text in, text out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from keryx.tools.files.content import Content
from keryx.tools.files.patch.nearest import closest
from keryx.tools.files.patch.sections import Hunk

_NAMED: Final = 8  # places that are named if there are too many


class Shift(msgspec.Struct, frozen=True):
    """How much deeper, or less deep, the file is indented than the patch."""

    added: str = ""
    removed: str = ""

    def applied(self, line: str) -> str:
        return self.added + line.removeprefix(self.removed) if line.strip() else line


class _Place(msgspec.Struct, frozen=True):
    start: int
    hunk: Hunk
    shift: Shift
    verbatim: bool
    """The patch writes its lines with the very endings of the file."""

    @property
    def end(self) -> int:
        return self.start + len(self.hunk.old)


class Applied(msgspec.Struct):
    """What became of a file, or why nothing did."""

    data: bytes = b""
    notes: list[str] = msgspec.field(default_factory=list[str])
    failures: list[str] = msgspec.field(default_factory=list[str])
    added: int = 0
    removed: int = 0


def apply(content: Content, hunks: Sequence[Hunk]) -> Applied:
    """Apply all hunks, each to the file as it was before any of them."""
    result = Applied()
    finder = _Finder(_with_returns(content))
    for number, hunk in enumerate(hunks, 1):
        said = finder.find(hunk)
        where = f"hunk {number} (line {hunk.at} of the patch)"
        if said is not None and finder.failed:
            result.failures.append(f"{where}: {said}")
        elif said is not None:
            result.notes.append(f"{where} {said}")
        result.added += sum(sign == "+" for sign, _ in hunk.lines)
        result.removed += sum(sign == "-" for sign, _ in hunk.lines)
    if not result.failures:
        try:
            result.data = _rebuilt(content, finder.lines, finder.places)
        except UnicodeEncodeError as error:
            letter = error.object[error.start]
            result.failures.append(f"the file is {content.encoding}, which has no {letter!r}")
    return result


def _with_returns(content: Content) -> list[str]:
    """All lines alike: the last one of a CRLF file may lack its newline, and the return with it."""
    lines = list(content.lines)
    if content.ending == "\r\n" and lines and not content.ends_with_newline:
        lines[-1] += "\r"
    return lines


class _Finder:
    """Finds a place for one hunk after the other."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.places: list[_Place] = []
        self.failed = False
        self._plain = [line.removesuffix("\r") for line in lines]
        self._drift = 0

    def find(self, hunk: Hunk) -> str | None:
        """Add the hunk's place; what is said of it otherwise, `failed` tells how it is meant."""
        self.failed = False
        old = hunk.old
        if not old:
            self._place(self._insertion(hunk), hunk, verbatim=not self.lines)
            return None
        plain = [line.removesuffix("\r") for line in old]
        levels: tuple[tuple[list[str], list[str], Callable[[str], str], str | None], ...] = (
            (self.lines, old, str, None),
            (self._plain, plain, str, None),
            (self._plain, plain, str.rstrip, "matched but for blanks at the ends of lines"),
            (self._plain, plain, str.strip, "matched with another indentation"),
        )
        for number, (lines, wanted, view, note) in enumerate(levels):
            shifts = _matches(lines, wanted, view, shifted=number == len(levels) - 1)
            starts = self._allowed(hunk, shifts)
            if not starts:
                continue
            start = self._chosen(hunk, starts)
            if start is None:
                self.failed = True
                return _ambiguous(starts)
            self._place(start, hunk, shifts[start], verbatim=number == 0)
            return f"{note}, at line {start + 1}" if note else None
        self.failed = True
        return closest(self._plain, plain)

    def _place(
        self, start: int, hunk: Hunk, shift: Shift | None = None, *, verbatim: bool = False
    ) -> None:
        self.places.append(_Place(start, hunk, shift or Shift(), verbatim))
        if hunk.expected is not None:
            self._drift = start - hunk.expected

    def _insertion(self, hunk: Hunk) -> int:
        """Where lines go that come without any around them."""
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

    def _chosen(self, hunk: Hunk, starts: list[int]) -> int | None:
        if hunk.expected is not None:
            for named in (hunk.expected, hunk.expected + self._drift):
                if named in starts:
                    return named
        if len(starts) == 1:
            return starts[0]
        last = max((place.end for place in self.places), default=0)
        after = [start for start in starts if start >= last]
        return after[0] if len(after) == 1 and self.places else None

    def _anchor(self, hunk: Hunk) -> int | None:
        """The line that the last anchor names, each looked for below the one before."""
        position: int | None = None
        for anchor in hunk.anchors:
            begin = 0 if position is None else position + 1
            found = next(
                (
                    number
                    for fits in (str.__eq__, str.startswith)
                    for number in range(begin, len(self._plain))
                    if fits(self._plain[number].strip(), anchor)
                ),
                None,
            )
            position = position if found is None else found
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


def _matches(
    lines: list[str], wanted: list[str], view: Callable[[str], str], *, shifted: bool
) -> dict[int, Shift]:
    """All places where the lines are the wanted ones, seen through the view."""
    seen = lines if view is str else [view(line) for line in lines]
    sought = wanted if view is str else [view(line) for line in wanted]
    size = len(sought)
    found: dict[int, Shift] = {}
    start = -1
    for _ in range(seen.count(sought[0])):
        start = seen.index(sought[0], start + 1)
        if seen[start : start + size] == sought:
            shift = _shift(lines[start : start + size], wanted) if shifted else Shift()
            if shift is not None:
                found[start] = shift
    return found


def _shift(there: Sequence[str], wanted: Sequence[str]) -> Shift | None:
    """The one difference of indentation between the two; None if it is not one."""
    found: set[Shift] = set()
    for mine, theirs in zip(there, wanted, strict=True):
        if mine.strip():
            has, says = mine[: _depth(mine)], theirs[: _depth(theirs)]
            if has.endswith(says):
                found.add(Shift(added=has.removesuffix(says) if says else has))
            elif says.endswith(has):
                found.add(Shift(removed=says.removesuffix(has) if has else says))
            else:
                return None
    return found.pop() if len(found) == 1 else None


def _rebuilt(content: Content, lines: list[str], places: Sequence[_Place]) -> bytes:
    built: list[str] = []
    ends = content.ends_with_newline
    at = 0
    returns = content.ending == "\r\n"
    for place in sorted(places, key=lambda place: place.start):
        built += lines[at : place.start]
        at = place.start
        for sign, text in place.hunk.lines:
            if sign == "+":
                built.append(_adapted(text, place, returns=returns))
                continue
            if sign == " ":
                built.append(lines[at])
            at += 1
        hunk = place.hunk
        if place.end == len(lines) and (hunk.old_lacks_newline or hunk.new_lacks_newline):
            ends = not hunk.new_lacks_newline
    built += lines[at:]
    if returns and built and not ends:
        built[-1] = built[-1].removesuffix("\r")
    return content.encoded(built, ends_with_newline=ends)


def _adapted(text: str, place: _Place, *, returns: bool) -> str:
    if place.verbatim:
        return text
    plain = place.shift.applied(text.removesuffix("\r"))
    return f"{plain}\r" if returns else plain


def _ambiguous(starts: list[int]) -> str:
    named = ", ".join(str(start + 1) for start in starts[:_NAMED])
    more = "" if len(starts) <= _NAMED else f" and {len(starts) - _NAMED} more"
    return (
        f"fits at {len(starts)} places, at the lines {named}{more}; "
        "add more lines around it, or an @@ line that names the function or class"
    )
