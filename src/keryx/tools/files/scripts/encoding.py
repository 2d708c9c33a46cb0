"""Text that becomes the same bytes again. Pure; it knows nothing of paths, disks and tools."""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple

from keryx.tools.files import content

MARK: Final = "\ufeff"
"""A byte order mark, as the character that it is."""
_BIG: Final = (codecs.BOM_UTF32_BE, codecs.BOM_UTF16_BE)
_WIDE: Final = ("utf-16", "utf-32")


class Exact(NamedTuple):
    """`text.encode(encoding)` is what the file holds, marks and line endings included."""

    text: str
    encoding: str


def exact(data: bytes) -> Exact | None:
    """A whole file as text; None if it is none."""
    if 0 not in data:
        try:
            return Exact(data.decode(), "utf-8")
        except UnicodeDecodeError:
            pass
    # What looks like wide characters may also be UTF-8 with NULs in it.
    for encoding in (_likely(data), "utf-8"):
        try:
            if encoding is not None:
                return Exact(data.decode(encoding), encoding)
        except UnicodeDecodeError:
            continue
    return None


def encoded(text: str, before: bytes | None) -> tuple[bytes, str]:
    """The text in the encoding of what it replaces; UTF-8 if that is none, or another text.

    `UnicodeEncodeError` if it holds characters that the encoding lacks.
    """
    former = None if before is None else exact(before)
    if former is None or (former.text.startswith(MARK) and not text.startswith(MARK)):
        return text.encode(), "utf-8"
    return text.encode(former.encoding), former.encoding


def _likely(data: bytes) -> str | None:
    encoding = content.encoding_of(data)
    if encoding == "utf-8-sig":
        return "utf-8"
    if encoding in _WIDE:
        # By its full name: the short one would take the mark away.
        return f"{encoding}-{'be' if data.startswith(_BIG) else 'le'}"
    return encoding
