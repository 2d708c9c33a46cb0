"""Removes the values of secrets from all that is logged, shown or sent to a model.

A `Redactor` knows the values. Texts pass through it as a whole, output in chunks. A value that is
split over two chunks is found too: the end of a chunk is held back while it may begin a value.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from typing import Final

import msgspec

from keryx.messages import Json, Part, Text

# Bytes. A shorter value appears by chance, and removing it would damage ordinary text.
SHORTEST: Final = 8


class Redactor:
    """Removes the values of named secrets from text and bytes."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        forms: dict[bytes, bytes] = {}
        for name, value in (secrets or {}).items():
            for form in _forms(value):
                forms.setdefault(form, f"[redacted: {name}]".encode())
        self._marks = forms
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, longest_first))) if forms else None
        self._beginnings = {form[:end] for form in forms for end in range(1, len(form))}
        self._longest = max((len(form) for form in forms), default=0)

    def __bool__(self) -> bool:
        return self._pattern is not None

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        if self._pattern is None:
            return text
        data = text.encode(errors="surrogatepass")
        if self._pattern.search(data) is None:
            return text
        return self.data(data).decode(errors="surrogatepass")

    def data(self, data: bytes) -> bytes:
        if self._pattern is None:
            return data
        return self._pattern.sub(lambda match: self._marks[match.group()], data)

    def content(self, content: tuple[Part, ...]) -> tuple[Part, ...]:
        """Return the parts of a result without secrets."""
        if self._pattern is None:
            return content
        return tuple(self._part(part) for part in content)

    def _part(self, part: Part) -> Part:
        match part:
            case Text():
                return Text(self.text(part.text))
            case Json():
                return Json(msgspec.Raw(self.data(bytes(part.value))))
            case _:
                return part

    def hold_back(self, data: bytes) -> int:
        """Return how many bytes at the end may be the beginning of a value."""
        for length in range(min(self._longest - 1, len(data)), 0, -1):
            if data[-length:] in self._beginnings:
                return length
        return 0

    def value_end(self, data: bytes, at: int) -> int:
        """Return where the value ends that covers this offset; the offset itself if none does."""
        if self._pattern is not None:
            for match in self._pattern.finditer(data):
                if match.start() >= at:
                    break
                if match.end() > at:
                    return match.end()
        return at


class StreamRedactor:
    """Redacts one stream of bytes, chunk by chunk."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Add a chunk; return what can be shown now."""
        raw = self._held + data
        cut = len(raw) - self._redactor.hold_back(raw)
        end = self._redactor.value_end(raw, cut)
        self._held = raw[cut:]
        if end == cut:
            return self._redactor.data(raw[:cut])
        # The held end is inside of a value that is complete: finish that value first.
        self._held = b""
        return self._redactor.data(raw[:end]) + self.feed(raw[end:])

    def end(self) -> bytes:
        """Return what was held back, at the end of the stream."""
        held, self._held = self._redactor.data(self._held), b""
        # The stream may end inside of a value; a few bytes of it reveal nothing.
        return held if len(held) < SHORTEST or held.startswith(b"[redacted") else b"[redacted]"


def _forms(value: str) -> set[bytes]:
    """Return the forms in which a value may be printed: as it is, escaped, line by line."""
    texts = {value, value.strip(), urllib.parse.quote(value, safe="")}
    texts.add(msgspec.json.encode(value).decode()[1:-1])
    texts.update(line.strip() for line in value.splitlines())
    return {text.encode() for text in texts if len(text) >= SHORTEST}


NO_SECRETS: Final = Redactor()
