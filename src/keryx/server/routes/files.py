"""The workspace of a session, for looking at it, and the blobs that the session names.

Paths are confined as the tools of the session are: links that lead out, `..`, absolute paths and
hidden trees are refused by the same code.
"""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final, NoReturn, TypeVar

from litestar import Response, get
from litestar.params import QueryParameter

from keryx.app.tools import hidden_places
from keryx.errors import ToolFailedError
from keryx.ports.files import FileChange
from keryx.server import schemas
from keryx.server.problems import ProblemError, not_found
from keryx.server.routes.params import BlobHash, SessionId, TheService
from keryx.server.service import PICTURES, UNKNOWN_TYPE, Service
from keryx.tools.files import content, safe_open
from keryx.tools.files.file_access import FileAccess

SHOWN: Final = 512 * 1024
"""Bytes of a file that are shown."""
MOST_ENTRIES: Final = 5_000
LARGEST_PICTURE: Final = 25 * 1024 * 1024

T = TypeVar("T")

Within = Annotated[
    str, QueryParameter(max_length=4_096, description="Relative to the session's workspace.")
]


@get("/api/sessions/{session_id:str}/files")
async def look(
    service: TheService, session_id: SessionId, path: Within = "."
) -> schemas.FolderShown | schemas.FileShown:
    """A folder or file of the session's workspace."""
    return await _read(service, session_id, path or ".", _shown)


@get("/api/sessions/{session_id:str}/pictures", media_type=UNKNOWN_TYPE)
async def picture(service: TheService, session_id: SessionId, path: Within) -> Response[bytes]:
    """A picture of the session's workspace."""
    data = await _read(service, session_id, path, _picture)
    kind = content.image_type(data)
    return Response(data, media_type=kind, headers={"cache-control": "private, no-cache"})


async def _read(service: Service, session_id: str, path: str, read: Callable[[Path, str], T]) -> T:
    await service.row(session_id)
    settings = (await service.host_client.view(session_id)).settings
    hidden = hidden_places(service.host_client.config)
    return await service.threads.to_thread(_look, settings.workspace, path, hidden, read)


def _look(workspace: str, path: str, hidden: Sequence[Path], read: Callable[[Path, str], T]) -> T:
    if Path(path).is_absolute() or path.startswith(("~", "$")):
        _refuse()
    space = FileAccess(Path(workspace), keep=_keep, changing=_changing, hidden=hidden)
    try:
        target = space.resolve(path, write=False)
    except (ToolFailedError, ValueError):
        _refuse()
    try:
        return read(target, space.name(target))
    except (ToolFailedError, OSError, ValueError):
        raise not_found(
            "there is no such file, or it cannot be read", "list the folder that it should be in"
        ) from None


def _shown(target: Path, name: str) -> schemas.FolderShown | schemas.FileShown:
    return _folder(target, name) if safe_open.is_folder(target, name) else _file(target, name)


def _picture(target: Path, name: str) -> bytes:
    with safe_open.open_file(target, name) as file:
        if file.size > LARGEST_PICTURE or content.image_type(file.read(0, 64)) not in PICTURES:
            raise not_found(f"{name} is no picture that can be shown", "look at it as a file")
        return file.read(0, file.size)


def _refuse() -> NoReturn:
    raise ProblemError(
        403,
        "outside",
        "that is outside the workspace, or kept from view",
        "use a path inside the session's workspace",
    )


def _folder(target: Path, name: str) -> schemas.FolderShown:
    entries: list[schemas.Entry] = []
    with safe_open.open_folder(target, listed=True) as folder, os.scandir(folder) as found:
        for entry in found:
            entries.append(_entry(entry))
            if len(entries) > MOST_ENTRIES:
                break
    shown = sorted(entries[:MOST_ENTRIES], key=lambda each: (each.kind != "folder", each.name))
    truncated = len(entries) > MOST_ENTRIES
    return schemas.FolderShown(path=name, entries=tuple(shown), truncated=truncated)


def _entry(entry: os.DirEntry[str]) -> schemas.Entry:
    name = os.fsencode(entry.name).decode(errors="backslashreplace")
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return schemas.Entry(name, "other", None)
    if stat.S_ISDIR(status.st_mode):
        return schemas.Entry(name, "folder", None)
    if stat.S_ISREG(status.st_mode):
        return schemas.Entry(name, "file", status.st_size)
    return schemas.Entry(name, "link" if stat.S_ISLNK(status.st_mode) else "other", None)


def _file(target: Path, name: str) -> schemas.FileShown:
    with safe_open.open_file(target, name) as file:
        head, size = file.read(0, SHOWN), file.size
    cut = size > len(head)
    encoding = content.encoding_of(head[: content.SAMPLE], cut=len(head) > content.SAMPLE)
    text = None if encoding is None else head.decode(encoding, errors="replace")
    return schemas.FileShown(
        path=name,
        size=size,
        text=text,
        media_type=content.image_type(head) or mimetypes.guess_type(name)[0] or _plain(text),
        truncated=cut and text is not None,
    )


def _plain(text: str | None) -> str:
    return UNKNOWN_TYPE if text is None else "text/plain"


@get("/api/sessions/{session_id:str}/blobs/{blob_hash:str}", media_type=UNKNOWN_TYPE)
async def blob(service: TheService, session_id: SessionId, blob_hash: BlobHash) -> Response[bytes]:
    """A blob that this session names: pictures to be shown, all else to be saved."""
    await service.row(session_id)
    store = service.host_client.store
    data = await store.blob(blob_hash) if await store.names_blob(session_id, blob_hash) else None
    if data is None:
        raise not_found("the session names no such blob", "see its events for those it does")
    kind = content.image_type(data)
    shown = kind is not None and kind in PICTURES
    return Response(
        data,
        media_type=kind if shown else UNKNOWN_TYPE,
        headers={
            # Without a name: a blob has none, and the link that leads to it may give it one.
            "content-disposition": "inline" if shown else "attachment",
            # It is what its name says, for ever; but who may see it is asked each time.
            "cache-control": "private, no-cache",
            "etag": f'"{blob_hash}"',
        },
    )


async def _keep(data: bytes) -> str:
    raise AssertionError(f"{len(data)} bytes to keep, from one who only looks")


async def _changing(changes: Sequence[FileChange], call_id: str | None) -> None:
    raise AssertionError(f"{len(changes)} changes by {call_id}, from one who only looks")


ROUTES = (look, picture, blob)
