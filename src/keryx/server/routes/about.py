"""Facts about the server: health, models, tools, profiles, usage."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from litestar import get
from litestar.params import QueryParameter

from keryx.ports.usage import UsageRow
from keryx.server.routes.params import TheService
from keryx.server.schemas import ID_PATTERN

RECENT = 200
"""The last sessions whose workspaces are offered again."""

OfSession = Annotated[
    str | None, QueryParameter(pattern=ID_PATTERN, description="Only of this session.")
]

Since = Annotated[
    float | None,
    QueryParameter(
        ge=0,
        le=2**53,
        description="Only since then, in seconds; a quarter of an hour counts whole.",
    ),
]


class Health(msgspec.Struct, frozen=True):
    version: str
    asks_name: bool = False
    """Whether there are named users, who sign in with their names."""
    status: Literal["ok"] = "ok"


class ModelList(msgspec.Struct, frozen=True):
    default: str | None
    models: tuple[str, ...]


class ToolInfo(msgspec.Struct, frozen=True):
    name: str
    description: str
    toolset: str


class ToolList(msgspec.Struct, frozen=True):
    tools: tuple[ToolInfo, ...]
    toolsets: tuple[str, ...]


class ProfileInfo(msgspec.Struct, frozen=True):
    name: str
    personalities: tuple[str, ...]
    model: str | None


class ProfileList(msgspec.Struct, frozen=True):
    profiles: tuple[ProfileInfo, ...]
    workspace: str
    workspaces: tuple[str, ...]


class UsageList(msgspec.Struct, frozen=True):
    rows: tuple[UsageRow, ...]


@get("/api/health")
async def health(service: TheService) -> Health:
    """Whether the server runs."""
    await service.access.reload()
    return Health(service.version, asks_name=bool(service.access.users))


@get("/api/models")
async def models(service: TheService) -> ModelList:
    """The models that are configured and found."""
    models = service.host_client.models
    return ModelList(models.default or None, tuple(dict.fromkeys(models.names())))


@get("/api/tools")
async def tools(service: TheService) -> ToolList:
    """The tools of this host, and their toolsets."""
    tools = await service.host_client.tools_to_choose()
    toolset_of = {tool.name: name for name, members in tools.sets.items() for tool in members}
    return ToolList(
        tuple(
            ToolInfo(tool.name, tool.description, toolset_of.get(tool.name, ""))
            for tool in tools.by_name.values()
        ),
        tuple(tools.sets),
    )


@get("/api/profiles")
async def profiles(service: TheService) -> ProfileList:
    """The profiles, and the folders that sessions can work in."""
    rows = await service.host_client.store.sessions(limit=RECENT)
    return ProfileList(
        tuple(
            ProfileInfo(name, tuple(profile.personalities), profile.model)
            for name, profile in service.host_client.config.profiles.items()
        ),
        str(service.workspace),
        tuple(dict.fromkeys(row.workspace for row in rows if row.workspace)),
    )


@get("/api/usage")
async def usage(
    service: TheService, session_id: OfSession = None, since: Since = None
) -> UsageList:
    """What was used, by session and model."""
    return UsageList(tuple(await service.host_client.store.usage(session_id, since=since)))


ROUTES = (health, models, tools, profiles, usage)
