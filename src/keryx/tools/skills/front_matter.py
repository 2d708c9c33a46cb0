"""Reads the front matter of `SKILL.md`: the part of YAML that skills use, and nothing else.

Texts of one line, quoted texts, texts of several lines (`>` and `|`). Lists and tables are skipped,
because nothing here needs their values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from keryx.errors import UserMustActError

FENCE: Final = "---"
_KEY: Final = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*))?")
_BLOCK: Final = re.compile(r"([>|])[+-]?")
_COMMENT: Final = re.compile(r"(^|[ \t])#.*$")
# With these, YAML begins something that is not a text.
_NOT_TEXT: Final = tuple("[]{}&*!%@`,")


def read_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the texts of the front matter by key, and what follows it.

    `UserMustActError` names the line that cannot be read.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise UserMustActError(f"the first line is not {FENCE}; begin with the front matter")
    try:
        end = next(at for at, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE)
    except StopIteration:
        raise UserMustActError(f"no second line {FENCE} ends the front matter; add it") from None
    return _fields(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n")


def _fields(lines: Sequence[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line, number = lines[at], at + 2
        at += 1
        if not _COMMENT.sub("", line).strip():
            continue
        match = _KEY.fullmatch(line.rstrip())
        if match is None:
            raise UserMustActError(f"line {number} is not `key: value`; correct it")
        key, start = match[1], at
        while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t-"):
            at += 1
        if key in fields:
            raise UserMustActError(f"line {number} repeats {key!r}; remove one of them")
        value = _value((match[2] or "").strip(), lines[start:at], number)
        if value is not None:
            fields[key] = value
    return fields


def _value(first: str, more: Sequence[str], number: int) -> str | None:
    """Return the text; None if it is a list or a table."""
    block = _BLOCK.fullmatch(_COMMENT.sub("", first).strip())
    if block is not None:
        texts = [line.strip() for line in more]
        return ("\n" if block[1] == "|" else " ").join(texts).strip()
    if first.startswith(('"', "'")):
        return _quoted(" ".join([first, *(line.strip() for line in more)]).strip(), number)
    text = _COMMENT.sub("", first).strip()
    if text.startswith(_NOT_TEXT) or (not text and any(line.strip() for line in more)):
        return None
    return " ".join([text, *(line.strip() for line in more if line.strip())]).strip()


def _quoted(text: str, number: int) -> str:
    if text[0] == "'":
        match = re.fullmatch(r"'((?:[^']|'')*)'(?:\s+#.*)?", text)
        if match is not None:
            return match[1].replace("''", "'")
    else:
        match = re.fullmatch(r'("(?:[^"\\]|\\.)*")(?:\s+#.*)?', text)
        if match is not None:
            try:
                return str(json.loads(match[1], strict=False))
            except ValueError:  # an escape that only YAML has
                pass
    raise UserMustActError(f"line {number} has a quoted text that cannot be read; correct it")
