"""Puts marks in place of the secrets of a document, and the secrets back in place of the marks.

A mark says nothing of its secret. It lets a person change what stands beside a secret, and shows
whether a secret was changed by somebody else, without showing it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

from keryx.config.editing.errors import CannotEditError
from keryx.config.editing.statements import Path
from keryx.config.secret_values import SECRET_HEADERS, SECRET_NAME

MARK: Final = "$secret"
"""The one key of an object that stands for a secret."""
_REFERENCE: Final = re.compile(r"(?:Bearer )?\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\}")
"""A text that only names a variable."""
# In these tables people choose the names, and no value is a secret.
_OPEN: Final = frozenset(("personalities", "toolsets", "models"))
_PROGRAM_VARIABLES: Final = frozenset(("env", "headers"))


class SecretMarks:
    """Marks that only this object can turn back."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def hidden(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document with a mark in place of each secret."""
        return cast("dict[str, Any]", self._hidden(document, ()))

    def revealed(self, value: Any, document: Mapping[str, Any]) -> Any:
        """Return the value with the secrets of this document in place of their marks."""
        stored: dict[str, str] = {}
        self._hidden(document, (), stored)
        return _revealed(value, stored)

    def _hidden(self, value: Any, path: Path, stored: dict[str, str] | None = None) -> Any:
        if isinstance(value, Mapping):
            items = cast("Mapping[str, Any]", value).items()
            return {name: self._hidden(item, (*path, name), stored) for name, item in items}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            previous = ("", *items)
            return [
                self._hidden(item, (*path, _option(previous[number])), stored)
                for number, item in enumerate(items)
            ]
        if not isinstance(value, str) or not _is_secret(path, value):
            return value
        digest = hmac.new(self._key, value.encode(), hashlib.sha256).hexdigest()[:32]
        if stored is not None:
            stored[digest] = value
        return {MARK: digest}


def _option(argument: Any) -> str:
    """Return the name of an option (`--api-key`) whose value is the next argument."""
    return argument.lstrip("-").replace("-", "_") if isinstance(argument, str) else ""


def _is_secret(path: Path, value: str) -> bool:
    if not value or _REFERENCE.fullmatch(value) or any(part in _OPEN for part in path[:-1]):
        return False
    name = path[-1]
    if name.endswith("_env"):
        return False
    return (
        bool(SECRET_NAME.search(name))
        or name.lower() in SECRET_HEADERS
        or (len(path) > 1 and path[0] == "mcp" and path[-2] in _PROGRAM_VARIABLES)
        or _has_password(value)
        or _is_secret_option(value)
    )


def _is_secret_option(value: str) -> bool:
    name, equals, rest = value.partition("=")
    return bool(equals and rest and name.startswith("-") and SECRET_NAME.search(_option(name)))


def _has_password(value: str) -> bool:
    if "://" not in value:
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    names = (pair.partition("=")[0] for pair in parts.query.split("&"))
    return bool(parts.password) or any(SECRET_NAME.search(name) for name in names)


def _revealed(value: Any, stored: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_revealed(item, stored) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    items = cast("dict[str, Any]", value)
    if items.keys() != {MARK}:
        return {name: _revealed(item, stored) for name, item in items.items()}
    if items[MARK] not in stored:
        raise CannotEditError(
            "a secret that was to stay is not in config.toml any more; enter it again"
        )
    return stored[items[MARK]]
