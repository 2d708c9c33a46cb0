"""The interfaces of a session's files, which tools use, and of the files that people attach.

The session decides which paths may be used, remembers which version of each file it has seen, and
logs every change before it happens. The tools read, match and replace the files.
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
    """The encoding in which a script read it; the text in it gives the same bytes."""

    def matches(self, now: Stamp) -> bool:
        """Return whether the content is the same: by the hashes, if both are known."""
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
    """The files of one session. The blocking methods may read the disk: call them in a thread."""

    def resolve(self, path: str, *, write: bool) -> Path:
        """Return the canonical path of a path from a model; relative: to the workspace.

        `ToolFailedError` if it is outside of all granted trees or inside a hidden one. The result
        contains no symbolic link, and the caller must not follow one when it opens the path.
        """
        ...

    def name(self, path: Path) -> str:
        """Return a canonical path as models see it: relative to the workspace if it is inside."""
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
        """Load what models read, and write all attachments to where tools find them."""
        ...

    async def load(self, parts: Sequence[Image | File]) -> None:
        """Load what models read of these parts."""
        ...


def file_name(part: Image | File) -> str:
    """Return the name of an attachment's file: unique for its content, and safe in any shell."""
    name = _UNSAFE.sub("_", part.name).lstrip(".-")[-_LONGEST:]
    return f"{part.blob[:8]}-{name or 'attachment'}"


def tool_path(part: Image | File) -> str:
    """Return the path of an attachment for tools and commands."""
    return f"${UPLOADS}/{file_name(part)}"
