"""Which files a session may access, and which versions of them it has read.

The one implementation of the port `Files`. It decides by canonical paths only and opens no file;
two functions of the caller store blobs and changes.
"""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from keryx.errors import ToolFailedError
from keryx.messages import Needs
from keryx.ports.files import UPLOADS, FileChange, Stamp
from keryx.ports.tool import Risk

# The most files that a session remembers. A forgotten file must be read again before a write.
MAX_STAMPS: Final = 10_000

# How long the inode numbers of hidden trees are cached; their paths are always compared.
IDENTITIES_TTL: Final = 1.0

_UPLOADS_PREFIX: Final = f"${UPLOADS}/"

Keep = Callable[[bytes], Awaitable[str]]
Changing = Callable[[Sequence[FileChange], str | None], Awaitable[None]]


class FileAccess:
    """Granted trees, hidden trees inside them, and the stamps of files that were read.

    Stamps are set and read from the threads of calls. Each is one operation on a dict, and the
    effects of calls prevent that two calls on one path run at the same time.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        keep: Keep,
        changing: Changing,
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        hidden: Iterable[Path] = (),
        uploads: Path | None = None,
    ) -> None:
        self.workspace = _canonical(workspace)
        self._writable = _Trees((self.workspace, *map(_canonical, writable)))
        self._readable = self._writable.joined_with(map(_canonical, readable))
        self.hidden: Sequence[Path] = tuple(map(_canonical, hidden))
        self._hidden_trees = _Trees(self.hidden)
        self._uploads = None if uploads is None else _canonical(uploads)
        self._keep = keep
        self._changing = changing
        self._consented = _Trees()
        self._hidden_identities: tuple[float, frozenset[tuple[int, int]]] = (-math.inf, frozenset())
        self._stamps: dict[Path, Stamp] = {}

    def resolve(self, path: str, *, write: bool) -> Path:
        if not path:
            raise ToolFailedError("the path is empty; name a file or a folder")
        if "\0" in path:
            raise ToolFailedError("a path cannot hold a NUL character; remove it")
        if path.startswith(_UPLOADS_PREFIX):
            return self._upload(path, write=write)
        resolved = _canonical(self.workspace / path)
        if resolved not in self._readable:
            raise ToolFailedError(
                f"{path} is outside the workspace{_link_note(path, resolved, self.workspace)}; "
                f"ask for access to it, or use a path inside {self.workspace}"
            )
        if self._is_hidden(resolved) and resolved not in self._consented:
            raise ToolFailedError(
                f"{path} is hidden from tools, because it may hold secrets; ask for access to it, "
                f"or use another path inside {self.workspace}"
            )
        if write and resolved not in self._writable:
            raise ToolFailedError(
                f"{path} may be read but not written, it is outside the workspace; "
                f"ask for access to it, or use a path inside {self.workspace}"
            )
        return resolved

    def name(self, path: Path) -> str:
        text, root = str(path), str(self.workspace)
        if self._uploads is not None and text.startswith(_with_separator(str(self._uploads))):
            return _UPLOADS_PREFIX + text[len(_with_separator(str(self._uploads))) :]
        if path == self.workspace:
            text = "."
        elif text.startswith(_with_separator(root)):
            text = text[len(_with_separator(root)) :]
        # A name may not be UTF-8, but a text for a model must be.
        return os.fsencode(text).decode(errors="backslashreplace")

    def _upload(self, path: str, *, write: bool) -> Path:
        """Return the path of an attachment, by the same name that a command uses."""
        if self._uploads is None:
            raise ToolFailedError(f"{path}: nothing can be attached here")
        resolved = _canonical(self._uploads / path[len(_UPLOADS_PREFIX) :])
        if resolved not in _Trees((self._uploads,)):
            raise ToolFailedError(f"{path} leads out of the attachments; name one of them")
        if write:
            raise ToolFailedError(f"{path} is as a person sent it; write a file of your own")
        return resolved

    def seen(self, path: Path, stamp: Stamp | None) -> None:
        self._stamps.pop(path, None)
        if stamp is not None:
            self._stamps[path] = stamp
            if len(self._stamps) > MAX_STAMPS:
                self._stamps.pop(next(iter(self._stamps)), None)

    def last_seen(self, path: Path) -> Stamp | None:
        return self._stamps.get(path)

    async def keep(self, data: bytes) -> str:
        return await self._keep(data)

    async def changing(self, changes: Sequence[FileChange], call_id: str | None) -> None:
        await self._changing(changes, call_id)

    def granting(self, needs: Needs) -> FileAccess:
        """Return a view with more trees, which may even be hidden; it shares the stamps."""
        view = copy.copy(self)
        writable = tuple(_canonical(Path(path)) for path in needs.writes)
        readable = tuple(_canonical(Path(path)) for path in needs.reads)
        view._writable = self._writable.joined_with(writable)
        view._readable = self._readable.joined_with((*writable, *readable))
        view._consented = _Trees((*writable, *readable))
        return view

    def _is_hidden(self, path: Path) -> bool:
        if not self.hidden:
            return False
        if path in self._hidden_trees:
            return True
        # The same folder can have another name: a second mount or letters of the other case; a file
        # can have hard links. Device and inode number identify it.
        hidden = self._identities()
        return any(_identity(part) in hidden for part in _with_parents(str(path)))

    def _identities(self) -> frozenset[tuple[int, int]]:
        """Return device and inode number of the hidden trees; cached, because there are many."""
        now = time.monotonic()
        read_at, identities = self._hidden_identities
        if now - read_at > IDENTITIES_TTL:
            identities = frozenset(
                identity for tree in self.hidden if (identity := _identity(tree))
            )
            self._hidden_identities = (now, identities)
        return identities


def _canonical(path: Path) -> Path:
    return Path(os.path.realpath(path))


class _Trees:
    """Folders with everything below them. Every call asks, so it only compares text."""

    def __init__(self, roots: Iterable[Path] = ()) -> None:
        self._roots = tuple(_with_separator(str(root)) for root in roots)

    def joined_with(self, roots: Iterable[Path]) -> _Trees:
        union = _Trees(roots)
        union._roots = self._roots + union._roots
        return union

    def __contains__(self, path: Path) -> bool:
        return _with_separator(str(path)).startswith(self._roots)


def _with_separator(tree: str) -> str:
    return tree if tree.endswith(os.sep) else tree + os.sep


def _with_parents(path: str) -> Iterator[str]:
    """Yield a canonical path and all its parent folders."""
    yield path
    while path != os.sep:
        path = os.path.dirname(path)  # noqa: PTH120 (a path object for each part would be slow)
        yield path


def _identity(path: str | Path) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _link_note(path: str, resolved: Path, workspace: Path) -> str:
    """Return where a link leads, if the path has one."""
    normalized = os.path.normpath(workspace / path)
    return "" if str(resolved) == normalized else f" (it leads to {resolved})"


# -- risks, judged without reading the disk


def reading_risk(args: Any, workspace: Path) -> Risk:
    """Judge only the text of the path; the call itself refuses a link that leads outside."""
    outside = _outside(_normalized([args.path], workspace), workspace)
    if not outside:
        return Risk("none", changes=False)
    reason = f"reads outside the workspace: {', '.join(outside)}"
    return Risk("low", reason, outside, Needs(reads=outside), changes=False)


def writing_risk(paths: Iterable[str], workspace: Path) -> Risk:
    normalized = _normalized(paths, workspace)
    outside = _outside(normalized, workspace)
    if not outside:
        reason = "changes files of the workspace"
        return Risk("low", reason, normalized, folder=os.path.normpath(workspace))
    reason = f"writes outside the workspace: {', '.join(outside)}"
    return Risk("high", reason, normalized, Needs(writes=outside))


def _normalized(paths: Iterable[str], workspace: Path) -> tuple[str, ...]:
    """Return absolute paths without duplicates; links are not resolved."""
    joined = (path if path.startswith(os.sep) else f"{workspace}/{path}" for path in paths)
    return tuple(dict.fromkeys(map(os.path.normpath, joined)))


def _outside(paths: Iterable[str], workspace: Path) -> tuple[str, ...]:
    root = _with_separator(str(workspace))
    return tuple(path for path in paths if not _with_separator(path).startswith(root))
