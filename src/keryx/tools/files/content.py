"""From the bytes of a file to text and back: encodings, line endings, and what is no text at all.

Pure; it knows nothing of paths, disks and tools.
"""

from __future__ import annotations

import codecs
from collections import Counter
from typing import Final, Literal

import msgspec

SAMPLE: Final = 64 * 1024
"""How many bytes at the beginning tell what a file is."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE_BIG: Final = {codecs.BOM_UTF32_BE: "utf-32-be", codecs.BOM_UTF16_BE: "utf-16-be"}
_IMAGES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_KNOWN: Final = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or an office document)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"OggS", "Ogg media"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
)
# Controls that text may hold: bell to carriage return, and escape, which colours a log.
_CONTROLS: Final = bytes({*range(32)} - {*range(7, 14), 27})
# Text in some old encoding has hardly any; compressed data is an eighth of them.
_MOST_CONTROLS: Final = 0.02
# Half of the bytes of Latin text in UTF-16 are zero, all on the same side.
_WIDE: Final = 0.7

Ending = Literal["\n", "\r\n"]


def image_type(head: bytes) -> str | None:
    """The media type, if it is an image that models can see."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if head.startswith(magic)), None)


def binary_type(head: bytes) -> str:
    """What it is, for a person, given that it is no text."""
    return next((kind for magic, kind in _KNOWN if head.startswith(magic)), "binary data")


def encoding_of(sample: bytes, *, cut: bool = False) -> str | None:
    """The encoding of a text, by its beginning; None if it is no text. `cut`: more follows."""
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if 0 in sample:
        return _unmarked_wide(sample)
    if is_utf8(sample, cut=cut):
        return "utf-8"
    return "latin-1" if _is_clean(sample) else None


def is_utf8(data: bytes, *, cut: bool = False) -> bool:
    """Whether it is; if it was cut, the last character may be a part of one."""
    try:
        codecs.utf_8_decode(data, "strict", not cut)
    except UnicodeDecodeError:
        return False
    return True


def _is_clean(data: bytes) -> bool:
    """Whether there are as few controls as in a text."""
    return len(data) - len(data.translate(None, _CONTROLS)) <= len(data) * _MOST_CONTROLS


def _unmarked_wide(sample: bytes) -> str | None:
    even, odd = sample[::2], sample[1::2]
    if not odd:
        return None
    for zeros, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros.count(0) >= _WIDE * len(zeros) and _is_clean(others):
            return name
    return None


class Content(msgspec.Struct, frozen=True):
    """A text file as lines, with all that is needed to write it back as it was."""

    encoding: str
    mark: bytes
    """The byte order mark that it begins with, if any."""
    lines: tuple[str, ...]
    """Without their `\\n`, but with a `\\r` before it."""
    ends_with_newline: bool

    @property
    def ending(self) -> Ending:
        """How most of its lines end."""
        ended = self.lines if self.ends_with_newline else self.lines[:-1]
        returns = sum(line.endswith("\r") for line in ended)
        return "\r\n" if returns * 2 > len(ended) else "\n"

    def encoded(self, lines: list[str], *, ends_with_newline: bool) -> bytes:
        """Other lines in the same form; `UnicodeEncodeError` if they do not fit it."""
        text = "\n".join(lines) + ("\n" if ends_with_newline and lines else "")
        return self.mark + text.encode(self.encoding)


def decode(data: bytes) -> Content | None:
    """A whole file as text; None if it is no text."""
    name = encoding_of(data)
    if name is None:
        return None
    mark = b""
    for known, marked in _MARKS:
        if name == marked and data.startswith(known):
            mark = known
            name = "utf-8" if name == "utf-8-sig" else _WIDE_BIG.get(known, f"{name}-le")
            break
    try:
        text = data[len(mark) :].decode(name)
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    ends = lines[-1] == ""
    if ends:
        lines.pop()
    return Content(name, mark, tuple(lines), ends)


def line_counts(before: str, after: str) -> tuple[int, int]:
    """How many lines came and went, whatever their order."""
    old, new = Counter(before.split("\n")), Counter(after.split("\n"))
    return (new - old).total(), (old - new).total()


def sized(count: int) -> str:
    """A number of bytes as people read it."""
    if count < 1024:  # noqa: PLR2004 (the unit itself)
        return f"{count} bytes"
    size = float(count)
    for unit in ("KB", "MB", "GB", "TB"):
        size /= 1024
        if size < 1024 or unit == "TB":  # noqa: PLR2004 (the unit itself)
            break
    return f"{size:.1f} {unit}"
