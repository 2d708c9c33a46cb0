"""Parses a docstring: what a function does, and what each parameter means.

It knows the Google, NumPy and Sphinx styles, and nothing of functions, types or tools.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

import msgspec

_GOOGLE_HEADING = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*)|)$")
_NUMPY_HEADING = re.compile(r"(?:Other )?Parameters\s*")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_UNDERLINE = re.compile(r"-{3,}\s*")
_SPHINX_ENTRY = re.compile(
    r":(param|parameter|arg|argument|type)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$"
)


class Docstring(msgspec.Struct, frozen=True):
    """The text without the section of parameters, and the description of each parameter."""

    text: str = ""
    parameters: dict[str, str] = msgspec.field(default_factory=dict[str, str])


def read_docstring(docstring: str | None) -> Docstring:
    """Parse a docstring; the first description of a parameter wins."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    descriptions: dict[str, str] = {}
    for style in (_google, _numpy, _sphinx):
        lines, entries = style(lines)
        for name, words in entries:
            descriptions.setdefault(name, words)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return Docstring(text, {name: words for name, words in descriptions.items() if words})


_Entries = list[tuple[str, str]]


def _google(lines: Sequence[str]) -> tuple[list[str], _Entries]:
    other_lines: list[str] = []
    entries: _Entries = []
    position = 0
    while position < len(lines):
        if _GOOGLE_HEADING.fullmatch(lines[position]):
            end = _end_of_indented(lines, position + 1)
            section = list(_google_entries(lines[position + 1 : end]))
            if section:
                entries += section
                position = end
                continue
        other_lines.append(lines[position])
        position += 1
    return other_lines, entries


def _google_entries(body: Sequence[str]) -> Iterator[tuple[str, str]]:
    base = min((_indent(line) for line in body if line.strip()), default=0)
    name = ""
    words: list[str] = []
    for line in body:
        entry = _GOOGLE_ENTRY.match(line.strip()) if _indent(line) == base else None
        if entry is None:
            words.append(line)
            continue
        if name:
            yield name, _joined(words)
        name, words = entry[1], [entry[2] or ""]
    if name:
        yield name, _joined(words)


def _numpy(lines: Sequence[str]) -> tuple[list[str], _Entries]:
    other_lines: list[str] = []
    entries: _Entries = []
    position = 0
    while position < len(lines):
        if _NUMPY_HEADING.fullmatch(lines[position]) and _is_underlined(lines, position):
            position += 2
            while position < len(lines) and not _is_underlined(lines, position):
                entry = _NUMPY_ENTRY.match(lines[position])
                if entry is None and lines[position].strip():
                    break
                position += 1
                if entry is not None:
                    end = _end_of_indented(lines, position)
                    words = _joined(lines[position:end])
                    names = (name.strip(" *") for name in entry[1].split(","))
                    entries += [(name, words) for name in names]
                    position = end
            continue
        other_lines.append(lines[position])
        position += 1
    return other_lines, entries


def _sphinx(lines: Sequence[str]) -> tuple[list[str], _Entries]:
    other_lines: list[str] = []
    entries: _Entries = []
    position = 0
    while position < len(lines):
        entry = _SPHINX_ENTRY.match(lines[position])
        if entry is None:
            other_lines.append(lines[position])
            position += 1
            continue
        end = _end_of_indented(lines, position + 1)
        if entry[1] != "type":
            entries.append((entry[2], _joined([entry[3], *lines[position + 1 : end]])))
        position = end
    return other_lines, entries


def _end_of_indented(lines: Sequence[str], start: int) -> int:
    """Return where the indented block at `start` ends, without blank lines after it."""
    end = start
    for position in range(start, len(lines)):
        if lines[position].strip():
            if not _indent(lines[position]):
                break
            end = position + 1
    return end


def _is_underlined(lines: Sequence[str], position: int) -> bool:
    following = lines[position + 1] if position + 1 < len(lines) else ""
    return bool(lines[position].strip()) and _UNDERLINE.fullmatch(following) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: Sequence[str]) -> str:
    return " ".join(" ".join(lines).split())
