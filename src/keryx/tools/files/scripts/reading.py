"""`read_file` for a script: text that becomes the same file again, or bytes in base64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.tool import Exact
from keryx.ports.tool_context import ToolContext
from keryx.tools.exact_bytes import in_base64
from keryx.tools.files import content, safe_open
from keryx.tools.files.content import sized
from keryx.tools.files.safe_open import OpenFile
from keryx.tools.files.scripts import encoding
from keryx.tools.files.scripts.encoding import decode_exact

UNCHECKED_SIZE: Final = 1024 * 1024
"""Files up to this size are read without a reservation of memory."""
COPIES: Final = 4
"""The most copies of a content in memory: as bytes, as text, and as JSON of both."""


class LineRange(msgspec.Struct, frozen=True):
    """The lines that a script asks for, and the name of the file."""

    name: str
    start: int
    lines: int | None
    numbered: bool

    @property
    def is_whole(self) -> bool:
        return self.start == 1 and self.lines is None and not self.numbered


def read(
    context: ToolContext, file: OpenFile, target: Path, range_: LineRange, offset: Callable[[], int]
) -> Exact:
    """Return what a script gets of an open file; `offset` finds the first line in a large one."""
    if file.size > UNCHECKED_SIZE:
        context.from_thread(context.hold, COPIES * min(file.size, safe_open.MAX_WHOLE))
    data = file.read_whole() if file.size <= safe_open.MAX_WHOLE else None
    if data is None or len(data) > safe_open.MAX_WHOLE:
        page = _page_fields(file, range_, offset())
        context.files.seen(target, file.stamp(None))
        return Exact(page)
    decoded, stamp = decode_exact(data), file.stamp(data)
    if decoded is not None and decoded.encoding != "utf-8":
        last = context.files.last_seen(target)
        # A file that a script wrote as UTF-8 is UTF-8, even if it looks like UTF-16.
        if last is not None and last.encoding == "utf-8" and last.matches(stamp):
            decoded = encoding.ExactText(data.decode(), "utf-8")
    value = _whole_fields(data, decoded) if range_.is_whole else _part_fields(data, decoded, range_)
    if decoded is not None:
        stamp = msgspec.structs.replace(stamp, encoding=decoded.form)
    context.files.seen(target, stamp)
    return Exact(value)


def _whole_fields(data: bytes, decoded: encoding.ExactText | None) -> dict[str, Any]:
    if decoded is None:
        return _bytes_fields(data)
    text = decoded.text
    return {
        "text": text,
        "encoding": decoded.encoding,
        "start": 1,
        "lines": text.count("\n") + (text[-1:] not in ("", "\n")),
        "truncated": False,
        "next": None,
        "size": len(data),
    }


def _part_fields(
    data: bytes, decoded: encoding.ExactText | None, range_: LineRange
) -> dict[str, Any]:
    if decoded is None:
        raise ToolFailedError(
            f"{range_.name} is {content.binary_type(data)}, which has no lines; read it without "
            "start, lines and numbered to get its bytes as base64"
        )
    lines = _lines(decoded.text)
    if range_.start > max(1, len(lines)):
        raise ToolFailedError(
            f"start={range_.start} is past the end: {range_.name} has only {len(lines)} lines"
        )
    first = range_.start - 1
    selected = lines[first:] if range_.lines is None else lines[first : first + range_.lines]
    end = first + len(selected)
    return {
        "text": _joined(selected, range_),
        "encoding": decoded.encoding,
        "start": range_.start,
        "lines": len(selected),
        "truncated": len(selected) < len(lines),
        "next": end + 1 if end < len(lines) else None,
        "size": len(data),
    }


def _page_fields(file: OpenFile, range_: LineRange, offset: int) -> dict[str, Any]:
    """Return as many lines as possible of a file that is too large to return at once."""
    block = file.read(offset, safe_open.MAX_WHOLE + 1)
    *ended, last = block[: safe_open.MAX_WHOLE].split(b"\n")
    lines = [line + b"\n" for line in ended]
    if last and len(block) <= safe_open.MAX_WHOLE:
        lines.append(last)
    if not lines:
        raise ToolFailedError(
            f"line {range_.start} of {range_.name} has more than {sized(safe_open.MAX_WHOLE)}, "
            "the most that is passed at once; read the file in the script itself, with open()"
            if block
            else f"start={range_.start} is past the end of {range_.name}"
        )
    lines = lines[: range_.lines]
    data = b"".join(lines)
    is_last = offset + len(data) >= file.size
    page = {
        "start": range_.start,
        "lines": len(lines),
        "truncated": True,
        "next": None if is_last else range_.start + len(lines),
        "size": file.size,
    }
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": in_base64(data), "encoding": None, **page}
    return {"text": _joined(_lines(text), range_), "encoding": "utf-8", **page}


def _bytes_fields(data: bytes) -> dict[str, Any]:
    return {
        "base64": in_base64(data),
        "encoding": None,
        "media_type": content.image_type(data) or "application/octet-stream",
        "truncated": False,
        "next": None,
        "size": len(data),
    }


def _lines(text: str) -> list[str]:
    """Return each line with its end, which is `\\n` alone: a `\\r` belongs to the line."""
    *ended, last = text.split("\n")
    lines = [f"{line}\n" for line in ended]
    return [*lines, last] if last else lines


def _joined(lines: list[str], range_: LineRange) -> str:
    if range_.numbered:
        lines = [f"{number}\t{line}" for number, line in enumerate(lines, range_.start)]
    return "".join(lines)
