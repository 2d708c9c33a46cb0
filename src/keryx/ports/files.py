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
    """The version of a file that the session read or wrote; no hash if only a part was read."""

    inode: int
    size: int
    mtime_ns: int
    hash: str | None = None
    encoding: str | None = None
    """The form in which a script read it; in it the text gives the same bytes again."""

    def matches(self, now: Stamp) -> bool:
        """Whether the content is the same; times may differ where the hashes tell."""
        if self.hash is not None and now.hash is not None:
            return self.hash == now.hash
        return self.identity == now.identity

    @property
    def identity(self) -> tuple[int, int, int]:
        """The values that the system gives without reading the file."""
        return self.inode, self.size, self.mtime_ns


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """The replacement, creation or deletion of a file. A hash of None means: no file."""

    path: Path
    before_hash: str | None
    after_hash: str | None
    before: bytes | None = None
    """The content before; None if there was none, or if it is too large to be stored."""

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
        """Canonical trees that no tool may read."""
        ...

    def seen(self, path: Path, stamp: Stamp | None) -> None:
        """Remember the version that the session has read or written; None: it deleted the file."""
        ...

    def last_seen(self, path: Path) -> Stamp | None:
        """Return the version that the session last read or wrote; None if there is none."""
        ...

    async def keep(self, data: bytes) -> str:
        """Store the data as a blob of the session; return the blob's name."""
        ...

    async def changing(self, changes: Sequence[FileChange], call_id: str | None) -> None:
        """Make `files.changed` durable, for all or for none. Called right before the renames."""
        ...

    def granting(self, needs: Needs) -> Files:
        """Return the same files with more granted paths. May read the disk."""
        ...


class Attachments(Protocol):
    """The attachments of a host's sessions."""

    async def uploaded(self, hash_: str) -> bytes | None:
        """Return the upload with this hash, if there is one."""
        ...

    async def prepare(self, session_id: str, parts: Sequence[Image | File]) -> None:
        """Before a model is asked: images are at hand, and all of it lies where tools find it."""
        ...


def file_name(part: Image | File) -> str:
    """Its name in the session's folder: no two contents share one, and it is safe in any shell."""
    name = _UNSAFE.sub("_", part.name).lstrip(".-")[-_LONGEST:]
    return f"{part.blob[:8]}-{name or 'attachment'}"


def tool_path(part: Image | File) -> str:
    """Return the path of an attachment for tools and commands."""
    return f"${UPLOADS}/{file_name(part)}"
