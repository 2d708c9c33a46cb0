"""What a server offers, as it was last listed, and the file in the home that keeps it.

A listing comes from outside twice: from a server, and from a file. Both times it is checked and
bounded here. With a stored listing, a session knows the tools before the server is connected.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.decoding import decode_json
from keryx.messages import well_formed
from keryx.tools.mcp.settings import ServerSettings
from keryx.tools.mcp.stored import write_private

VERSION: Final = 1
LARGEST_FILE: Final = 16 * 1024 * 1024
MOST_TOOLS: Final = 2_000
LONGEST_DESCRIPTION: Final = 4_000
"""Characters. Longer descriptions fill the context of a model and help it little."""
LARGEST_SCHEMA: Final = 64 * 1024
"""Bytes of one tool's schema."""
LONGEST_NAME: Final = 256


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool, as its server describes it."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    read_only: bool = False
    destructive: bool = False
    open_world: bool = True


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of one server, and what was left out of them."""

    version: int = VERSION
    server: str = ""
    """Which settings it belongs to; a server that is reached otherwise may have other tools."""
    tools: tuple[ListedTool, ...] = ()
    problems: tuple[str, ...] = ()


def identity(settings: ServerSettings) -> str:
    """Return a text that differs for servers that are reached differently. It holds no secret."""
    reached = (settings.command, settings.args, settings.cwd, settings.url)
    return hashlib.sha256(msgspec.json.encode(reached)).hexdigest()


def read_listing(folder: Path, name: str, settings: ServerSettings) -> Listing | None:
    """Return the stored listing; None if there is none that can be used. Reads the disk."""
    try:
        with (folder / f"{name}.json").open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
        listing = decode_json(data, Listing)
    except (OSError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None  # the server is listed again
    if listing.version != VERSION or listing.server != identity(settings):
        return None
    return bounded(listing)


def write_listing(folder: Path, name: str, settings: ServerSettings, listing: Listing) -> None:
    """Store the listing atomically. Uses the disk; an `OSError` if it cannot be stored."""
    data = msgspec.json.encode(msgspec.structs.replace(listing, server=identity(settings)))
    if len(data) > LARGEST_FILE:
        return
    write_private(folder / f"{name}.json", data)


def bounded(listing: Listing) -> Listing:
    """Return the listing within the limits; what is left out is named in its problems."""
    problems = list(listing.problems)
    tools: list[ListedTool] = []
    for tool in listing.tools[:MOST_TOOLS]:
        if not tool.name or len(tool.name) > LONGEST_NAME:
            problems.append(f"a tool with a name of {len(tool.name)} characters is left out")
            continue
        size = len(msgspec.json.encode(tool.schema))
        if size > LARGEST_SCHEMA:
            problems.append(
                f"the tool {tool.name!r} is left out: its schema has {size} bytes, "
                f"and at most {LARGEST_SCHEMA} are accepted"
            )
            continue
        description = well_formed(tool.description[:LONGEST_DESCRIPTION])
        tools.append(msgspec.structs.replace(tool, description=description))
    if len(listing.tools) > MOST_TOOLS:
        problems.append(f"only the first {MOST_TOOLS} of {len(listing.tools)} tools are used")
    return msgspec.structs.replace(listing, tools=tuple(tools), problems=tuple(problems))
