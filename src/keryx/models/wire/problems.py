"""The error object of a server, in any of the forms that servers use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

SERVER_FAULT: Final = 500
"""The least status that says that the server failed, and not the request."""


class Problem(msgspec.Struct, frozen=True):
    """The error object of a server."""

    message: str = ""
    words: frozenset[str] = frozenset()
    status: int | None = None


def problem_in(body: bytes) -> Problem | None:
    """Return the error object of a body, in any of the usual forms; None if there is none."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if isinstance(value, list) and value:
        value = cast("list[Any]", value)[0]  # Google's servers wrap the object in a list
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    inner: Any = fields.get("error", fields.get("detail", fields.get("message")))
    if inner is None:
        return None
    if not isinstance(inner, dict):
        return Problem(inner if isinstance(inner, str) else msgspec.json.encode(inner).decode())
    return problem_of(cast("dict[str, Any]", inner))


def problem_of(fields: Mapping[str, Any]) -> Problem:
    """Return an error object that is decoded already."""
    message, code = fields.get("message"), fields.get("code")
    texts = (code, fields.get("type"), fields.get("status"), *_reasons(fields.get("details")))
    words = {word.lower() for word in texts if isinstance(word, str)}
    digits = next((word for word in words if word.isdecimal() and len(word) == len("500")), None)
    status = code if isinstance(code, int) else int(digits) if digits else None
    return Problem(message if isinstance(message, str) else "", frozenset(words), status)


def _reasons(details: object) -> list[object]:
    """Return the reasons that an error of Google's APIs lists."""
    if not isinstance(details, list):
        return []
    entries = cast("list[object]", details)
    return [
        cast("dict[str, object]", entry).get("reason")
        for entry in entries
        if isinstance(entry, dict)
    ]
