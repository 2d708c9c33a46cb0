"""`read_file`: text by lines, images as images, and a helpful error for everything else.

A small file is read completely and its hash is remembered. Of a large file only the requested
lines are read, and everything before them.
"""

from __future__ import annotations

import codecs
import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from keryx.aio.scope import CancellationToken
from keryx.errors import ToolFailedError
from keryx.messages import Image, Part, Text
from keryx.ports.effects import NO_EFFECTS, Effects, reads
from keryx.ports.files import Files
from keryx.ports.tool import Exact
from keryx.ports.tool_context import ToolContext
from keryx.tools.files import content, safe_open
from keryx.tools.files.content import sized
from keryx.tools.files.file_access import reading_risk
from keryx.tools.files.safe_open import OpenFile
from keryx.tools.files.scripts import reading as script_reading
from keryx.tools.files.scripts.reading import LineRange
from keryx.tools.function import tool

DEFAULT_LINES: Final = 2_000
"""The number of lines if the caller does not give one."""
MAX_OUTPUT: Final = 95_000
"""The most bytes of text: the limit of one result, with room for a note."""
MAX_SCAN: Final = 256 * 1024 * 1024
"""How far into a large file its lines are counted: about a tenth of a second."""
MAX_IMAGE: Final = 10 * 1024 * 1024
"""The largest image for a model; providers accept no larger ones."""

_PIECE: Final = 64 * 1024
_NUMBER_WIDTH: Final = 8  # the most characters of a line number
_MAX_NAMES: Final = 10_000  # the most names of a folder that are compared to suggest a similar one
_WIDE: Final = ("utf-16", "utf-32")

Positive = Annotated[int, msgspec.Meta(ge=1)]
_Read = Callable[[int, int], bytes]


def reads_path(args: Any) -> Effects:
    """Return the effects of a tool that reads its parameter `path`."""
    return NO_EFFECTS if "\0" in args.path else reads(args.path)


@tool(effects=reads_path, risk=reading_risk, replay="safe")
def read_file(
    path: str,
    context: ToolContext,
    start: Positive = 1,
    lines: Positive | None = None,
    *,
    numbered: bool = False,
) -> list[Part] | Exact:
    """Read a text file or look at an image (PNG, JPEG, GIF, WebP).

    Gives the text as it is, and then a note in brackets that says which lines of how many these
    are, and how to read on.

    Args:
        path: The file, relative to the workspace or absolute.
        start: The first line to read, counted from 1.
        lines: How many lines to read; 2,000 if left out.
        numbered: Put the line number and a tab before each line.
    """
    files = context.files
    target = files.resolve(path, write=False)
    name = files.name(target)
    with safe_open.readable_errors(name):
        try:
            with safe_open.open_file(target, name) as file:
                if context.nested:
                    range_ = LineRange(name, start, lines, numbered)
                    return _for_script(context, file, target, range_)
                head = file.read(0, content.SAMPLE)
                kind = content.image_type(head)
                if kind is not None:
                    return _image(context, file, target, kind)
                request = _Request(name, start, lines or DEFAULT_LINES, numbered)
                return _text(context, file, target, head, request)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ToolFailedError(_missing_message(files, target, name)) from error


class _Request(msgspec.Struct, frozen=True):
    name: str
    start: int
    lines: int
    numbered: bool


def _for_script(context: ToolContext, file: OpenFile, target: Path, range_: LineRange) -> Exact:
    def offset() -> int:
        request = _Request(range_.name, range_.start, DEFAULT_LINES, range_.numbered)
        return _offset(request, file.read, None, context.token)

    return script_reading.read(context, file, target, range_, offset)


def _image(context: ToolContext, file: OpenFile, target: Path, kind: str) -> list[Part]:
    if file.size > MAX_IMAGE:
        raise ToolFailedError(
            f"{context.files.name(target)} is an image of {sized(file.size)}, and more than "
            f"{sized(MAX_IMAGE)} cannot be shown; make a smaller copy of it"
        )
    data = file.read_whole()
    blob = context.from_thread(context.files.keep, data)
    context.files.seen(target, file.stamp(data))
    return [Image(blob, kind, target.name), Text(f"[{kind}, {sized(len(data))}]")]


def _text(
    context: ToolContext, file: OpenFile, target: Path, head: bytes, request: _Request
) -> list[Part]:
    encoding = content.encoding_of(head, cut=len(head) == content.SAMPLE)
    if encoding is None:
        raise ToolFailedError(
            f"{request.name} is {content.binary_type(head)} of {sized(file.size)}, not text; "
            "use a program that knows the format"
        )
    data = file.read_whole() if file.size <= safe_open.MAX_WHOLE else None
    if data is None or len(data) > safe_open.MAX_WHOLE:
        if encoding.startswith(_WIDE):
            raise ToolFailedError(
                f"{request.name} is {encoding} text of {sized(file.size)}, too large to be "
                "converted at once; convert it to UTF-8 first"
            )
        page = _page(request, file.read, None, encoding, context.token)
        context.files.seen(target, file.stamp(None))
        return page
    utf8 = _as_utf8(data, encoding, request.name)
    page = _page(request, lambda at, size: utf8[at : at + size], utf8, encoding, context.token)
    context.files.seen(target, file.stamp(data))
    return page


