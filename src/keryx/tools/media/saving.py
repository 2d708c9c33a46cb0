"""Writes media as new files of the workspace: logged, and able to be undone like any other file.

A file that exists is never replaced.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec

from keryx.errors import ToolFailedError
from keryx.ports.effects import NO_EFFECTS, Effects, writes
from keryx.ports.files import Files
from keryx.ports.tool import Risk
from keryx.ports.tool_context import ToolContext
from keryx.tools.files.edits import Edit, recorder, replace_all
from keryx.tools.files.file_access import writing_risk
from keryx.tools.media.media_types import fitting_suffix

_MOST_NAMES: Final = 10_000
_ATTEMPTS: Final = 5


class Medium(msgspec.Struct, frozen=True):
    """The content of one new file."""

    data: bytes
    media_type: str


class Destination(msgspec.Struct, frozen=True):
    """Where a tool saves what it makes if the call names no file."""

    folder: str
    stem: str
    suffixes: tuple[str, ...]
    """The endings that a named file may have; one without an ending gets the right one."""

    def effects(self, path: str | None, count: int = 1) -> Effects:
        if path is None:
            # Each call takes names that are free, so such calls do not wait for each other.
            return writes(self.folder, peers=f"media {self.folder}")
        if "\0" in path:
            return NO_EFFECTS  # refused before anything happens
        return writes(*_numbered(path, count))

    def risk(self, path: str | None, count: int, workspace: Path) -> Risk:
        paths = [self.folder] if path is None else _numbered(path, count)
        return writing_risk(paths, workspace)

    def check(self, context: ToolContext, path: str | None, count: int = 1) -> None:
        """Raise `ToolFailedError` if files of these names cannot be made. Reads the disk."""
        files = context.files
        if path is None:
            files.resolve(self.folder, write=True)
            return
        for name in _numbered(path, count):
            target = files.resolve(name, write=True)
            suffix = PurePath(name).suffix.lower()
            if suffix and suffix not in self.suffixes:
                raise ToolFailedError(
                    f"{name} is no name for what this makes; give one that ends in "
                    f"{', '.join(self.suffixes)}. Nothing was done."
                )
            if os.path.lexists(target):
                raise ToolFailedError(
                    f"{files.name(target)} exists, and is not replaced; choose another name. "
                    "Nothing was done."
                )

    def save(self, context: ToolContext, media: Sequence[Medium], path: str | None) -> list[str]:
        """Write new files; return their names. Blocks."""
        files = context.files
        context.token.raise_if_cancelled()
        for attempt in range(1, _ATTEMPTS + 1):
            targets = self._targets(files, media, path)
            edits = [
                Edit(target, files.name(target), None, medium.data)
                for target, medium in zip(targets, media, strict=True)
            ]
            try:
                replace_all(files, edits, recorder(context))
            except ToolFailedError:
                # Another call took one of the names just now: then the next free one is as good.
                if attempt == _ATTEMPTS or not any(map(os.path.lexists, targets)):
                    raise
                continue
            return [edit.name for edit in edits]
        raise AssertionError("the last attempt returns or raises")

    def _targets(self, files: Files, media: Sequence[Medium], path: str | None) -> list[Path]:
        targets: list[Path] = []
        names = [None] * len(media) if path is None else _numbered(path, len(media))
        for medium, name in zip(media, names, strict=True):
            wished = PurePath(name or f"{self.folder}/{self.stem}-1")
            suffix = fitting_suffix(medium.media_type, wished.suffix)
            stem = str(wished.with_suffix("")) if name else f"{self.folder}/{self.stem}"
            targets.append(_free(files, stem, suffix, targets, is_named=name is not None))
        return targets


def _numbered(path: str, count: int) -> list[str]:
    """Return the names of so many files: the path itself, or the path with numbers."""
    if count == 1:
        return [path]
    pure = PurePath(path)
    if not pure.name:
        return [path]
    return [str(pure.with_name(f"{pure.stem}-{at}{pure.suffix}")) for at in range(1, count + 1)]


def _free(files: Files, stem: str, suffix: str, taken: Collection[Path], *, is_named: bool) -> Path:
    """Return the first path that is free. A named file gets a number only if it exists by now."""
    names = [f"{stem}{suffix}"] if is_named else []
    names += [f"{stem}-{number}{suffix}" for number in range(2 if is_named else 1, _MOST_NAMES)]
    for name in names:
        target = files.resolve(name, write=True)
        if target not in taken and not os.path.lexists(target):
            return target
    raise ToolFailedError(f"there is no free name like {stem}{suffix}; give another path")


def fields(name: str, medium: Medium) -> dict[str, Any]:
    """Return what a program gets to know about a new file."""
    return {"path": name, "size": len(medium.data), "media_type": medium.media_type}
