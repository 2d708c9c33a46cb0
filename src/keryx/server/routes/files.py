"""Reads files of a session's workspace and its blobs, and stores uploads.

Paths are confined like those of the session's tools: the same code refuses links that lead out,
`..`, absolute paths and hidden folders.
"""

from __future__ import annotations

import mimetypes
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn, TypeVar
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.params import QueryParameter

from keryx.app.tools import hidden_places
from keryx.errors import ToolFailedError
from keryx.ports.files import FileChange
from keryx.server import schemas
from keryx.server.problems import ProblemError, not_found, unprocessable
from keryx.server.routes.params import BlobHash, SessionId, TheService
from keryx.server.service import PICTURES, UNKNOWN_TYPE, Service, clean_media_type, clean_name
from keryx.tools.files import content, safe_open
from keryx.tools.files.file_access import FileAccess

SHOWN: Final = 512 * 1024
"""Bytes of a file that are shown."""
MOST_ENTRIES: Final = 5_000
LARGEST_PICTURE: Final = 25 * 1024 * 1024
LARGEST_DOWNLOAD: Final = 256 * 1024 * 1024

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


@get("/api/sessions/{session_id:str}/download", media_type=UNKNOWN_TYPE)
async def download(service: TheService, session_id: SessionId, path: Within) -> Response[bytes]:
    """A file of the session's workspace, to save."""
    data = await _read(service, session_id, path, _whole)
    name = quote(Path(path).name)
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
        "cache-control": "private, no-cache",
    }
    return Response(data, media_type=UNKNOWN_TYPE, headers=headers)


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
            "That file doesn't exist, or it cannot be read", "list its folder to see what is there"
        ) from None


def _shown(target: Path, name: str) -> schemas.FolderShown | schemas.FileShown:
    return _folder(target, name) if safe_open.is_folder(target, name) else _file(target, name)


def _picture(target: Path, name: str) -> bytes:
    with safe_open.open_file(target, name) as file:
        if file.size > LARGEST_PICTURE or content.image_type(file.read(0, 64)) not in PICTURES:
            raise not_found(
                f"{name} cannot be shown as a picture",
                f"only PNG, JPEG, GIF and WebP up to {LARGEST_PICTURE >> 20} MB can; open it as a "
                "file",
            )
        return file.read(0, file.size)


def _whole(target: Path, name: str) -> bytes:
    with safe_open.open_file(target, name) as file:
        if file.size > LARGEST_DOWNLOAD:
            raise ProblemError(
                413,
                "too_large",
                f"{name} is larger than {LARGEST_DOWNLOAD >> 20} MB, so it cannot be downloaded",
                "copy it from the machine that Keryx runs on",
            )
        return file.read(0, file.size)


def _refuse() -> NoReturn:
    raise ProblemError(
        403,
        "outside",
        "That path is outside the session's workspace, or in a hidden folder",
        "use a path inside the workspace",
    )


def _folder(target: Path, name: str) -> schemas.FolderShown:
    entries: list[schemas.Entry] = []
    with safe_open.open_folder(target, listed=True) as folder, os.scandir(folder) as scan:
        for entry in scan:
            entries.append(_entry(entry))
            if len(entries) > MOST_ENTRIES:
                break
    first = sorted(entries[:MOST_ENTRIES], key=lambda entry: (entry.kind != "folder", entry.name))
    truncated = len(entries) > MOST_ENTRIES
    return schemas.FolderShown(path=name, entries=tuple(first), truncated=truncated)


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
    """A blob that this session refers to: a picture to show, or anything else to save."""
    await service.row(session_id)
    store = service.host_client.store
    data = await store.blob(blob_hash) if await store.names_blob(session_id, blob_hash) else None
    if data is None:
        raise not_found(
            "The session has no attachment or result with that hash", "its events name those it has"
        )
    kind = content.image_type(data)
    is_picture = kind is not None and kind in PICTURES
    return Response(
        data,
        media_type=kind if is_picture else UNKNOWN_TYPE,
        headers={
            # Without a file name: a blob has none, and a link to it may set one.
            "content-disposition": "inline" if is_picture else "attachment",
            # The content never changes, but access is checked each time.
            "cache-control": "private, no-cache",
            "etag": f'"{blob_hash}"',
        },
    )


async def _keep(data: bytes) -> str:
    raise AssertionError(f"{len(data)} bytes to store, but files are only read here")


async def _changing(changes: Sequence[FileChange], call_id: str | None) -> None:
    raise AssertionError(f"{len(changes)} changes by {call_id}, but files are only read here")


# -- uploads

GRACE: Final = 8 * 1024 * 1024
"""Bytes beyond the limit that are read and discarded."""

FileName = Annotated[str, QueryParameter(max_length=1_000, description="What the file is called.")]


@post("/api/uploads", status_code=201, request_max_body_size=None)
async def upload(
    request: Request[Any, Any, Any], service: TheService, name: FileName = ""
) -> schemas.Uploaded:
    """Upload a file to attach: the body is its bytes, Content-Type its media type."""
    data = await read_upload(request, service.upload_limit)
    if not data:
        raise unprocessable("The upload is empty", "send the bytes of the file as the body")
    uploaded = schemas.Uploaded(
        upload_id=await service.host_client.keep_upload(data),
        name=clean_name(name),
        media_type=clean_media_type(request.headers.get("content-type", "")),
        size=len(data),
    )
    service.remember(uploaded)
    return uploaded


async def read_upload(request: Request[Any, Any, Any], limit: int) -> bytes:
    """Read the body up to the limit; `ProblemError` if it is larger.

    Some bytes beyond the limit are read, because a client that is cut off while it sends does not
    see the answer.
    """
    declared = request.headers.get("content-length", "")
    pieces, size, most = list[bytes](), 0, limit + GRACE
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(limit)
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            break
        if size > limit:
            pieces.clear()
        else:
            pieces.append(piece)
    if size > limit:
        raise _too_large(limit)
    return b"".join(pieces)


def _too_large(limit: int) -> ProblemError:
    return ProblemError(
        413,
        "too_large",
        f"The file is too large: an upload may have at most {limit} bytes",
        "make it smaller, or put it into the workspace",
        headers={"connection": "close"},
    )


ROUTES = (look, picture, download, blob, upload)
