"""`list_files`: a bounded tree of a folder, without following links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.files import Files
from keryx.ports.tool import Exact
from keryx.ports.tool_context import ToolContext
from keryx.tools.files import safe_open
from keryx.tools.files.content import sized
from keryx.tools.files.file_access import reading_risk
from keryx.tools.files.reading import reads_path
from keryx.tools.files.scripts import listing as script_listing
from keryx.tools.function import tool

MAX_ENTRIES: Final = 1_000
"""The most entries that are shown."""
MAX_FOLDER_ENTRIES: Final = 20_000
"""The most entries of one folder that are read; a larger folder needs a search."""
_NOT_ENTERED: Final = ".git"


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
    with safe_open.readable_errors(name):
        try:
            with safe_open.open_folder(target, listed=True) as folder:
                if context.nested:
                    values = script_listing.ListingValues(files, depth, hidden)
                    values.add(folder, target)
                    return values.value()
                listing.add(folder, target, 1)
        except NotADirectoryError as error:
            raise ToolFailedError(f"{name} is not a folder; use read_file to read it") from error
    return listing.text()


class _Listing(msgspec.Struct):
    files: Files
    depth: int
    hidden: bool
    lines: list[str] = msgspec.field(default_factory=list[str])
    not_shown: int = 0
    hidden_count: int = 0
    cut_folders: int = 0

    def add(self, folder: int, path: Path, level: int) -> None:
        """Add the entries of the folder, down to the requested depth."""
        indent = "  " * (level - 1)
        for entry in self._entries(folder, path):
            if len(self.lines) >= MAX_ENTRIES:
                self.not_shown += 1
                continue
            self.lines.append(indent + _line(entry, folder))
            if level < self.depth and _is_folder(entry) and entry.name != _NOT_ENTERED:
                self._descend(folder, path / entry.name, level)

    def text(self) -> str:
        notes: list[str] = []
        if self.not_shown:
            notes.append(f"{self.not_shown} more entries; name a folder below, or a smaller depth")
        if self.cut_folders:
            notes.append(f"only the first {MAX_FOLDER_ENTRIES} entries of a folder were looked at")
        if self.hidden_count:
            notes.append(f"{self.hidden_count} hidden entries not shown; hidden=true shows them")
        if not self.lines and not notes:
            notes.append("empty folder")
        return "\n".join([*self.lines, *(f"[{note}]" for note in notes)])

    def _entries(self, folder: int, path: Path) -> list[os.DirEntry[str]]:
        shown: list[os.DirEntry[str]] = []
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= MAX_FOLDER_ENTRIES:
                    self.cut_folders += 1
                    break
                if path / entry.name in self.files.hidden:
                    continue
                if entry.name.startswith(".") and not self.hidden:
                    self.hidden_count += 1
                    continue
                shown.append(entry)
        return sorted(shown, key=lambda entry: (not _is_folder(entry), entry.name))

    def _descend(self, folder: int, path: Path, level: int) -> None:
        try:
            below = os.open(path.name, safe_open.LIST_FLAGS, dir_fd=folder)
        except OSError:
            self.lines[-1] += "  (cannot be read)"
            return
        try:
            self.add(below, path, level + 1)
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
    except OSError:  # it was deleted meanwhile
        return name
