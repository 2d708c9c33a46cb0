"""Decodes the backslash escapes of `$'...'`."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_LETTERS = {
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
_LAST_CODE_POINT = 0x10FFFF


def decode(text: str) -> str:
    """Return the value of the text between the quotes. A NUL ends it, as in the shell."""
    return _ESCAPE.sub(_character, text).partition("\0")[0]


def _character(match: re.Match[str]) -> str:
    two, four, eight, octal, control, plain = match.groups()
    digits = two or four or eight
    if digits is not None:
        return _code_point(int(digits, 16))
    if octal is not None:
        return _code_point(int(octal, 8) & 0xFF)
    if control is not None:
        return chr(ord(control) & 0x1F)
    if plain in _LETTERS:
        return _LETTERS[plain]
    return plain if plain in "\\'\"?" else "\\" + plain


def _code_point(number: int) -> str:
    return chr(number) if number <= _LAST_CODE_POINT else "\ufffd"
