"""Files as sessions. What a file says about folders, tools and approvals is not believed."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from litestar import Request, post
from litestar.params import QueryParameter

from keryx.app.portable.adoption import Adoption, adopted, workspace_of
from keryx.app.portable.conversation_log import Place
from keryx.app.portable.formats import Read, read_file
from keryx.app.portable.importing import import_sessions, place_in
from keryx.app.portable.session_file import SessionFile
from keryx.ports.store import SessionRow
from keryx.server.problems import ProblemError, unprocessable
from keryx.server.routes.files import FileName, read_upload
from keryx.server.routes.params import TheService
from keryx.server.schemas import is_id
from keryx.server.service import Service, clean_name

IMPORT_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of a file: all of it is in memory at once."""
MOST_IMPORTED: Final = 1_000
"""Sessions of one file."""

Workspace = Annotated[
    str | None,
    QueryParameter(
        min_length=1,
        max_length=4_096,
        description="The folder of sessions whose own folder is not there.",
    ),
]


class ImportedSessions(msgspec.Struct, frozen=True):
    """The sessions, and how many system messages of other programs were left out."""

    sessions: tuple[SessionRow, ...]
    left_out: int


@post("/api/sessions/import", status_code=201, request_max_body_size=None)
async def import_file(
    request: Request[Any, Any, Any],
    service: TheService,
    name: FileName = "",
    workspace: Workspace = None,
) -> ImportedSessions:
    """Import all sessions of a file, or none: the body is its bytes.

    The file is an export of Keryx, a list of messages with roles, sessions of hermes-agent, or its
    database.
    """
    folder = await service.folder(workspace or ".")
    data = await read_upload(request, IMPORT_LIMIT)
    shown_name = clean_name(name) or "the file"
    client = service.host_client
    sessions = await service.threads.to_thread(read_file, data, shown_name)
    if len(sessions) > MOST_IMPORTED:
        raise unprocessable(
            f"The file has {len(sessions)} sessions, and at most {MOST_IMPORTED} are imported",
            "divide it, and import the parts",
        )
    place = await place_in(client, "web", folder)
    imported = await import_sessions(client, await _adopted(service, sessions, place), place)
    rows = [await service.row(session.session_id) for session in imported]
    return ImportedSessions(tuple(rows), sum(session.left_out for session in imported))


async def _adopted(service: Service, sessions: Read, place: Place) -> Read:
    profiles = service.host_client.config.profiles
    own = [session for session in sessions if isinstance(session, SessionFile)]
    adoption = Adoption(
        place=place,
        folders={folder for folder in map(workspace_of, own) if await _may_use(service, folder)},
        personalities={name: tuple(profile.personalities) for name, profile in profiles.items()},
    )
    return [
        adopted(session, adoption, rename=not is_id(session.session_id))
        if isinstance(session, SessionFile)
        else session
        for session in sessions
    ]


async def _may_use(service: Service, folder: str) -> bool:
    """Return whether a session may work in this folder of this machine."""
    try:
        return await service.folder(folder) == folder
    except (ProblemError, OSError, ValueError):
        return False


ROUTES = (import_file,)
