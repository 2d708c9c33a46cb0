"""What people attach to their messages: brought in by its hash, handed to models and to tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from keryx.messages import File, Image

UPLOADS: Final = "KERYX_UPLOADS"
"""The variable that names a session's folder of attachments, in commands and in paths."""
_UNSAFE: Final = re.compile(r"[^\w.\-]+")
_LONGEST: Final = 100


class Attachments(Protocol):
    """The attachments of a host's sessions."""

    async def uploaded(self, hash_: str) -> bytes | None:
        """What was uploaded under this hash, if it was."""
        ...

    async def prepare(self, session_id: str, parts: Sequence[Image | File]) -> None:
        """Before a model is asked: images are at hand, and all of it lies where tools find it."""
        ...


def file_name(part: Image | File) -> str:
    """Its name in the session's folder: no two contents share one, and it is safe in any shell."""
    name = _UNSAFE.sub("_", part.name).lstrip(".-")[-_LONGEST:]
    return f"{part.blob[:8]}-{name or 'attachment'}"


def tool_path(part: Image | File) -> str:
    """How tools and commands are told where it is."""
    return f"${UPLOADS}/{file_name(part)}"
