"""Reasoning that some servers of Chat Completions need back in every later request.

Such a server refuses a history with calls whose reasoning is missing, or reasons worse.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from keryx.ports.model import OpaquePiece

DETAILS: Final = "reasoning_details"
_JOINED: Final = ("text", "summary", "data")
"""The fields of an entry that arrive in parts."""


class ReturnedReasoning:
    """Collects one field of the reply: `reasoning_content` or `reasoning_details`."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._text: list[str] = []
        self._details: list[dict[str, Any]] = []

    def add(self, text: str | None, details: list[dict[str, Any]] | None) -> None:
        if self._field != DETAILS:
            if text:
                self._text.append(text)
            return
        for detail in details or ():
            last = self._details[-1] if self._details else {}
            if (last.get("type"), last.get("index")) == (detail.get("type"), detail.get("index")):
                _extend(last, detail)
            else:
                self._details.append(dict(detail))

    def pieces(self, signer: str) -> list[OpaquePiece]:
        """Return the field as a piece, once; nothing if the reply has no reasoning."""
        value = self._details if self._field == DETAILS else "".join(self._text)
        self._text, self._details = [], []
        return [OpaquePiece(signer, msgspec.json.encode({self._field: value}))] if value else []


def _extend(entry: dict[str, Any], part: dict[str, Any]) -> None:
    for name, value in part.items():
        if name in _JOINED and isinstance(value, str) and isinstance(entry.get(name), str):
            entry[name] += value
        elif value is not None:
            entry[name] = value
