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

MOST: Final = 100_000
"""Entries that are given at most."""
_UNENTERED: Final = ".git"


class Listing(msgspec.Struct):
    """What is in a folder, and below it as deep as asked. The order is that of the names."""

    files: Files
    depth: int
    hidden: bool
    entries: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    skipped: int = 0
    truncated: bool = False

    def take(self, folder: int, path: Path, level: int = 1, above: str = "") -> None:
        for entry in self._sorted(folder, path):
            if len(self.entries) >= MOST:
                self.truncated = True
                return
            below = above + entry.name
            self.entries.append(_described(entry, folder, below))
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and level < self.depth and entry.name != _UNENTERED:
                self._descend(folder, path / entry.name, level + 1, f"{below}/")

    def value(self) -> Exact:
        value: dict[str, Any] = {
            "entries": self.entries,
            "text": "\n".join(entry["path"] for entry in self.entries),
            "truncated": self.truncated,
            "hidden_entries": self.skipped,
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
                    self.skipped += 1
                elif len(entries) >= MOST:
                    self.truncated = True
                    break
                else:
                    entries.append(entry)
        return sorted(entries, key=lambda entry: entry.name)

    def _descend(self, folder: int, path: Path, level: int, above: str) -> None:
        try:
            below = os.open(path.name, safe_open.LISTED, dir_fd=folder)
        except OSError as error:
            self.entries[-1]["error"] = error.strerror
            return
        try:
            self.take(below, path, level, above)
        finally:
            os.close(below)


def _described(entry: os.DirEntry[str], folder: int, path: str) -> dict[str, Any]:
    """One entry. A name that is not UTF-8 is shown with escapes, and its bytes are in base64."""
    described: dict[str, Any] = named("path", path)
    try:
        if entry.is_symlink():
            target = os.readlink(entry.name, dir_fd=folder)
            return {**described, "type": "link", **named("target", target)}
        if entry.is_dir(follow_symlinks=False):
            return {**described, "type": "folder"}
        size = entry.stat(follow_symlinks=False).st_size
        kind = "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:  # gone while it was listed
        return {**described, "type": "gone"}
    return {**described, "type": kind, "size": size}


def named(key: str, name: str) -> dict[str, str]:
    """A name of a file. JSON has only UTF-8, so the bytes of any other are there too."""
    data = os.fsencode(name)
    try:
        return {key: data.decode()}
    except UnicodeDecodeError:
        shown = data.decode(errors="backslashreplace")
        return {key: shown, f"{key}_base64": in_base64(data)}
