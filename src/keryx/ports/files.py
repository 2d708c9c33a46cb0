"""The seams around files: the session's own, which tools touch, and those that people attach.

The session says which paths are its own, remembers what it has seen of each file, and makes
every change known before it happens. How files are read, matched and replaced is the tools' affair.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec

from keryx.messages import File, Image, Needs
from keryx.ports.store import blob_hash

UPLOADS: Final = "KERYX_UPLOADS"
"""The variable that names a session's folder of attachments, in commands and in paths."""
_UNSAFE: Final = re.compile(r"[^\w.\-]+")
_LONGEST: Final = 100


class Stamp(msgspec.Struct, frozen=True):
    """What a file was when the session read or wrote it; no hash if only a part was read."""

    inode: int
    size: int
    mtime_ns: int
    hash: str | None = None
    encoding: str | None = None
    """How a script read it: what it writes back becomes the same bytes again."""

    def matches(self, now: Stamp) -> bool:
        """Whether the content is the same; times may differ where the hashes tell."""
        if self.hash is not None and now.hash is not None:
            return self.hash == now.hash
        return self.identity == now.identity

    @property
    def identity(self) -> tuple[int, int, int]:
        """What the system tells without reading."""
        return self.inode, self.size, self.mtime_ns


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file is about to be replaced, made or deleted. A hash that is None means: no file."""

    path: Path
    before_hash: str | None
    after_hash: str | None
    before: bytes | None = None
    """The content before; None if there was none, or if it is too large to be kept."""

    @classmethod
    def of(cls, path: Path, before: bytes | None, after: bytes | None) -> Self:
        return cls(
            path=path,
            before_hash=None if before is None else blob_hash(before),
            after_hash=None if after is None else blob_hash(after),
            before=before,
        )

    @property
    def can_be_undone(self) -> bool:
        return self.before is not None or self.before_hash is None


class Files(Protocol):
    """The files of one session. All but the async parts may ask the disk: call from a thread."""

    def resolve(self, path: str, *, write: bool) -> Path:
        """The canonical path that a model means; relative ones count from the workspace.

        Raises `ToolFailedError` if it lies outside every granted tree or inside a hidden one.
        The answer holds no symbolic link; whoever opens it must follow none either.
        """
        ...

    def name(self, path: Path) -> str:
        """A canonical path as a model is shown it: relative to the workspace where it is inside."""
        ...

    @property
    def hidden(self) -> Sequence[Path]:
        """Canonical trees that no tool may look into."""
        ...

    def seen(self, path: Path, stamp: Stamp | None) -> None:
        """The session has read or written this; None: it has deleted the file."""
        ...

    def last_seen(self, path: Path) -> Stamp | None:
        """What the session last saw there; None if it never did."""
        ...

    async def keep(self, data: bytes) -> str:
        """Make this a blob of the session's, and return the blob's name."""
        ...

    async def changing(self, changes: Sequence[FileChange], call_id: str | None) -> None:
        """Make `files.changed` durable, for all or for none. Called right before the renames."""
        ...

    def granting(self, needs: Needs) -> Files:
        """The same files, with these paths granted too. May ask the disk."""
        ...


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
