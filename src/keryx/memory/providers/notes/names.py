"""The names and headings of the files of notes."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePath
from typing import Final

_PLAIN: Final = re.compile(r"[^\w.-]+")
_HINT: Final = (
    "You may edit this file. Each line that begins with a dash is one memory: change it, remove "
    "it, or add\none. The comment at its end is its id; leave it there, and write none for a new "
    "line.\n"
)


def folder_name(profile: str) -> str:
    """Return the name of a profile's folder: its own, if that can be a name of a folder."""
    plain = _plain(profile)
    return profile if plain == profile else f"{plain}-{_digest(profile)}"


def file_name(workspace: str) -> str:
    """Return the name of a workspace's file; of the one about the user if it is empty."""
    if not workspace:
        return "user.md"
    return f"work-{_plain(PurePath(workspace).name)}-{_digest(workspace)}.md"


def head(workspace: str) -> str:
    """Return the first lines of a new file."""
    if not workspace:
        return f"# What Keryx remembers about you\n\n{_HINT}\n"
    path = workspace.encode("unicode_escape").decode() if not workspace.isprintable() else workspace
    name = PurePath(path).name or path
    return f"# What Keryx remembers about {name}\n\nWorkspace: {path}\n\n{_HINT}\n"


def _plain(name: str) -> str:
    return _PLAIN.sub("-", name).lstrip(".-")[:40] or "unnamed"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:12]
