"""Finds the place of a file that is most similar to lines that are not in it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Final

MAX_LINES: Final = 12
"""The most lines of the file that are shown."""
_MAX_COMPARED: Final = 5_000  # the most lines that are compared letter by letter
_MAX_VOTES: Final = 200  # the most places of one line that count; a single brace is everywhere
_MAX_WIDTH: Final = 160


def describe_closest(lines: Sequence[str], pattern: Sequence[str]) -> str:
    """Return a report: the place, its lines with numbers, and the first line that differs."""
    start = _start_by_votes(lines, pattern)
    if start is None:
        start = _start_by_first_line(lines, pattern)
    if start is None:
        first = next((line for line in pattern if line.strip()), "")
        return f"not found, and no line is similar to its first line {_short(first)}"
    report = [f"not found; the closest place is at line {start + 1}:"]
    differs = False
    for offset, patch_line in enumerate(pattern[:MAX_LINES]):
        number = start + offset
        file_line = lines[number] if number < len(lines) else None
        text = "(end of file)" if file_line is None else file_line[:_MAX_WIDTH]
        line = f"  {number + 1:>5}  {text}"
        if not differs and (file_line is None or file_line.strip() != patch_line.strip()):
            differs = True
            line += f"\n      ^  the patch has {_short(patch_line)}"
        report.append(line)
        if file_line is None:
            break
    return "\n".join(report)


def _start_by_votes(lines: Sequence[str], pattern: Sequence[str]) -> int | None:
    """Return the start where most lines match: each line votes for the starts that it fits."""
    numbers_of: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        numbers_of.setdefault(line.strip(), []).append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(pattern):
        stripped = line.strip()
        numbers = numbers_of.get(stripped, []) if stripped else []
        votes.update(number - offset for number in numbers[:_MAX_VOTES] if number >= offset)
    return votes.most_common(1)[0][0] if votes else None


def _start_by_first_line(lines: Sequence[str], pattern: Sequence[str]) -> int | None:
    """Return the start by the line that is most similar to the first line with text."""
    offset = next((number for number, line in enumerate(pattern) if line.strip()), 0)
    candidates = [line.strip() for line in lines[:_MAX_COMPARED]]
    similar = difflib.get_close_matches(pattern[offset].strip(), candidates, n=1, cutoff=0.6)
    return max(candidates.index(similar[0]) - offset, 0) if similar else None


def _short(line: str) -> str:
    return repr(line if len(line) <= _MAX_WIDTH else f"{line[:_MAX_WIDTH]}...")
