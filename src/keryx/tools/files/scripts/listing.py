"""`list_files` for a script: every entry as values, read without following links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.ports.files import Files
from keryx.ports.tool import Exact
from keryx.tools.exact_bytes import in_base64
from keryx.tools.files import safe_open

MAX_ENTRIES: Final = 100_000
"""The most entries that are returned."""
_NOT_ENTERED: Final = ".git"


class ListingValues(msgspec.Struct):
    """The entries of a folder, down to the requested depth, in the order of their names."""

    files: Files
    depth: int
    hidden: bool
    entries: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    hidden_count: int = 0
    truncated: bool = False

    def add(self, folder: int, path: Path, level: int = 1, prefix: str = "") -> None:
        for entry in self._sorted(folder, path):
            if len(self.entries) >= MAX_ENTRIES:
                self.truncated = True
                return
            relative = prefix + entry.name
            self.entries.append(_entry_fields(entry, folder, relative))
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and level < self.depth and entry.name != _NOT_ENTERED:
                self._descend(folder, path / entry.name, level + 1, f"{relative}/")

    def value(self) -> Exact:
        value: dict[str, Any] = {
            "entries": self.entries,
            "text": "\n".join(entry["path"] for entry in self.entries),
            "truncated": self.truncated,
            "hidden_entries": self.hidden_count,
        }
        if self.truncated:
            value["hint"] = "list the folders below one by one, or a smaller depth"
        return Exact(value)

    def _sorted(self, folder: int, path: Path) -> list[os.DirEntry[str]]:
        entries: list[os.DirEntry[str]] = []
        with os.scandir(folder) as scanned:
            for entry in scanned:
                if path / entry.name in self.files.hidden:
                    continue
                if entry.name.startswith(".") and not self.hidden:
                    self.hidden_count += 1
                elif len(entries) >= MAX_ENTRIES:
                    self.truncated = True
                    break
                else:
                    entries.append(entry)
        return sorted(entries, key=lambda entry: entry.name)

    def _descend(self, folder: int, path: Path, level: int, prefix: str) -> None:
        try:
            below = os.open(path.name, safe_open.LIST_FLAGS, dir_fd=folder)
        except OSError as error:
            self.entries[-1]["error"] = error.strerror
            return
        try:
            self.add(below, path, level, prefix)
        finally:
            os.close(below)


def _entry_fields(entry: os.DirEntry[str], folder: int, path: str) -> dict[str, Any]:
    """Return one entry. A name that is not UTF-8 is escaped, and its bytes are added in base64."""
    fields: dict[str, Any] = name_fields("path", path)
    try:
        if entry.is_symlink():
            target = os.readlink(entry.name, dir_fd=folder)
            return {**fields, "type": "link", **name_fields("target", target)}
        if entry.is_dir(follow_symlinks=False):
            return {**fields, "type": "folder"}
        size = entry.stat(follow_symlinks=False).st_size
        kind = "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:  # it was deleted meanwhile
        return {**fields, "type": "gone"}
    return {**fields, "type": kind, "size": size}


def name_fields(key: str, name: str) -> dict[str, str]:
    """Return the name of a file; JSON is UTF-8, so for other names also their bytes."""
    data = os.fsencode(name)
    try:
        return {key: data.decode()}
    except UnicodeDecodeError:
        escaped = data.decode(errors="backslashreplace")
        return {key: escaped, f"{key}_base64": in_base64(data)}
