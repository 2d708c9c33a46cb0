"""What `$'...'` stands for. Knows backslashes and nothing else."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_NAMED = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_LAST = 0x10FFFF


def decode(text: str) -> str:
    """The value of the text between the quotes. A NUL ends it, as in the shell."""
    return _ESCAPE.sub(_character, text).partition("\0")[0]


def _character(found: re.Match[str]) -> str:
    two, four, eight, octal, control, plain = found.groups()
    digits = two or four or eight
    if digits is not None:
        return _point(int(digits, 16))
    if octal is not None:
        return _point(int(octal, 8) & 0xFF)
    if control is not None:
        return chr(ord(control) & 0x1F)
    if plain in _NAMED:
        return _NAMED[plain]
    return plain if plain in "\\'\"?" else "\\" + plain


def _point(number: int) -> str:
    return chr(number) if number <= _LAST else "\ufffd"
