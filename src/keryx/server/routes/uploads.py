"""Uploads: read in pieces, bounded, and named by the hash of what they are."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, post
from litestar.params import QueryParameter

from keryx.server import schemas
from keryx.server.problems import ProblemError, unprocessable
from keryx.server.routes.params import TheService
from keryx.server.service import clean_media_type, clean_name

GRACE = 8 * 1024 * 1024
"""Bytes past the limit that are read and thrown away."""

FileName = Annotated[str, QueryParameter(max_length=1_000, description="What the file is called.")]


@post("/api/uploads", status_code=201, request_max_body_size=None)
async def upload(
    request: Request[Any, Any, Any], service: TheService, name: FileName = ""
) -> schemas.Uploaded:
    """Bring something to be attached: the body is its bytes, Content-Type its media type."""
    data = await _read(request, service.upload_limit)
    if not data:
        raise unprocessable("the upload is empty", "send the bytes of the file as the body")
    kept = schemas.Uploaded(
        upload_id=await service.host_client.keep_upload(data),
        name=clean_name(name),
        media_type=clean_media_type(request.headers.get("content-type", "")),
        size=len(data),
    )
    service.remember(kept)
    return kept


async def _read(request: Request[Any, Any, Any], limit: int) -> bytes:
    """What is past the limit is not kept, and what is far past it not even read.

    A little more is read, because whoever is cut off while sending does not see the answer.
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
        f"an upload may have at most {limit} bytes",
        "make it smaller, or put it into the workspace",
        headers={"connection": "close"},
    )


ROUTES = (upload,)
