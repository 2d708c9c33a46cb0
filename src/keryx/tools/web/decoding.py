"""From the body of an answer to characters: decompression up to a limit, and encodings.

A body is never decompressed to more bytes than the caller has room for. Text is read whatever the
page and its server say about its encoding.
"""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Final

from keryx.errors import ToolFailedError

# A file of gzip may consist of many parts, each of which costs memory and time to begin.
MOST_MEMBERS: Final = 100
_GZIP_WINDOW: Final = zlib.MAX_WBITS | 16
_GZIP_MAGIC: Final = b"\x1f\x8b"
_META: Final = re.compile(
    rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{1,40})""", re.IGNORECASE
)
_XML: Final = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([a-zA-Z0-9_:.-]{1,40})""")
_HEAD: Final = 4096
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Encodings of the web. Python knows more, and some of them (`punycode`, `unicode_escape`) are slow
# or turn text into something else.
_ALLOWED: Final = re.compile(
    r"utf-(8|16|16-le|16-be|32)|iso8859-\d+|cp(125\d|866|874|932|949|950)|koi8-[rtu]|mac-\w+|"
    r"gb2312|gbk|gb18030|big5|big5hkscs|shift_jis|euc_(jp|kr)|iso2022_(jp|kr)|hz|tis-620|ascii"
)
# Pages that declare the left one mean the right one; so the standard of HTML says.
_MEANT: Final = {"ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}


def decoder_for(content_encoding: str) -> Inflater | None:
    """Return the decoder for this header; None if the body is not compressed."""
    encoding = content_encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip"):
        return Inflater(_GZIP_WINDOW)
    if encoding == "deflate":
        return Inflater(zlib.MAX_WBITS)
    raise ToolFailedError(
        f"the page is compressed with {encoding:.40}, which cannot be read; try another page"
    )


class Inflater:
    """Decompresses gzip or deflate."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._member = zlib.decompressobj(window)
        self._members = 1
        self._has_output = False

    def feed(self, data: bytes, room: int) -> bytes:
        """Return what these bytes decompress to, at most `room` bytes of it."""
        output = bytearray()
        while data and len(output) < room:
            output += self._decompress(data, room - len(output))
            self._has_output = self._has_output or bool(output)
            if not self._member.eof:
                data = self._member.unconsumed_tail
                continue
            data = self._member.unused_data
            if data and not self._begin_member(data):
                break
        return bytes(output)

    def _decompress(self, data: bytes, room: int) -> bytes:
        try:
            return self._member.decompress(data, room)
        except zlib.error as error:
            if self._window == zlib.MAX_WBITS and not self._has_output:
                # Many servers send bare deflate, without the header that the standard demands.
                self._window = -zlib.MAX_WBITS
                self._member = zlib.decompressobj(self._window)
                return self._decompress(data, room)
            raise ToolFailedError(
                "the compressed page is damaged; try again later, or another page"
            ) from error

    def _begin_member(self, data: bytes) -> bool:
        """Begin the next part of a gzip file; return False if only padding follows."""
        self._members += 1
        if self._window != _GZIP_WINDOW or not _GZIP_MAGIC.startswith(data[:2]):
            return False
        if self._members > MOST_MEMBERS:
            raise ToolFailedError(
                f"the compressed page has more than {MOST_MEMBERS} parts; try another page"
            )
        self._member = zlib.decompressobj(self._window)
        return True


def decode(data: bytes, declared: str | None, *, is_html: bool) -> str:
    """Return the text: by its byte order mark, the header, the page itself, or by trying."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, errors="replace")
    candidates = [_codec(declared), _codec(_in_page(data) if is_html else None), "utf-8"]
    for name in dict.fromkeys(name for name in candidates if name is not None):
        try:
            # A page that was cut at the limit may end within a character.
            return codecs.getincrementaldecoder(name)("strict").decode(data, final=False)
        except UnicodeDecodeError:
            continue
    declared_codec = next((name for name in candidates if name is not None), "utf-8")
    if declared_codec == "utf-8" and not _is_mostly_utf8(data):
        declared_codec = "cp1252"
    return data.decode(declared_codec, errors="replace")


def _is_mostly_utf8(data: bytes) -> bool:
    """Return whether few characters are wrong: then one slip is no reason for another encoding."""
    text = data[:200_000].decode(errors="replace")
    others = sum(1 for character in text if character > "\x7f")
    return text.count("\ufffd") * 10 <= others


def _in_page(data: bytes) -> str | None:
    head = data[:_HEAD]
    match = _META.search(head) or _XML.search(head)
    return None if match is None else match[1].decode("ascii")


def _codec(name: str | None) -> str | None:
    """Return Python's name of the encoding; None if it is not one of the web's."""
    if name is None:
        return None
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    return _MEANT.get(codec, codec) if _ALLOWED.fullmatch(codec) else None
