"""`read_file` for a script: text that becomes the same file again, or bytes in base64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.tool import Exact, ToolContext
from keryx.tools.exact_bytes import in_base64
from keryx.tools.files import content, safe_open
from keryx.tools.files.content import sized
from keryx.tools.files.safe_open import OpenFile
from keryx.tools.files.scripts import encoding
from keryx.tools.files.scripts.encoding import exact

AT_ONCE: Final = 1024 * 1024
"""Bytes of a file that are read without asking whether there is room for them."""
COPIES: Final = 4
"""How often the content of a file is in memory at most: as bytes, as text, and as JSON of both."""


class Extent(msgspec.Struct, frozen=True):
    """Which lines of a file the script asks for, and how it calls the file."""

    name: str
    start: int
    lines: int | None
    numbered: bool

    @property
    def is_whole(self) -> bool:
        return self.start == 1 and self.lines is None and not self.numbered


def read(
    context: ToolContext, file: OpenFile, target: Path, extent: Extent, offset: Callable[[], int]
) -> Exact:
    """What the script gets of an open file; `offset` finds the first line of a large one."""
    if file.size > AT_ONCE:
        context.from_thread(context.hold, COPIES * min(file.size, safe_open.WHOLE))
    data = file.read_whole() if file.size <= safe_open.WHOLE else None
    if data is None or len(data) > safe_open.WHOLE:
        page = _page(file, extent, offset())
        context.files.seen(target, file.stamp(None))
        return Exact(page)
    found, stamp = exact(data), file.stamp(data)
    if found is not None and found.encoding != "utf-8":
        last = context.files.last_seen(target)
        # What a script has written as UTF-8 is that, also if it looks like wide characters.
        if last is not None and last.encoding == "utf-8" and last.matches(stamp):
            found = encoding.Exact(data.decode(), "utf-8")
    value = _whole(data, found) if extent.is_whole else _part(data, found, extent)
    if found is not None:
        stamp = msgspec.structs.replace(stamp, encoding=found.form)
    context.files.seen(target, stamp)
    return Exact(value)


def _whole(data: bytes, found: encoding.Exact | None) -> dict[str, Any]:
    if found is None:
        return _bytes(data)
    text = found.text
    return {
        "text": text,
        "encoding": found.encoding,
        "start": 1,
        "lines": text.count("\n") + (text[-1:] not in ("", "\n")),
        "truncated": False,
        "next": None,
        "size": len(data),
    }


def _part(data: bytes, found: encoding.Exact | None, extent: Extent) -> dict[str, Any]:
    if found is None:
        raise ToolFailedError(
            f"{extent.name} is {content.binary_type(data)}, which has no lines; read it without "
            "start, lines and numbered to get its bytes as base64"
        )
    lines = _lines(found.text)
    if extent.start > max(1, len(lines)):
        raise ToolFailedError(
            f"start={extent.start} is past the end: {extent.name} has only {len(lines)} lines"
        )
    first = extent.start - 1
    chosen = lines[first:] if extent.lines is None else lines[first : first + extent.lines]
    end = first + len(chosen)
    return {
        "text": _joined(chosen, extent),
        "encoding": found.encoding,
        "start": extent.start,
        "lines": len(chosen),
        "truncated": len(chosen) < len(lines),
        "next": end + 1 if end < len(lines) else None,
        "size": len(data),
    }


def _page(file: OpenFile, extent: Extent, offset: int) -> dict[str, Any]:
    """Lines of a file that is too large to be passed at once, as many as can be."""
    block = file.read(offset, safe_open.WHOLE + 1)
    *ended, last = block[: safe_open.WHOLE].split(b"\n")
    lines = [line + b"\n" for line in ended]
    if last and len(block) <= safe_open.WHOLE:
        lines.append(last)
    if not lines:
        raise ToolFailedError(
            f"line {extent.start} of {extent.name} has more than {sized(safe_open.WHOLE)}, and no "
            "more are passed at once; read the file in the script itself, with open()"
            if block
            else f"start={extent.start} is past the end of {extent.name}"
        )
    lines = lines[: extent.lines]
    data = b"".join(lines)
    is_rest = offset + len(data) >= file.size
    page = {
        "start": extent.start,
        "lines": len(lines),
        "truncated": True,
        "next": None if is_rest else extent.start + len(lines),
        "size": file.size,
    }
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": in_base64(data), "encoding": None, **page}
    return {"text": _joined(_lines(text), extent), "encoding": "utf-8", **page}


def _bytes(data: bytes) -> dict[str, Any]:
    return {
        "base64": in_base64(data),
        "encoding": None,
        "media_type": content.image_type(data) or "application/octet-stream",
        "truncated": False,
        "next": None,
        "size": len(data),
    }


def _lines(text: str) -> list[str]:
    """Each with its end, which is `\\n` alone: a `\\r` belongs to the line."""
    *ended, last = text.split("\n")
    lines = [f"{line}\n" for line in ended]
    return [*lines, last] if last else lines


def _joined(lines: list[str], extent: Extent) -> str:
    if extent.numbered:
        lines = [f"{number}\t{line}" for number, line in enumerate(lines, extent.start)]
    return "".join(lines)
