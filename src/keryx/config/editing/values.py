"""Writes values as TOML, and changes an array of several lines without losing its comments."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, time
from typing import Any, Final, cast

from keryx.config.editing.statements import comments, value_end

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
# JSON allows these in a string, and TOML does not.
_ESCAPED: Final = re.compile("\x7f")


def render(value: Any) -> str:
    """Return the value as TOML, in one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _ESCAPED.sub(r"\\u007f", json.dumps(value, ensure_ascii=False))
        case int() | float():
            return str(value)
        case date() | time():
            return value.isoformat()
        case Mapping():
            pairs = cast("Mapping[str, Any]", value).items()
            inner = ", ".join(f"{render_key((name,))} = {render(item)}" for name, item in pairs)
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(render(item) for item in cast('Sequence[Any]', value))}]"
        case _:
            raise TypeError(f"{type(value).__name__} is no value of TOML")


def render_key(path: Sequence[str]) -> str:
    """Return the key with dots between its parts."""
    return ".".join(part if _BARE.fullmatch(part) else render(part) for part in path)


def changed_array(text: str, values: Sequence[Any]) -> str:
    """Return the text of an array with these values; lines and comments of the others stay."""
    if "\n" not in text:
        return render(values)
    chunks, tail = _chunks(text)
    old = [tomllib.loads(f"value = [{chunk[1]}]")["value"][0] for chunk in chunks]
    indent = _indent(text)
    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, list(map(render, old)), list(map(render, values)))
    for kind, first, last, begin, end in matcher.get_opcodes():
        for lead, item, rest in chunks[first:last]:
            if kind == "equal":
                is_after_comment = lines and lines[-1].lstrip().startswith("#")
                begin_line = f"\n{indent}" if is_after_comment and "\n" not in lead else ""
                lines.append(f"{begin_line}{lead}{item},{rest}")
            else:
                lines += [f"\n{indent}{comment}" for comment in comments(lead + rest)]
        if kind != "equal":
            lines += [f"\n{indent}{render(item)}," for item in values[begin:end]]
    return f"[{''.join(lines)}{tail if tail.startswith(chr(10)) else chr(10) + tail.lstrip()}"


def _chunks(text: str) -> tuple[list[tuple[str, str, str]], str]:
    """Return what stands before each item, the item, and a comment after its comma; and the end."""
    chunks: list[tuple[str, str, str]] = []
    position = 1
    while True:
        start = _item_start(text, position)
        if text[start] == "]":
            return chunks, text[position:]
        end = value_end(text, start)
        comma = _item_start(text, end)
        if text[comma] == ",":
            between, after = text[end:comma], comma + 1
        else:
            between, after = "", end
        comment = re.compile(r"[ \t]*#[^\n]*").match(text, after)
        stop = comment.end() if comment else after
        chunks.append((text[position:start], text[start:end], between + text[after:stop]))
        position = stop


def _item_start(text: str, position: int) -> int:
    """Return where the next thing that is no space and no comment begins."""
    while text[position].isspace() or text[position] == "#":
        position = text.index("\n", position) if text[position] == "#" else position + 1
    return position


def _indent(text: str) -> str:
    line = re.search(r"\n([ \t]+)[^\s#\]]", text)
    return line[1] if line else "    "
