"""Which place of a file comes closest to lines that it does not hold, and how the two differ."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Final

SHOWN: Final = 12
"""Lines of the file that are shown."""
_LOOKED_AT: Final = 5_000  # lines that are compared letter by letter
_VOTES: Final = 200  # places of one line that count; a lone brace is everywhere
_WIDE: Final = 160


def closest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """A report: the place, its lines with numbers, and the first line that differs."""
    start = _most_alike(lines, wanted)
    if start is None:
        start = _like_first(lines, wanted)
    if start is None:
        first = next((line for line in wanted if line.strip()), "")
        return f"found nowhere, and nothing is like its first line {_short(first)}"
    said = [f"not found; the closest place is at line {start + 1}:"]
    differs = False
    for offset, theirs in enumerate(wanted[:SHOWN]):
        number = start + offset
        mine = lines[number] if number < len(lines) else None
        shown = "(end of file)" if mine is None else mine[:_WIDE]
        line = f"  {number + 1:>5}  {shown}"
        if not differs and (mine is None or mine.strip() != theirs.strip()):
            differs = True
            line += f"\n      ^  the patch has {_short(theirs)}"
        said.append(line)
        if mine is None:
            break
    return "\n".join(said)


def _most_alike(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The start where most lines stand where they should: each line votes for its places."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(line.strip(), []).append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(wanted):
        stripped = line.strip()
        found = places.get(stripped, []) if stripped else []
        votes.update(number - offset for number in found[:_VOTES] if number >= offset)
    return votes.most_common(1)[0][0] if votes else None


def _like_first(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The line that is most like the first that says something."""
    offset = next((number for number, line in enumerate(wanted) if line.strip()), 0)
    candidates = [line.strip() for line in lines[:_LOOKED_AT]]
    near = difflib.get_close_matches(wanted[offset].strip(), candidates, n=1, cutoff=0.6)
    return max(candidates.index(near[0]) - offset, 0) if near else None


def _short(line: str) -> str:
    return repr(line if len(line) <= _WIDE else f"{line[:_WIDE]}...")
