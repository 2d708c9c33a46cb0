"""Names at Honcho: what Keryx calls a thing, in the letters that a server takes."""

from __future__ import annotations

import hashlib
import re
from typing import Final

USER: Final = "user"
"""The peer that stands for the person."""
AGENT: Final = "agent"
"""The peer that stands for the agent. It observes, and is not observed."""
MAX_LENGTH: Final = 512

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]+")
_DIGEST: Final = re.compile(r"--[0-9a-f]{32}\Z")
# So much of a name that cannot be used as it is stays readable.
_READABLE: Final = 60


def remote_name(name: str) -> str:
    """Return the name in allowed letters; different names stay different."""
    # A name that looks like one with a digest gets a digest too: it could be that of another.
    if _PLAIN.fullmatch(name) and len(name) <= MAX_LENGTH and not _DIGEST.search(name):
        return name
    readable = _OTHER.sub("-", name).strip("-")[:_READABLE]
    return f"{readable}--{digest_of(name).hex()}"


def workspace_name(configured: str, profile: str) -> str:
    """Return the Honcho workspace of a profile."""
    return remote_name(f"{configured}-{profile}")


def session_name(session_id: str) -> str:
    """Return the Honcho session of a Keryx session; what people add elsewhere has one too."""
    return remote_name(session_id or "\0outside of sessions")


def observed_name(workspace: str) -> str:
    """Return the peer that memories are about: the user, or the work in one workspace."""
    return remote_name(f"work-{workspace}") if workspace else USER


def clean(text: str) -> str:
    """Return the text as Honcho stores it: without NUL, and without halves of characters."""
    return text.replace("\0", "").encode(errors="replace").decode()


def digest_of(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest()
