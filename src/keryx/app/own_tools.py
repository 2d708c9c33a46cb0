"""The user's own tools: files in the folder `tools` of the home, and entry points of packages.

A file is executed in a thread, and again after it has changed. A file or a package that cannot be
used is reported, and the other tools work. This module does not decide which session gets a tool.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from keryx.app.tool_sources import Source, exposure, load_file, load_packages
from keryx.app.tools import OWN, Tools
from keryx.ports.tool import Tool, aliases_of

FOLDER: Final = "tools"
TOOLSET: Final = OWN
# Seconds. A file that imports large packages needs a few; longer means that it waits for something,
# and a turn waits for it.
LONGEST_LOAD: Final = 20.0

Stamp = tuple[int, int, int, int]


class Listing(msgspec.Struct, frozen=True):
    """The files of the folder, by name, each with a stamp that changes when the file does."""

    stamps: Mapping[str, Stamp] = msgspec.field(default_factory=dict[str, Stamp])
    fault: str = ""


def names_in_use(tools: Tools) -> frozenset[str]:
    """Return the names that no own tool may have beside these tools."""
    servers = (f"mcp_{name}" for name in tools.servers)
    aliases = (alias for tool in tools.by_name.values() for alias in aliases_of(tool))
    return frozenset((*tools.by_name, *aliases, *tools.sets, *servers, TOOLSET))


class OwnTools:
    """The own tools of one home. Belongs to the loop of its host."""

    def __init__(
        self, home: Path, to_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> None:
        self.folder: Final = home / FOLDER
        self.by_name: Mapping[str, Tool] = {}
        self.warnings: tuple[str, ...] = ()
        """What is wrong now, for the turns that start now."""
        self._to_thread = to_thread
        self._listing = Listing()
        self._files: dict[str, Source] = {}
        self._packages: tuple[Source, ...] | None = None

    @property
    def is_loaded(self) -> bool:
        return self._packages is not None

    def is_current(self, listing: Listing) -> bool:
        """Return whether everything is loaded as this listing has it."""
        return self.is_loaded and listing == self._listing

    async def refresh(self, used_names: Collection[str], listing: Listing | None = None) -> None:
        """Load what has changed. `used_names` are names that no own tool may have."""
        if listing is None:
            listing = cast("Listing", await self._to_thread(partial(list_files, self.folder)))
        if self.is_current(listing):
            return
        packages = self._packages
        if packages is None:
            packages = await self._bounded(load_packages, "the entry points of packages")
        old, files = self._listing.stamps, dict[str, Source]()
        for name, stamp in sorted(listing.stamps.items()):
            source = self._files.get(name)
            if source is None or old.get(name) != stamp:
                path = self.folder / name
                (source,) = await self._bounded(partial(load_file, path), str(path))
            files[name] = source
        # No await from here on: two turns that start together both end with a whole table.
        for name, source in self._files.items():
            if files.get(name) is not source:
                sys.modules.pop(source.module, None)
        self._listing, self._files, self._packages = listing, files, packages
        self.by_name, faults = combine((*packages, *files.values()), used_names)
        self.warnings = (listing.fault, *faults) if listing.fault else faults

    async def _bounded(
        self, load: Callable[[], tuple[Source, ...]], label: str
    ) -> tuple[Source, ...]:
        try:
            async with asyncio.timeout(LONGEST_LOAD):
                return await self._to_thread(load)
        except TimeoutError:
            fault = f"the import has not ended after {LONGEST_LOAD:.0f} seconds"
            return (Source(label, fault=fault),)


def load_now(home: Path, used_names: Collection[str]) -> tuple[Mapping[str, Tool], tuple[str, ...]]:
    """Load everything in this thread; return the tools by name, and what is wrong."""
    folder = home / FOLDER
    listing = list_files(folder)
    files = [source for name in sorted(listing.stamps) for source in load_file(folder / name)]
    by_name, faults = combine((*load_packages(), *files), used_names)
    return by_name, (listing.fault, *faults) if listing.fault else faults


# -- what there is


def list_files(folder: Path) -> Listing:
    """Return the files of the folder. A folder that others can change is refused as a whole."""
    stamps: dict[str, Stamp] = {}
    try:
        with os.scandir(folder) as entries:
            if fault := exposure(folder, folder.lstat()):
                return Listing(fault=f"{fault}; the tools in it are left out")
            for entry in entries:
                if entry.name.endswith(".py") and not entry.name.startswith(("_", ".")):
                    with suppress(FileNotFoundError):  # it has just been removed
                        stamps[entry.name] = _stamp(entry.stat(follow_symlinks=False))
    except FileNotFoundError:
        return Listing()
    except OSError as error:
        return Listing(fault=f"{folder} cannot be read: {error.strerror}; its tools are left out")
    return Listing(stamps)


def _stamp(status: os.stat_result) -> Stamp:
    # The time of the last change of owner or mode counts too: it may end a refusal.
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


# -- names


def combine(
    sources: Iterable[Source], used_names: Collection[str]
) -> tuple[dict[str, Tool], tuple[str, ...]]:
    """Return the tools by name, and one warning for each source that cannot be used."""
    by_name: dict[str, Tool] = {}
    labels: dict[str, str] = dict.fromkeys(used_names, "Keryx itself")
    warnings: list[str] = []
    for source in sources:
        names = [name for tool in source.tools for name in (tool.name, *aliases_of(tool))]
        fault = source.fault or _clash(names, labels)
        if fault:
            warnings.append(f"{source.label}: {fault}; correct it, its tools are left out")
            continue
        by_name.update({tool.name: tool for tool in source.tools})
        labels.update(dict.fromkeys(names, source.label))
    return by_name, tuple(warnings)


def _clash(names: Sequence[str], labels: Mapping[str, str]) -> str:
    for at, name in enumerate(names):
        owner = labels.get(name) or ("the same file" if name in names[:at] else "")
        if owner:
            return f"the name {name!r} is used by {owner} too; rename the tool"
    return ""
