"""Decodes text so that it can be encoded to the same bytes. Pure: no paths, disks or tools."""

from __future__ import annotations

import codecs
from typing import Final, NamedTuple

from keryx.tools.files import content

MARK: Final = "\ufeff"
"""The byte order mark, as a character."""
_BIG_ENDIAN_MARKS: Final = (codecs.BOM_UTF32_BE, codecs.BOM_UTF16_BE)
_WIDE: Final = ("utf-16", "utf-32")
MARKED_SUFFIX: Final = "with a mark"
_MARKED_FORMS: Final = {
    f"{name}-{end} {MARKED_SUFFIX}": f"{name}-{end}" for name in _WIDE for end in ("le", "be")
}


class ExactText(NamedTuple):
    """`text.encode(encoding)` gives the bytes of the file, with marks and line endings."""

    text: str
    encoding: str

    @property
    def form(self) -> str:
        """The encoding, and whether the text has a byte order mark; see `encoded`."""
        is_wide = self.encoding.startswith(_WIDE)
        return (
            f"{self.encoding} {MARKED_SUFFIX}"
            if is_wide and self.text.startswith(MARK)
            else self.encoding
        )


def decode_exact(data: bytes) -> ExactText | None:
    """Return a whole file as text; None if it is not text."""
    if 0 not in data:
        try:
            return ExactText(data.decode(), "utf-8")
        except UnicodeDecodeError:
            pass
    # Data that looks like UTF-16 may also be UTF-8 with NULs in it.
    for encoding in (_guess(data), "utf-8"):
        try:
            if encoding is not None:
                return ExactText(data.decode(encoding), encoding)
        except UnicodeDecodeError:
            continue
    return None


def form_of(data: bytes | None) -> str | None:
    """Return the form of a file's content; None if there is no file, or it is not text."""
    text = None if data is None else decode_exact(data)
    return None if text is None else text.form


def encoded(text: str, form: str | None) -> tuple[bytes, str]:
    """Return the text in the encoding of the file that it replaces, and the name of the encoding.

    If the file had a byte order mark and the text has none, the text becomes UTF-8.
    Raise `UnicodeEncodeError` if the encoding lacks a character.
    """
    encoding = form or "utf-8"
    if encoding in _MARKED_FORMS:
        encoding = _MARKED_FORMS[encoding] if text.startswith(MARK) else "utf-8"
    return text.encode(encoding), encoding


def _guess(data: bytes) -> str | None:
    encoding = content.encoding_of(data)
    if encoding == "utf-8-sig":
        return "utf-8"
    if encoding in _WIDE:
        # The full name of the encoding: the short one would remove the mark.
        return f"{encoding}-{'be' if data.startswith(_BIG_ENDIAN_MARKS) else 'le'}"
    return encoding
