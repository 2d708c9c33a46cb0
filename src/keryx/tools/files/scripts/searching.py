"""`search_files` for a script: every match as values with its whole line, from ripgrep's JSON."""

from __future__ import annotations

import base64
import enum
from collections.abc import Callable
from typing import Any, Final

import msgspec

from keryx.decoding import json_decoder
from keryx.ports.tool import Exact
from keryx.tools.exact_bytes import in_base64, text_or_bytes
from keryx.tools.ripgrep_output import RipgrepOutput

MAX_OUTPUT: Final = 8 * 1024 * 1024
"""The most bytes of ripgrep's output that are collected."""
_MATCH: Final = b'{"type":"match"'  # in texts quotes are escaped, so no text has this


class Default(enum.IntEnum):
    """Default values that differ from the same number when a caller passes it."""

    LIMIT = 200
    """The most matches for a model. A script that passes no limit gets all matches."""


class _Text(msgspec.Struct):
    """Text, or base64 if it is not UTF-8."""

    text: str | None = None
    bytes: str = ""

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.bytes) if self.text is None else self.text.encode()


class _Data(msgspec.Struct):
    path: _Text | None = None
    lines: _Text | None = None
    line_number: int | None = None
    binary_offset: int | None = None


class _Message(msgspec.Struct):
    type: str
    data: _Data


_decode: Final = json_decoder(_Message).decode

IsAllowed = Callable[[bytes], bool]
Name = Callable[[bytes], str]


class MatchValues(RipgrepOutput):
    """The matches as values for a script."""

    def __init__(self, limit: int, *, names: bool) -> None:
        self._limit = None if isinstance(limit, Default) else limit
        super().__init__(b"\0" if names else _MATCH, self._limit, MAX_OUTPUT)
        self._names = names
        self._is_allowed: IsAllowed = bool
        self.options = () if names else ("--json",)

    def drop_forbidden(self, is_allowed: IsAllowed) -> None:
        """Drop files that may not be shown."""
        self._is_allowed = is_allowed

    def result(self, name: Name, pattern: str) -> Exact:
        """Return all matches as values."""
        del pattern
        errors = self.errors()
        value = self._paths(name) if self._names else self._lines(name)
        value["truncated"] = self.full
        if self.full:
            value["hint"] = "narrow the pattern, the path or the glob, or raise the limit"
        if errors:
            value["errors"] = errors.splitlines()
        return Exact(value)

    def _paths(self, name: Name) -> dict[str, Any]:
        *records, _ = bytes(self.data).split(b"\0")
        paths = sorted(path.removeprefix(b"./") for path in records if self._is_allowed(path))
        entries = [_path_fields(path, name) for path in paths[: self._limit]]
        paths_shown = [entry["path"] for entry in entries]
        return {"entries": entries, "paths": paths_shown, "text": "\n".join(paths_shown)}

    def _lines(self, name: Name) -> dict[str, Any]:
        *records, _ = bytes(self.data).split(b"\n")
        allowed: dict[bytes, bool] = {}
        matches: list[tuple[bytes, int, dict[str, Any]]] = []
        binary: list[str] = []
        count = 0
        for message in map(_decode, records):
            path = b"" if message.data.path is None else message.data.path.data
            path = path.removeprefix(b"./")
            if path not in allowed:
                allowed[path] = bool(path) and self._is_allowed(path)
            if not allowed[path]:
                continue
            if message.data.binary_offset is not None:
                binary.append(name(path))
            if message.data.lines is None:
                continue
            count += message.type == "match"
            if self._limit is not None and count > self._limit:
                self.full = True
                break
            number = message.data.line_number or 0
            matches.append(
                (path, number, {**_path_fields(path, name), **_line_fields(number, message)})
            )
        values = [match for _, _, match in sorted(matches, key=lambda match: match[:2])]
        text = "\n".join(f"{match['path']}:{match['line']}:{match['text']}" for match in values)
        value: dict[str, Any] = {"matches": values, "text": text}
        if binary:
            value["binary"] = binary
        return value


def _path_fields(path: bytes, name: Name) -> dict[str, str]:
    """Return a path as other tools accept it; if it is not UTF-8, escaped and in base64."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return {"path": name(path), "path_base64": in_base64(path)}
    return {"path": name(path)}


def _line_fields(number: int, message: _Message) -> dict[str, Any]:
    """Return a line without its end. A line around a match is marked as context."""
    assert message.data.lines is not None
    text = message.data.lines.data.removesuffix(b"\n")
    line = {"line": number, **text_or_bytes("text", text)}
    return line if message.type == "match" else {**line, "context": True}
