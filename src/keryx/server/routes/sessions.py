"""Creates, lists, searches, shows, changes and deletes sessions."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from litestar import delete, get, patch, post
from litestar.params import FromQuery, JSONBody, QueryParameter
from msgspec import UNSET, UnsetType

from keryx import commands as cm
from keryx.app.host.socket_protocol import NewSession
from keryx.config import DEFAULT
from keryx.ids import new_id
from keryx.messages import EFFORT_ADVICE, EFFORTS, Effort
from keryx.ports.store import SessionRow, Store
from keryx.ports.tags import TagCount
from keryx.server import schemas
from keryx.server.problems import ProblemError, not_found, unprocessable
from keryx.server.routes.params import (
    PAGE,
    Before,
    IdempotencyKey,
    Limit,
    SessionId,
    TheCaller,
    TheService,
)
from keryx.server.service import Service

T = TypeVar("T")
Search = Annotated[
    str | None, QueryParameter(max_length=500, description="Words to be found in all sessions.")
]

Tag = Annotated[str | None, QueryParameter(max_length=200, description="In any case.")]
TaughtMemory = Annotated[
    Literal["keep", "forget"],
    QueryParameter(description="What becomes of what only this session taught."),
]


@get("/api/sessions")
async def list_sessions(
    service: TheService,
    search: Search = None,
    limit: Limit = PAGE,
    before: Before = None,
    archived: FromQuery[bool] = False,  # noqa: FBT002 (a parameter of the query)
    parent: FromQuery[str] = "",
    tag: Tag = None,
) -> schemas.SessionList:
    """The sessions, last changed first; or with `search`, what was found in them.

    With `parent`, the sessions of the child agents of that session. Otherwise only those child
    agents are listed that wait for a person, on the first page. With `tag`, only sessions with it.
    """
    store = service.host_client.store
    if search is not None:
        return schemas.SessionList(hits=await _hits(store, search, limit))
    rows = await store.sessions(
        limit=limit, before=before, archived=archived, parent=parent, tag=tag
    )
    following = rows[-1].position if len(rows) == limit else None
    if before is None and not archived and not parent and tag is None:
        rows = sorted([*rows, *await _waiting_children(store)], key=lambda row: -row.position)
    return schemas.SessionList(sessions=tuple(rows), next=following)


async def _waiting_children(store: Store) -> list[SessionRow]:
    """Return the child agents that wait for a person, who could not find them otherwise."""
    rows = [await store.session(session_id) for session_id in await store.unfinished()]
    return [row for row in rows if row is not None and row.parent and row.state == "waiting"]


async def _hits(store: Store, words: str, limit: int) -> tuple[schemas.Hit, ...]:
    hits = await store.search(words, limit=limit) if words.strip() else []
    rows = {hit.session_id: await store.session(hit.session_id) for hit in hits}
    return tuple(
        schemas.Hit(
            session=row,
            seq=hit.seq,
            turn_id=hit.turn_id,
            kind=hit.kind,
            snippet=hit.snippet,
            at=hit.at,
        )
        for hit in hits
        if (row := rows[hit.session_id]) is not None  # deleted meanwhile
    )


class TagList(msgspec.Struct, frozen=True):
    """The tags that sessions have, in the order of the alphabet."""

    tags: tuple[TagCount, ...]


@get("/api/tags")
async def list_tags(service: TheService) -> TagList:
    """The tags of all sessions, and how many sessions have each."""
    return TagList(tuple(await service.host_client.store.tags()))


@post("/api/sessions", status_code=201)
async def open_session(
    service: TheService,
    data: JSONBody[schemas.NewSessionBody],
    idempotency_key: IdempotencyKey = None,
) -> schemas.View:
    """A new session. The same `session_id` again gives that session as it is."""
    session_id = data.session_id or _own_id(idempotency_key) or new_id("s")
    if await service.host_client.store.session(session_id) is None:
        _check_names(service, data.profile, data.personality)
        effort = _effort(data.effort)
        new_session = NewSession(
            session_id=session_id,
            workspace=await service.folder(data.workspace or "."),
            model=data.model,
            tools=await _tools(service, data.tools, data.profile),
            personality=data.personality,
            effort=effort,
            profile=data.profile,
            title=data.title or "",
            approvals=data.approvals,
            read_only=data.read_only,
        )
        await service.host_client.open(new_session)
    return await service.view(session_id)


def _own_id(key: str | None) -> str | None:
    if key is None:
        return None
    if not schemas.is_id(key):
        raise ProblemError(
            400,
            "bad_request",
            "The Idempotency-Key of a new session becomes its session_id, and this one cannot",
            "use for example `s-` and the hexadecimal digits of a UUID",
        )
    return key


def _check_names(service: Service, profile: str | None, personality: str | None) -> None:
    profiles = service.host_client.config.profiles
    if profile is not None and profile not in profiles:
        raise unprocessable("There is no profile with that name", f"choose {', '.join(profiles)}")
    personalities = profiles[profile or DEFAULT].personalities
    if personality is not None and personality not in personalities:
        names = ", ".join(sorted(personalities)) or "none: config.toml defines no personalities"
        raise unprocessable("There is no personality with that name", f"choose {names}")


def _effort(name: str | None) -> Effort | None:
    if name is None:
        return None
    for effort in EFFORTS:
        if effort == name:
            return effort
    raise unprocessable("There is no effort with that name", EFFORT_ADVICE)


async def _tools(
    service: Service, names: tuple[str, ...] | None, profile: str | None
) -> tuple[str, ...] | None:
    if names is None:
        return await service.host_client.tools_for("web", profile or DEFAULT)
    return (await service.host_client.tools_to_choose()).chosen(names)


@get("/api/sessions/{session_id:str}")
async def show_session(service: TheService, session_id: SessionId) -> schemas.View:
    """The session as it is now: open its event stream with `after=seq`."""
    return await service.view(session_id)


@patch("/api/sessions/{session_id:str}")
async def change_session(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    data: JSONBody[schemas.SessionChanges],
) -> schemas.View:
    """Change the settings that the body names; a running turn keeps its own."""
    current = (await service.view(session_id)).settings
    profile = _or(data.profile, current.profile)
    if data.profile is not UNSET or data.personality is not UNSET:
        _check_names(service, profile, _or(data.personality, current.personality))
    tools, workspace = data.tools, data.workspace
    if isinstance(tools, tuple):
        tools = (await service.host_client.tools_to_choose()).chosen(tools)
    if isinstance(workspace, str):
        workspace = await service.folder(workspace)
    command = cm.ChangeSession(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        title=data.title,
        pinned=data.pinned,
        archived=data.archived,
        model=data.model,
        effort=UNSET if isinstance(data.effort, UnsetType) else _effort(data.effort),
        personality=data.personality,
        profile=data.profile,
        tools=tools,
        workspace=workspace,
        approvals=data.approvals,
        read_only=data.read_only,
        tags=data.tags,
    )
    await service.do(command)
    return await service.view(session_id)


def _or(value: T | UnsetType, current: T) -> T:
    return current if isinstance(value, UnsetType) else value


@delete("/api/sessions/{session_id:str}", status_code=204)
async def delete_session(
    service: TheService, session_id: SessionId, memory: TaughtMemory = "forget"
) -> None:
    """Delete the session and everything in it; with `memory=keep`, not what it taught."""
    if not await service.host_client.delete(session_id, keep_memory=memory == "keep"):
        raise not_found(f"There is no session {session_id}", "it may have been deleted before")


ROUTES = (list_sessions, list_tags, open_session, show_session, change_session, delete_session)
