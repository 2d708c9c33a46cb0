"""Converts the bytes of a file to text and back: encodings, line endings, binary data.

Pure functions; they know nothing of paths, disks and tools.
"""

from __future__ import annotations

import codecs
from collections import Counter
from typing import Final, Literal

import msgspec

SAMPLE: Final = 64 * 1024
"""How many bytes at the beginning are enough to recognize the type of a file."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, because it begins with the mark of UTF-16
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
_BINARY_TYPES: Final = (
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
# Text may have the controls from bell to carriage return, and escape, which colours logs.
_CONTROLS: Final = bytes({*range(32)} - {*range(7, 14), 27})
# Text in an old encoding has hardly any controls; in compressed data they are an eighth.
_MAX_CONTROLS: Final = 0.02
# Half of the bytes of Latin text in UTF-16 are zero, all on the same side.
_MIN_ZEROS: Final = 0.7

Ending = Literal["\n", "\r\n"]


def image_type(head: bytes) -> str | None:
    """Return the media type if the file is an image that models can see, else None."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if head.startswith(magic)), None)


def binary_type(head: bytes) -> str:
    """Return the type of a file that is not text, in words for a person."""
    return next((kind for magic, kind in _BINARY_TYPES if head.startswith(magic)), "binary data")


def encoding_of(sample: bytes, *, cut: bool = False) -> str | None:
    """Return the encoding of a text from its beginning; None if it is not text.

    `cut`: the sample is not the whole file.
    """
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if 0 in sample:
        return _wide_without_mark(sample)
    if is_utf8(sample, cut=cut):
        return "utf-8"
    return "latin-1" if _is_clean(sample) else None


def is_utf8(data: bytes, *, cut: bool = False) -> bool:
    """Return whether the data is UTF-8; with `cut` the last character may be incomplete."""
    try:
        codecs.utf_8_decode(data, "strict", not cut)
    except UnicodeDecodeError:
        return False
    return True


def _is_clean(data: bytes) -> bool:
    """Return whether the data has as few control characters as a text."""
    return len(data) - len(data.translate(None, _CONTROLS)) <= len(data) * _MAX_CONTROLS


def _wide_without_mark(sample: bytes) -> str | None:
    even, odd = sample[::2], sample[1::2]
    if not odd:
        return None
    for zeros, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros.count(0) >= _MIN_ZEROS * len(zeros) and _is_clean(others):
            return name
    return None


class Content(msgspec.Struct, frozen=True):
    """A text file as lines, with all that is needed to write it back unchanged."""

    encoding: str
    mark: bytes
    """The byte order mark at the beginning, if any."""
    lines: tuple[str, ...]
    """The lines without their `\\n`; a `\\r` before it stays."""
    ends_with_newline: bool

    @property
    def ending(self) -> Ending:
        """The line ending of most lines."""
        ended = self.lines if self.ends_with_newline else self.lines[:-1]
        returns = sum(line.endswith("\r") for line in ended)
        return "\r\n" if returns * 2 > len(ended) else "\n"

    def encoded(self, lines: list[str], *, ends_with_newline: bool) -> bytes:
        """Encode other lines in the same form; `UnicodeEncodeError` if a character is lacking."""
        text = "\n".join(lines) + ("\n" if ends_with_newline and lines else "")
        return self.mark + text.encode(self.encoding)


def decode(data: bytes) -> Content | None:
    """Return a whole file as text; None if it is not text."""
    encoding_name = encoding_of(data)
    if encoding_name is None:
        return None
    mark = b""
    for bom, bom_encoding in _MARKS:
        if encoding_name == bom_encoding and data.startswith(bom):
            mark = bom
            encoding_name = (
                "utf-8"
                if encoding_name == "utf-8-sig"
                else _WIDE_BIG.get(bom, f"{encoding_name}-le")
            )
            break
    try:
        text = data[len(mark) :].decode(encoding_name)
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    ends_with_newline = lines[-1] == ""
    if ends_with_newline:
        lines.pop()
    return Content(encoding_name, mark, tuple(lines), ends_with_newline)


def line_counts(before: str, after: str) -> tuple[int, int]:
    """Return how many lines were added and removed, whatever their order."""
    old, new = Counter(before.split("\n")), Counter(after.split("\n"))
    return (new - old).total(), (old - new).total()


def sized(count: int) -> str:
    """Return a number of bytes in words for people, such as 1.5 MB."""
    if count < 1024:  # noqa: PLR2004 (the unit itself)
        return f"{count} bytes"
    size = float(count)
    for unit in ("KB", "MB", "GB", "TB"):
        size /= 1024
        if size < 1024 or unit == "TB":  # noqa: PLR2004 (the unit itself)
            break
    return f"{size:.1f} {unit}"
