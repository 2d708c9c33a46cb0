"""The names and headings of the files of notes."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from keryx.folder_names import folder_name, name_digest, plain_name
from keryx.ports.memory import profile_and_person

_HINT: Final = (
    "You may edit this file. Each line that begins with a dash is one memory: change it, remove "
    "it, or add\none. The comment at its end is its id; leave it there, and write none for a new "
    "line.\n"
)


# Who talks through the gateway may choose their id: no two may ever share a folder.
_DIGEST_LENGTH: Final = 32


def folder_of(profile: str) -> str:
    """Return the name of the folder of a profile, or of a person in a profile."""
    _, person = profile_and_person(profile)
    if person is None:
        return folder_name(profile)
    return f"{plain_name(profile)}-{name_digest(profile, _DIGEST_LENGTH)}"


def file_name(workspace: str) -> str:
    """Return the name of a workspace's file; of the one about the user if it is empty."""
    if not workspace:
        return "user.md"
    return f"work-{plain_name(PurePath(workspace).name)}-{name_digest(workspace)}.md"


def head(profile: str, workspace: str) -> str:
    """Return the first lines of a new file."""
    _, person = profile_and_person(profile)
    if not workspace:
        about = "you" if person is None else person
        return f"# What Keryx remembers about {about}\n\n{_HINT}\n"
    path = workspace.encode("unicode_escape").decode() if not workspace.isprintable() else workspace
    name = PurePath(path).name or path
    of_person = "" if person is None else f"Told by: {person}\n"
    return f"# What Keryx remembers about {name}\n\n{of_person}Workspace: {path}\n\n{_HINT}\n"
