"""`search_files` for a script: every finding as values, its line whole, from ripgrep's own JSON."""

from __future__ import annotations

import base64
import enum
from collections.abc import Callable
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.tool import Exact
from keryx.tools.exact_bytes import in_base64, text_or_bytes

MOST: Final = 8 * 1024 * 1024
"""Bytes of findings, as ripgrep writes them, that are taken at most."""
ERRORS: Final = 4_000
"""Bytes of ripgrep's complaints that are kept."""
_FOUND: Final = b'{"type":"match"'  # quotes within a text are escaped, so this is in none


class Unsaid(enum.IntEnum):
    """Defaults that can be told from the same number in a caller's own words."""

    LIMIT = 200
    """Findings that a model is shown. A script that does not say how many it wants gets all."""


class _Text(msgspec.Struct):
    """Text, or what is not UTF-8 in base64."""

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


_decode: Final = msgspec.json.Decoder(_Message).decode

MayBeShown = Callable[[bytes], bool]
Name = Callable[[bytes], str]


class Findings:
    """Takes what ripgrep prints, until there is more than can be given or was asked for."""

    def __init__(self, limit: int, *, names: bool) -> None:
        self._limit = None if isinstance(limit, Unsaid) else limit
        self._names = names
        self._is_shown: MayBeShown = bool
        self.options = () if names else ("--json",)
        self._data = bytearray()
        self._errors = bytearray()
        self._count = 0
        self._stop: Callable[[], None] | None = None
        self.full = False
        self.failed = False

    def stop_when_full(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self.full:
            stop()

    def feed(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._errors += data[: ERRORS - len(self._errors)]
            return
        if self.full:
            return
        self._data += data
        self._count += data.count(b"\0" if self._names else _FOUND)
        # One more than the limit tells that there are more.
        is_past_limit = self._limit is not None and self._count > self._limit
        if is_past_limit or len(self._data) > MOST:
            self.full = True
            if self._stop is not None:
                self._stop()

    def keep(self, may_be_shown: MayBeShown) -> None:
        """Leave out what may not be shown."""
        self._is_shown = may_be_shown

    def told(self, name: Name, pattern: str) -> Exact:
        """All findings, as values."""
        del pattern
        errors = self._errors.decode(errors="replace").strip()
        if self.failed and not self._data:
            raise ToolFailedError(f"ripgrep could not search: {errors}")
        value = self._paths(name) if self._names else self._lines(name)
        value["truncated"] = self.full
        if self.full:
            value["hint"] = "narrow the pattern, the path or the glob, or raise the limit"
        if errors:
            value["errors"] = errors.splitlines()
        return Exact(value)

    def _paths(self, name: Name) -> dict[str, Any]:
        *whole, _ = bytes(self._data).split(b"\0")
        paths = sorted(path.removeprefix(b"./") for path in whole if self._is_shown(path))
        entries = [_path(path, name) for path in paths[: self._limit]]
        shown = [entry["path"] for entry in entries]
        return {"entries": entries, "paths": shown, "text": "\n".join(shown)}

    def _lines(self, name: Name) -> dict[str, Any]:
        *whole, _ = bytes(self._data).split(b"\n")
        shown: dict[bytes, bool] = {}
        matches: list[tuple[bytes, int, dict[str, Any]]] = []
        binary: list[str] = []
        count = 0
        for message in map(_decode, whole):
            path = b"" if message.data.path is None else message.data.path.data
            path = path.removeprefix(b"./")
            if path not in shown:
                shown[path] = bool(path) and self._is_shown(path)
            if not shown[path]:
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
            matches.append((path, number, {**_path(path, name), **_line(number, message)}))
        every = [match for _, _, match in sorted(matches, key=lambda match: match[:2])]
        text = "\n".join(f"{match['path']}:{match['line']}:{match['text']}" for match in every)
        value: dict[str, Any] = {"matches": every, "text": text}
        if binary:
            value["binary"] = binary
        return value


def _path(found: bytes, name: Name) -> dict[str, str]:
    """As other tools take it. One that is not UTF-8 is shown with escapes, and comes in base64."""
    try:
        found.decode()
    except UnicodeDecodeError:
        return {"path": name(found), "path_base64": in_base64(found)}
    return {"path": name(found)}


def _line(number: int, message: _Message) -> dict[str, Any]:
    """A line without its end. Lines around a finding say that they are context."""
    assert message.data.lines is not None
    text = message.data.lines.data.removesuffix(b"\n")
    line = {"line": number, **text_or_bytes("text", text)}
    return line if message.type == "match" else {**line, "context": True}