def _as_utf8(data: bytes, encoding: str, name: str) -> bytes:
    """Convert UTF-16 and UTF-32 to UTF-8, so that lines end in one byte; leave others alone."""
    if encoding == "utf-8-sig":
        return data[len(codecs.BOM_UTF8) :]
    if not encoding.startswith(_WIDE):
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeError as error:
        raise ToolFailedError(f"{name} begins like {encoding} but is damaged: {error}") from error


def _page(
    request: _Request, read: _Read, data: bytes | None, encoding: str, token: CancellationToken
) -> list[Part]:
    """Return the requested lines, and a note about them."""
    total = None if data is None else data.count(b"\n") + (data[-1:] not in (b"", b"\n"))
    if total == 0 and request.start == 1:
        return [Text("[empty file]")]
    at = _offset(request, read, total, token)
    block = read(at, MAX_OUTPUT + 1)
    if not block:
        raise _past_end(request, total)
    raw_lines, remainder = _cut(block, request)
    lines, encoding = _decoded(raw_lines, encoding, request.name, cut=remainder == "line")
    notes = [_range_note(request, len(raw_lines), total, at_end=not remainder)]
    if remainder == "line":
        notes.append(f"line {request.start} is longer than can be shown and was cut")
    if encoding != "utf-8":
        notes.append(f"encoding {encoding}")
    if any(line.endswith(b"\r") for line in raw_lines):
        notes.append("lines end in CRLF")
    return [Text(_joined(lines, request)), Text(f"[{'; '.join(notes)}]")]


def _offset(request: _Request, read: _Read, total: int | None, token: CancellationToken) -> int:
    """Return the offset of the first requested line."""
    at, skip = 0, request.start - 1
    while skip:
        piece = read(at, _PIECE)
        if not piece:
            raise _past_end(request, total)
        token.raise_if_cancelled()
        newlines = piece.count(b"\n")
        if newlines >= skip:
            position = 0
            for _ in range(skip):
                position = piece.index(b"\n", position) + 1
            return at + position
        skip -= newlines
        at += len(piece)
        if at >= MAX_SCAN:
            raise ToolFailedError(
                f"line {request.start} of {request.name} lies beyond its first {sized(MAX_SCAN)}; "
                "lines are counted no further; use search_files, or a program that can seek"
            )
    return at


def _past_end(request: _Request, total: int | None) -> ToolFailedError:
    line_count = "fewer" if total is None else f"only {total}"
    return ToolFailedError(
        f"start={request.start} is past the end: {request.name} has {line_count} lines"
    )


def _cut(block: bytes, request: _Request) -> tuple[list[bytes], str]:
    """Return the complete lines that fit, and what was left out: "lines", "line" or nothing."""
    more = len(block) > MAX_OUTPUT
    raw_lines = block[:MAX_OUTPUT].split(b"\n")
    if more and len(raw_lines) == 1:
        return raw_lines, "line"
    if more or raw_lines[-1] == b"":
        raw_lines.pop()
    count = len(raw_lines)
    if request.numbered:
        used = 0
        for index, line in enumerate(raw_lines):
            used += len(line) + 1 + _NUMBER_WIDTH
            if used > MAX_OUTPUT:
                count = max(index, 1)
                break
    selected = raw_lines[: min(count, request.lines)]
    return selected, "lines" if more or len(selected) < len(raw_lines) else ""


def _decoded(
    raw_lines: list[bytes], encoding: str, name: str, *, cut: bool
) -> tuple[list[str], str]:
    data = b"\n".join(raw_lines)
    if 0 in data and not encoding.startswith(_WIDE):
        raise ToolFailedError(f"{name} holds binary data here; use a program that knows the format")
    if encoding == "latin-1" or not content.is_utf8(data, cut=cut):
        return data.decode("latin-1").split("\n"), "latin-1"
    # Only the end of a cut line can be an incomplete character.
    return data.decode(errors="ignore").split("\n"), encoding


def _range_note(request: _Request, count: int, total: int | None, *, at_end: bool) -> str:
    last = request.start + count - 1
    if at_end:
        total = last
    if request.start == 1 and last == total:
        return f"{total} lines" if total != 1 else "1 line"
    line_count = "many" if total is None else str(total)
    return f"lines {request.start}-{last} of {line_count}" + (
        "" if last == total else f"; read on with start={last + 1}"
    )


def _joined(lines: list[str], request: _Request) -> str:
    plain = (line.removesuffix("\r") for line in lines)
    if request.numbered:
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(plain, request.start))
    return "\n".join(plain)


def _missing_message(files: Files, target: Path, name: str) -> str:
    """Return the error for a missing file: which part of its path exists, and similar names."""
    folder = target.parent
    while not folder.is_dir():
        if folder.exists():
            return f"{name} does not exist: {files.name(folder)} is a file, not a folder"
        target, folder = folder, folder.parent
    message = f"{name} does not exist"
    if files.name(target) != name:
        message += f", and neither does the folder {files.name(target)}"
    try:
        with safe_open.open_folder(folder, listed=True) as fd:
            names = os.listdir(fd)[:_MAX_NAMES]  # noqa: PTH208 (a descriptor, not a path)
    except OSError:
        return message
    matches = difflib.get_close_matches(target.name, names, n=3, cutoff=0.6)
    suggestions = [
        files.name(folder / match) for match in matches if folder / match not in files.hidden
    ]
    return message + (
        f"; did you mean {' or '.join(suggestions)}?" if suggestions else "; see list_files"
    )
