"""`list_files`: a bounded tree of a folder, read without following links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.files import Files
from keryx.ports.tool import Exact, ToolContext
from keryx.tools.files import safe_open
from keryx.tools.files.content import sized
from keryx.tools.files.file_access import reading_risk
from keryx.tools.files.reading import reads_path
from keryx.tools.files.scripts import listing as script_listing
from keryx.tools.function import tool

MOST: Final = 1_000
"""Entries that are shown at most."""
MOST_IN_ONE: Final = 20_000
"""Entries of one folder that are looked at; who has more needs a search."""
_UNENTERED: Final = ".git"


@tool(effects=reads_path, risk=reading_risk, replay="safe")
def list_files(
    context: ToolContext,
    path: str = ".",
    depth: Annotated[int, msgspec.Meta(ge=1, le=20)] = 1,
    *,
    hidden: bool = False,
) -> str | Exact:
    """List a folder as a tree: folders first, with a slash; sizes; where links point.

    Args:
        path: The folder, relative to the workspace or absolute.
        depth: How many levels to show; 1 shows only what is directly in the folder.
        hidden: Also show names that begin with a dot.
    """
    files = context.files
    target = files.resolve(path, write=False)
    name = files.name(target)
    listing = _Listing(files, depth, hidden)
    with safe_open.telling(name):
        try:
            with safe_open.open_folder(target, listed=True) as folder:
                if context.nested:
                    every = script_listing.Listing(files, depth, hidden)
                    every.take(folder, target)
                    return every.value()
                listing.show(folder, target, 1)
        except NotADirectoryError as error:
            raise ToolFailedError(f"{name} is not a folder; use read_file to read it") from error
    return listing.text()


class _Listing(msgspec.Struct):
    files: Files
    depth: int
    hidden: bool
    lines: list[str] = msgspec.field(default_factory=list[str])
    unshown: int = 0
    skipped: int = 0
    unread: int = 0

    def show(self, folder: int, path: Path, level: int) -> None:
        """Add what is in the folder, and below it as deep as asked."""
        indent = "  " * (level - 1)
        for entry in self._entries(folder, path):
            if len(self.lines) >= MOST:
                self.unshown += 1
                continue
            self.lines.append(indent + _line(entry, folder))
            if level < self.depth and _is_folder(entry) and entry.name != _UNENTERED:
                self._descend(folder, path / entry.name, level)

    def text(self) -> str:
        notes: list[str] = []
        if self.unshown:
            notes.append(f"{self.unshown} more entries; name a folder below, or a smaller depth")
        if self.unread:
            notes.append(f"only the first {MOST_IN_ONE} entries of a folder were looked at")
        if self.skipped:
            notes.append(f"{self.skipped} hidden entries not shown; hidden=true shows them")
        if not self.lines and not notes:
            notes.append("empty folder")
        return "\n".join([*self.lines, *(f"[{note}]" for note in notes)])

    def _entries(self, folder: int, path: Path) -> list[os.DirEntry[str]]:
        found: list[os.DirEntry[str]] = []
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= MOST_IN_ONE:
                    self.unread += 1
                    break
                if path / entry.name in self.files.hidden:
                    continue
                if entry.name.startswith(".") and not self.hidden:
                    self.skipped += 1
                    continue
                found.append(entry)
        return sorted(found, key=lambda entry: (not _is_folder(entry), entry.name))

    def _descend(self, folder: int, path: Path, level: int) -> None:
        try:
            below = os.open(path.name, safe_open.LISTED, dir_fd=folder)
        except OSError:
            self.lines[-1] += "  (cannot be read)"
            return
        try:
            self.show(below, path, level + 1)
        finally:
            os.close(below)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _line(entry: os.DirEntry[str], folder: int) -> str:
    name = os.fsencode(entry.name).decode(errors="backslashreplace")
    try:
        if entry.is_symlink():
            target = os.readlink(os.fsencode(entry.name), dir_fd=folder)
            return f"{name} -> {target.decode(errors='backslashreplace')}"
        if _is_folder(entry):
            return f"{name}/"
        if not entry.is_file(follow_symlinks=False):
            return f"{name}  (not a regular file)"
        return f"{name}  {sized(entry.stat(follow_symlinks=False).st_size)}"
    except OSError:  # gone while it was listed
        return name
