"""Shows what a folder brings along, and trusts it, or no more."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.params import JSONBody, QueryParameter

from keryx.app.trust.description import DescribedFolder, describe
from keryx.app.trust.trusted_folders import TrustedFolder, read_folders
from keryx.server import schemas
from keryx.server.problems import ProblemError, conflict, not_found
from keryx.server.routes.params import TheCaller, TheService

Workspace = Annotated[
    str, QueryParameter(min_length=1, max_length=4_096, description="The path of a folder.")
]


class TrustBody(msgspec.Struct, frozen=True):
    """A folder, and the digest of what was shown of it."""

    workspace: schemas.Folder
    digest: schemas.Word


class TrustedFolders(msgspec.Struct, frozen=True):
    folders: tuple[TrustedFolder, ...]


@get("/api/trust")
async def list_folders(service: TheService) -> TrustedFolders:
    """The folders that are trusted."""
    return TrustedFolders(tuple(await read_folders(service.host_client.store)))


@get("/api/trust/folder")
async def show_folder(
    service: TheService, caller: TheCaller, workspace: Workspace
) -> DescribedFolder:
    """What a folder brings along, and whether it is trusted; a missing folder brings nothing.

    Folders of named users bring nothing: only the owner trusts folders.
    """
    if caller.user:
        return DescribedFolder(workspace=workspace)
    try:
        folder = await service.folder(workspace)
    except ProblemError:
        return DescribedFolder(workspace=workspace)
    return await describe(service.host_client, folder)


@post("/api/trust", status_code=200)
async def trust_folder(
    service: TheService, caller: TheCaller, data: JSONBody[TrustBody]
) -> DescribedFolder:
    """Trust what a folder brings along, if it is still what was shown."""
    workspace = await service.folder(data.workspace)
    folder = await describe(service.host_client, workspace)
    if not folder.digest or folder.digest != data.digest:
        raise conflict(
            "What this folder brings along has changed since it was shown",
            "look at it again, then decide",
        )
    await service.host_client.trust(
        TrustedFolder(
            workspace=workspace, digest=folder.digest, trusted_at=time.time(), by=caller.name
        )
    )
    return msgspec.structs.replace(folder, trusted=True)


@delete("/api/trust", status_code=204)
async def distrust_folder(service: TheService, workspace: Workspace) -> None:
    """Trust a folder no more, by the path that the list shows."""
    if not await service.host_client.distrust(workspace):
        raise not_found("This folder is not trusted", "the list of trusted folders shows paths")


ROUTES = (list_folders, show_folder, trust_folder, distrust_folder)
