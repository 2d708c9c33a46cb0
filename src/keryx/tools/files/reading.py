"""`read_file`: text by lines, images as images, and an error that helps for everything else.

A small file is read whole and remembered by its hash. Of a large one only what is asked for is
read, and what lies before it.
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
from keryx.ports.tool import Exact, ToolContext
from keryx.tools.files import content, safe_open
from keryx.tools.files.content import sized
from keryx.tools.files.file_access import reading_risk
from keryx.tools.files.safe_open import OpenFile
from keryx.tools.files.scripts import reading as script_reading
from keryx.tools.files.scripts.reading import Extent
from keryx.tools.function import tool

LINES: Final = 2_000
"""Lines that are shown if nobody says how many."""
SHOWN: Final = 95_000
"""Bytes that are shown at most: what one result may hold, with room for a note."""
SCANNED: Final = 256 * 1024 * 1024
"""How far into a large file its lines are counted: about a tenth of a second."""
IMAGE: Final = 10 * 1024 * 1024
"""The largest image that is handed on; providers take no larger ones."""

_PIECE: Final = 64 * 1024
_NUMBER: Final = 8  # characters that a line's number takes
_NEIGHBOURS: Final = 10_000  # entries of a folder that are looked at for a similar name
_WIDE: Final = ("utf-16", "utf-32")

Positive = Annotated[int, msgspec.Meta(ge=1)]
_Read = Callable[[int, int], bytes]


def reads_path(args: Any) -> Effects:
    """What a tool with a parameter `path` reads."""
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
    with safe_open.telling(name):
        try:
            with safe_open.open_file(target, name) as file:
                if context.nested:
                    extent = Extent(name, start, lines, numbered)
                    return _for_script(context, file, target, extent)
                head = file.read(0, content.SAMPLE)
                kind = content.image_type(head)
                if kind is not None:
                    return _image(context, file, target, kind)
                asked = _Asked(name, start, lines or LINES, numbered)
                return _text(context, file, target, head, asked)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ToolFailedError(_missing(files, target, name)) from error


class _Asked(msgspec.Struct, frozen=True):
    name: str
    start: int
    lines: int
    numbered: bool


def _for_script(context: ToolContext, file: OpenFile, target: Path, extent: Extent) -> Exact:
    def offset() -> int:
        asked = _Asked(extent.name, extent.start, LINES, extent.numbered)
        return _offset(asked, file.read, None, context.token)

    return script_reading.read(context, file, target, extent, offset)


def _image(context: ToolContext, file: OpenFile, target: Path, kind: str) -> list[Part]:
    if file.size > IMAGE:
        raise ToolFailedError(
            f"{context.files.name(target)} is an image of {sized(file.size)}, and more than "
            f"{sized(IMAGE)} cannot be shown; make a smaller copy of it"
        )
    data = file.read_whole()
    blob = context.from_thread(context.files.keep, data)
    context.files.seen(target, file.stamp(data))
    return [Image(blob, kind, target.name), Text(f"[{kind}, {sized(len(data))}]")]


def _text(
    context: ToolContext, file: OpenFile, target: Path, head: bytes, asked: _Asked
) -> list[Part]:
    encoding = content.encoding_of(head, cut=len(head) == content.SAMPLE)
    if encoding is None:
        raise ToolFailedError(
            f"{asked.name} is {content.binary_type(head)} of {sized(file.size)}, not text; "
            "use a program that knows the format"
        )
    data = file.read_whole() if file.size <= safe_open.WHOLE else None
    if data is None or len(data) > safe_open.WHOLE:
        if encoding.startswith(_WIDE):
            raise ToolFailedError(
                f"{asked.name} is {encoding} text of {sized(file.size)}, too large to be converted "
                "at once; convert it to UTF-8 first"
            )
        page = _page(asked, file.read, None, encoding, context.token)
        context.files.seen(target, file.stamp(None))
        return page
    whole = _narrowed(data, encoding, asked.name)
    page = _page(asked, lambda at, size: whole[at : at + size], whole, encoding, context.token)
    context.files.seen(target, file.stamp(data))
    return page


def _narrowed(data: bytes, encoding: str, name: str) -> bytes:
    """Wide characters as UTF-8, so that lines end in one byte; all else as it is."""
    if encoding == "utf-8-sig":
        return data[len(codecs.BOM_UTF8) :]
    if not encoding.startswith(_WIDE):
        return data
    try:
        return data.decode(encoding).encode()
    except UnicodeError as error:
        raise ToolFailedError(f"{name} begins like {encoding} but is damaged: {error}") from error


def _page(
    asked: _Asked, read: _Read, whole: bytes | None, encoding: str, token: CancellationToken
) -> list[Part]:
    """The lines that were asked for, and a note on them."""
    total = None if whole is None else whole.count(b"\n") + (whole[-1:] not in (b"", b"\n"))
    if total == 0 and asked.start == 1:
        return [Text("[empty file]")]
    at = _offset(asked, read, total, token)
    block = read(at, SHOWN + 1)
    if not block:
        raise _past_end(asked, total)
    raw, rest = _cut(block, asked)
    shown, encoding = _decoded(raw, encoding, asked.name, cut=rest == "line")
    notes = [_extent(asked, len(raw), total, at_end=not rest)]
    if rest == "line":
        notes.append(f"line {asked.start} is longer than can be shown and was cut")
    if encoding != "utf-8":
        notes.append(f"encoding {encoding}")
    if any(line.endswith(b"\r") for line in raw):
        notes.append("lines end in CRLF")
    return [Text(_joined(shown, asked)), Text(f"[{'; '.join(notes)}]")]


def _offset(asked: _Asked, read: _Read, total: int | None, token: CancellationToken) -> int:
    """Where the first line begins."""
    at, skip = 0, asked.start - 1
    while skip:
        piece = read(at, _PIECE)
        if not piece:
            raise _past_end(asked, total)
        token.raise_if_cancelled()
        found = piece.count(b"\n")
        if found >= skip:
            position = 0
            for _ in range(skip):
                position = piece.index(b"\n", position) + 1
            return at + position
        skip -= found
        at += len(piece)
        if at >= SCANNED:
            raise ToolFailedError(
                f"line {asked.start} of {asked.name} lies beyond its first {sized(SCANNED)}, as "
                "far as lines are counted; use search_files, or a program that can seek"
            )
    return at


def _past_end(asked: _Asked, total: int | None) -> ToolFailedError:
    has = "fewer" if total is None else f"only {total}"
    return ToolFailedError(f"start={asked.start} is past the end: {asked.name} has {has} lines")


def _cut(block: bytes, asked: _Asked) -> tuple[list[bytes], str]:
    """Whole lines, as many as are wanted and fit; then what was left: lines, one line, nothing."""
    more = len(block) > SHOWN
    raw = block[:SHOWN].split(b"\n")
    if more and len(raw) == 1:
        return raw, "line"
    if more or raw[-1] == b"":
        raw.pop()
    fit = len(raw)
    if asked.numbered:
        used = 0
        for index, line in enumerate(raw):
            used += len(line) + 1 + _NUMBER
            if used > SHOWN:
                fit = max(index, 1)
                break
    kept = raw[: min(fit, asked.lines)]
    return kept, "lines" if more or len(kept) < len(raw) else ""


def _decoded(raw: list[bytes], encoding: str, name: str, *, cut: bool) -> tuple[list[str], str]:
    data = b"\n".join(raw)
    if 0 in data and not encoding.startswith(_WIDE):
        raise ToolFailedError(f"{name} holds binary data here; use a program that knows the format")
    if encoding == "latin-1" or not content.is_utf8(data, cut=cut):
        return data.decode("latin-1").split("\n"), "latin-1"
    # Only the end of a line that was cut can be half a character.
    return data.decode(errors="ignore").split("\n"), encoding


def _extent(asked: _Asked, count: int, total: int | None, *, at_end: bool) -> str:
    last = asked.start + count - 1
    if at_end:
        total = last
    if asked.start == 1 and last == total:
        return f"{total} lines" if total != 1 else "1 line"
    of = "many" if total is None else str(total)
    return f"lines {asked.start}-{last} of {of}" + (
        "" if last == total else f"; read on with start={last + 1}"
    )


def _joined(lines: list[str], asked: _Asked) -> str:
    plain = (line.removesuffix("\r") for line in lines)
    if asked.numbered:
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(plain, asked.start))
    return "\n".join(plain)


def _missing(files: Files, target: Path, name: str) -> str:
    """What to say of a file that is not there: which part of its path is, and what is similar."""
    folder = target.parent
    while not folder.is_dir():
        if folder.exists():
            return f"{name} does not exist: {files.name(folder)} is a file, not a folder"
        target, folder = folder, folder.parent
    said = f"{name} does not exist"
    if files.name(target) != name:
        said += f", and neither does the folder {files.name(target)}"
    try:
        with safe_open.open_folder(folder, listed=True) as fd:
            names = os.listdir(fd)[:_NEIGHBOURS]  # noqa: PTH208 (a descriptor, not a path)
    except OSError:
        return said
    near = difflib.get_close_matches(target.name, names, n=3, cutoff=0.6)
    shown = [files.name(folder / one) for one in near if folder / one not in files.hidden]
    return said + (f"; did you mean {' or '.join(shown)}?" if shown else "; see list_files")
