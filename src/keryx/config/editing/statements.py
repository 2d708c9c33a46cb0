"""Finds the statements in the text of a TOML file: headers, and pairs of a key and a value.

The text must be valid TOML. This module finds only where things begin and end; `tomllib` reads what
they mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final

import msgspec

Path = tuple[str, ...]

_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS: Final = (
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_SCALAR: Final = re.compile(r"[^\s,\]}#]+(?: [0-9][^\s,\]}#]*)?")
_COMMENT: Final = re.compile(r"#[^\n]*")


class Header(msgspec.Struct, frozen=True):
    """A line `[path]` or `[[path]]`."""

    path: Path
    is_array: bool
    start: int
    end: int
    """After the end of its line."""


class Pair(msgspec.Struct, frozen=True):
    """`key = value`. `start` is where its first line begins, `end` where the line after it does."""

    section: Header | None
    key: Path
    start: int
    value: tuple[int, int]
    end: int

    @property
    def path(self) -> Path:
        """The whole path, from the root of the file."""
        return (*(() if self.section is None else self.section.path), *self.key)

    @property
    def is_in_array(self) -> bool:
        """Whether it belongs to an entry of `[[path]]`, which no path can name."""
        return self.section is not None and self.section.is_array


Statement = Header | Pair


def statements(text: str) -> list[Statement]:
    """Return the statements in order. Entries below `[[path]]` count as parts of an array."""
    result: list[Statement] = []
    section: Header | None = None
    arrays: set[Path] = set()
    position = 0
    while position < len(text):
        line_start, position = position, _skip_space(text, position)
        if position < len(text) and text[position] not in "#\r\n":
            if text[position] == "[":
                section = _header(text, line_start, position, arrays)
                result.append(section)
            else:
                result.append(_pair(text, line_start, position, section))
            position = result[-1].end
        else:
            position = _line_end(text, position)
    return result


def comments(text: str, start: int = 0, end: int | None = None) -> Iterator[str]:
    """Yield the comments in a part of the text; the part must not begin inside a string."""
    position, end = start, len(text) if end is None else end
    while position < end:
        char = text[position]
        if char == "#":
            comment = _COMMENT.match(text, position, end)
            assert comment is not None
            yield comment[0].rstrip("\r")
            position = comment.end()
        elif char in "\"'":
            position = string_end(text, position)
        else:
            position += 1


def string_end(text: str, position: int) -> int:
    """Return where the string that begins here ends."""
    for pattern in _STRINGS:
        if match := pattern.match(text, position):
            return match.end()
    raise ValueError(f"there is no string at {position}")


def value_end(text: str, position: int) -> int:
    """Return where the value that begins here ends."""
    if text[position] in "\"'":
        return string_end(text, position)
    if text[position] not in "[{":
        scalar = _SCALAR.match(text, position)
        assert scalar is not None
        return scalar.end()
    depth = 0
    while True:
        char = text[position]
        if char in "\"'":
            position = string_end(text, position)
            continue
        if char == "#":
            position = _line_end(text, position)
            continue
        depth += (char in "[{") - (char in "]}")
        position += 1
        if depth == 0:
            return position


def _header(text: str, start: int, position: int, arrays: set[Path]) -> Header:
    is_array = text.startswith("[[", position)
    path, position = _key(text, position + 1 + is_array)
    if is_array:
        arrays.add(path)
    is_inside = any(path[: len(array)] == array for array in arrays)
    return Header(path, is_inside, start, _line_end(text, position))


def _pair(text: str, start: int, position: int, section: Header | None) -> Pair:
    key, position = _key(text, position)
    value_start = _skip_space(text, position + 1)
    end = value_end(text, value_start)
    return Pair(section, key, start, (value_start, end), _line_end(text, end))


def _key(text: str, position: int) -> tuple[Path, int]:
    """Return the key that begins here, and where what follows it begins."""
    parts: list[str] = []
    while True:
        position = _skip_space(text, position)
        bare = _BARE.match(text, position)
        end = bare.end() if bare else string_end(text, position)
        name = text[position:end]
        parts.append(name if bare else tomllib.loads(f"name = {name}")["name"])
        position = _skip_space(text, end)
        if text[position] != ".":
            return tuple(parts), position
        position += 1


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    assert space is not None
    return space.end()


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1
