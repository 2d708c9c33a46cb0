"""Names of folders and files for things whose own name may be anything."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_NOT_PLAIN: Final = re.compile(r"[^\w.-]+")


def folder_name(name: str) -> str:
    """Return the name of the folder of a profile: its own, if that can be a name of a folder."""
    plain = plain_name(name)
    return name if plain == name else f"{plain}-{name_digest(name)}"


def plain_name(name: str) -> str:
    """Return a name of a file that a person recognizes. Two things may get the same."""
    return _NOT_PLAIN.sub("-", name).lstrip(".-")[:40] or "unnamed"


def name_digest(name: str, length: int = 12) -> str:
    """Return what makes a plain name unique."""
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:length]
