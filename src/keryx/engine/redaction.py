"""Values of secrets, taken out of whatever is logged, shown or sent to a model.

A `Redactor` knows the values; text goes through it whole, output as it streams. A value that is
split over chunks is found too: the end of a chunk is held back while it may begin one.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from typing import Final

import msgspec

from keryx.messages import Json, Part, Text

# A shorter value appears by chance, and taking it out would tear ordinary text apart.
SHORTEST: Final = 8


class Redactor:
    """Takes the values of named secrets out of text and bytes."""

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
        """The text without them."""
        if self._pattern is None:
            return text
        data = text.encode(errors="surrogatepass")
        if self._pattern.search(data) is None:
            return text
        return self.data(data).decode(errors="surrogatepass")

    def data(self, data: bytes) -> bytes:
        if self._pattern is None:
            return data
        return self._pattern.sub(lambda found: self._marks[found.group()], data)

    def content(self, content: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts of a result without them."""
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
        """How many bytes at the end may be the beginning of a value."""
        for length in range(min(self._longest - 1, len(data)), 0, -1):
            if data[-length:] in self._beginnings:
                return length
        return 0

    def span(self, data: bytes, at: int) -> int:
        """Where the value ends that this place is in the middle of; the place itself if none."""
        if self._pattern is not None:
            for found in self._pattern.finditer(data):
                if found.start() >= at:
                    break
                if found.end() > at:
                    return found.end()
        return at


class StreamRedactor:
    """One stream of bytes that goes through a redactor as it comes."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be shown now."""
        raw = self._held + data
        cut = len(raw) - self._redactor.hold_back(raw)
        end = self._redactor.span(raw, cut)
        self._held = raw[cut:]
        if end == cut:
            return self._redactor.data(raw[:cut])
        # The end of one value looks like the beginning of another: that one is over first.
        self._held = b""
        return self._redactor.data(raw[:end]) + self.feed(raw[end:])

    def end(self) -> bytes:
        """What was held back, once nothing more comes."""
        held, self._held = self._redactor.data(self._held), b""
        # A value that ended in the middle; a few letters of it tell nothing.
        return held if len(held) < SHORTEST or held.startswith(b"[redacted") else b"[redacted]"


def _forms(value: str) -> set[bytes]:
    """A value as it may be printed: as it is, escaped, in lines."""
    texts = {value, value.strip(), urllib.parse.quote(value, safe="")}
    texts.add(msgspec.json.encode(value).decode()[1:-1])
    texts.update(line.strip() for line in value.splitlines())
    return {text.encode() for text in texts if len(text) >= SHORTEST}


NO_SECRETS: Final = Redactor()
