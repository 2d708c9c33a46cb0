"""Which files a session may touch, and what it has seen of them.

The one implementation of the port `Files`. It decides by canonical paths only and opens nothing;
where blobs and changes are kept is told to it as two functions.
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

# What a long session may have looked at. Who falls out has to read again before it overwrites.
MOST_SEEN: Final = 10_000

# How long it counts what the hidden trees are; their paths count at once, whatever they are.
IDENTITIES_HOLD: Final = 1.0

_IN_UPLOADS: Final = f"${UPLOADS}/"

Keep = Callable[[bytes], Awaitable[str]]
Changing = Callable[[Sequence[FileChange], str | None], Awaitable[None]]


class FileAccess:
    """Granted trees, hidden trees inside them, and the stamps of what was seen.

    Stamps are set and read from the threads of calls. Each is one operation on a dict, and two
    calls on one path never run at the same time: their effects say so.
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
        self._readable = self._writable.and_(map(_canonical, readable))
        self.hidden: Sequence[Path] = tuple(map(_canonical, hidden))
        self._kept = _Trees(self.hidden)
        self._uploads = None if uploads is None else _canonical(uploads)
        self._keep = keep
        self._changing = changing
        self._consented = _Trees()
        self._known_hidden: tuple[float, frozenset[tuple[int, int]]] = (-math.inf, frozenset())
        self._seen: dict[Path, Stamp] = {}

    def resolve(self, path: str, *, write: bool) -> Path:
        if not path:
            raise ToolFailedError("the path is empty; name a file or a folder")
        if "\0" in path:
            raise ToolFailedError("a path cannot hold a NUL character; remove it")
        if path.startswith(_IN_UPLOADS):
            return self._upload(path, write=write)
        found = _canonical(self.workspace / path)
        if found not in self._readable:
            raise ToolFailedError(
                f"{path} is outside the workspace{_leads(path, found, self.workspace)}; "
                f"ask for access to it, or use a path inside {self.workspace}"
            )
        if self._is_hidden(found) and found not in self._consented:
            raise ToolFailedError(
                f"{path} is kept from tools, it may hold secrets; ask for access to it, "
                f"or use another path inside {self.workspace}"
            )
        if write and found not in self._writable:
            raise ToolFailedError(
                f"{path} may be read but not written, it is outside the workspace; "
                f"ask for access to it, or use a path inside {self.workspace}"
            )
        return found

    def name(self, path: Path) -> str:
        text, root = str(path), str(self.workspace)
        if self._uploads is not None and text.startswith(_below(str(self._uploads))):
            return _IN_UPLOADS + text[len(_below(str(self._uploads))) :]
        if path == self.workspace:
            text = "."
        elif text.startswith(_below(root)):
            text = text[len(_below(root)) :]
        # A name need not be UTF-8, and what a model is sent must be.
        return os.fsencode(text).decode(errors="backslashreplace")

    def _upload(self, path: str, *, write: bool) -> Path:
        """What a person attached, as a command would name it too."""
        if self._uploads is None:
            raise ToolFailedError(f"{path}: nothing can be attached here")
        found = _canonical(self._uploads / path[len(_IN_UPLOADS) :])
        if found not in _Trees((self._uploads,)):
            raise ToolFailedError(f"{path} leads out of the attachments; name one of them")
        if write:
            raise ToolFailedError(f"{path} is as a person sent it; write a file of your own")
        return found

    def seen(self, path: Path, stamp: Stamp | None) -> None:
        self._seen.pop(path, None)
        if stamp is not None:
            self._seen[path] = stamp
            if len(self._seen) > MOST_SEEN:
                self._seen.pop(next(iter(self._seen)), None)

    def last_seen(self, path: Path) -> Stamp | None:
        return self._seen.get(path)

    async def keep(self, data: bytes) -> str:
        return await self._keep(data)

    async def changing(self, changes: Sequence[FileChange], call_id: str | None) -> None:
        await self._changing(changes, call_id)

    def granting(self, needs: Needs) -> FileAccess:
        """A view that shares what was seen. What a person consented to may even be hidden."""
        view = copy.copy(self)
        writable = tuple(_canonical(Path(path)) for path in needs.writes)
        readable = tuple(_canonical(Path(path)) for path in needs.reads)
        view._writable = self._writable.and_(writable)
        view._readable = self._readable.and_((*writable, *readable))
        view._consented = _Trees((*writable, *readable))
        return view

    def _is_hidden(self, path: Path) -> bool:
        if not self.hidden:
            return False
        if path in self._kept:
            return True
        # The same folder can have another name: a second mount, letters of the other case, and
        # for a file a hard link. What it is on the disk tells.
        hidden = self._identities()
        return any(_identity(part) in hidden for part in _upwards(str(path)))

    def _identities(self) -> frozenset[tuple[int, int]]:
        """What the hidden trees are on the disk; looked up now and then, for there are many."""
        now = time.monotonic()
        looked_at, found = self._known_hidden
        if now - looked_at > IDENTITIES_HOLD:
            found = frozenset(each for tree in self.hidden if (each := _identity(tree)))
            self._known_hidden = (now, found)
        return found


def _canonical(path: Path) -> Path:
    return Path(os.path.realpath(path))


class _Trees:
    """Folders with all that is below them. Asked by every call: a comparison of text, no more."""

    def __init__(self, roots: Iterable[Path] = ()) -> None:
        self._roots = tuple(_below(str(root)) for root in roots)

    def and_(self, roots: Iterable[Path]) -> _Trees:
        more = _Trees(roots)
        more._roots = self._roots + more._roots
        return more

    def __contains__(self, path: Path) -> bool:
        return _below(str(path)).startswith(self._roots)


def _below(tree: str) -> str:
    return tree if tree.endswith(os.sep) else tree + os.sep


def _upwards(path: str) -> Iterator[str]:
    """A canonical path and all that it is in."""
    yield path
    while path != os.sep:
        path = os.path.dirname(path)  # noqa: PTH120 (a path object a part would take most of the time)
        yield path


def _identity(path: str | Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _leads(path: str, found: Path, workspace: Path) -> str:
    """Where it really is, if the path does not say so itself."""
    plain = os.path.normpath(workspace / path)
    return "" if str(found) == plain else f" (it leads to {found})"


# -- what is judged before the disk is asked


def reading_risk(args: Any, workspace: Path) -> Risk:
    """Only by how the path is written; a link that leads out is refused when the call looks."""
    outside = _outside(_plain([args.path], workspace), workspace)
    if not outside:
        return Risk("none", changes=False)
    why = f"reads outside the workspace: {', '.join(outside)}"
    return Risk("low", why, outside, Needs(reads=outside), changes=False)


def writing_risk(paths: Iterable[str], workspace: Path) -> Risk:
    plain = _plain(paths, workspace)
    outside = _outside(plain, workspace)
    if not outside:
        why = "changes files of the workspace"
        return Risk("low", why, plain, folder=os.path.normpath(workspace))
    why = f"writes outside the workspace: {', '.join(outside)}"
    return Risk("high", why, plain, Needs(writes=outside))


def _plain(paths: Iterable[str], workspace: Path) -> tuple[str, ...]:
    """Absolute, each once, as they are written."""
    joined = (path if path.startswith(os.sep) else f"{workspace}/{path}" for path in paths)
    return tuple(dict.fromkeys(map(os.path.normpath, joined)))


def _outside(plain: Iterable[str], workspace: Path) -> tuple[str, ...]:
    root = _below(str(workspace))
    return tuple(path for path in plain if not _below(path).startswith(root))
