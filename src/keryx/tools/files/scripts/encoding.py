"""Text that becomes the same bytes again. Pure; it knows nothing of paths, disks and tools."""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple

from keryx.tools.files import content

MARK: Final = "\ufeff"
"""A byte order mark, as the character that it is."""
_BIG: Final = (codecs.BOM_UTF32_BE, codecs.BOM_UTF16_BE)
_WIDE: Final = ("utf-16", "utf-32")
MARKED: Final = "with a mark"
_MARKED: Final = {
    f"{name}-{end} {MARKED}": f"{name}-{end}" for name in _WIDE for end in ("le", "be")
}


class Exact(NamedTuple):
    """`text.encode(encoding)` is what the file holds, marks and line endings included."""

    text: str
    encoding: str

    @property
    def form(self) -> str:
        """The encoding, and whether a mark tells of it; see `encoded`."""
        is_wide = self.encoding.startswith(_WIDE)
        return (
            f"{self.encoding} {MARKED}" if is_wide and self.text.startswith(MARK) else self.encoding
        )


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


def form_of(data: bytes | None) -> str | None:
    """The form of a file, by its content; None if there is none, or no text."""
    found = None if data is None else exact(data)
    return None if found is None else found.form


def encoded(text: str, former: str | None) -> tuple[bytes, str]:
    """The text in the encoding of what it replaces, and which that is.

    Text without the mark of the wide encoding that a file had is another text, and becomes UTF-8.
    `UnicodeEncodeError` if there are characters that the encoding lacks.
    """
    encoding = former or "utf-8"
    if encoding in _MARKED:
        encoding = _MARKED[encoding] if text.startswith(MARK) else "utf-8"
    return text.encode(encoding), encoding


def _likely(data: bytes) -> str | None:
    encoding = content.encoding_of(data)
    if encoding == "utf-8-sig":
        return "utf-8"
    if encoding in _WIDE:
        # By its full name: the short one would take the mark away.
        return f"{encoding}-{'be' if data.startswith(_BIG) else 'le'}"
    return encoding
