"""Facts about the server: health, models, tools, profiles, usage."""

from __future__ import annotations

from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

import msgspec
from litestar import Response, get
from litestar.params import QueryParameter

from keryx.app.money.usage_report import Grouping, UsageReport, csv_of, report
from keryx.ports.usage import UsageRow
from keryx.server.problems import unprocessable
from keryx.server.routes.params import TheService
from keryx.server.schemas import ID_PATTERN
from keryx.server.service import Service

RECENT = 200
"""The last sessions whose workspaces are offered again."""
MOST_TITLES: Final = 200
"""The sessions that used most, whose titles a report has."""

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

Until = Annotated[
    float | None,
    QueryParameter(ge=0, le=2**53, description="Only before then, in seconds."),
]
By = Annotated[Grouping, QueryParameter(description="How to group.")]
Zone = Annotated[
    str,
    QueryParameter(
        pattern=r"^[A-Za-z][A-Za-z0-9_+/-]{0,63}$",
        description="The time zone of the days, such as `Europe/Berlin`.",
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


class TitledReport(UsageReport, frozen=True, kw_only=True):
    titles: dict[str, str]
    """The titles of the sessions, by their ids; only by session."""


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


@get("/api/usage/report")
async def usage_report(
    service: TheService,
    by: By = "model",
    session_id: OfSession = None,
    since: Since = None,
    until: Until = None,
    zone: Zone = "UTC",
) -> TitledReport:
    """What was used in a period, by day, model, purpose, session or tool."""
    used = await _report(service, by, session_id, since, until, zone)
    titles = await _titles(service, used) if by == "session" else {}
    return TitledReport(**msgspec.structs.asdict(used), titles=titles)


@get("/api/usage/report.csv", media_type="text/csv")
async def usage_csv(
    service: TheService,
    by: By = "model",
    session_id: OfSession = None,
    since: Since = None,
    until: Until = None,
    zone: Zone = "UTC",
) -> Response[str]:
    """The groups of a report as CSV. An unknown cost is empty."""
    used = await _report(service, by, session_id, since, until, zone)
    return Response(
        csv_of(used.tools if by == "tool" else used.usage, by),
        media_type="text/csv",
        headers={"content-disposition": f'attachment; filename="usage-by-{by}.csv"'},
    )


async def _report(
    service: Service,
    by: Grouping,
    session_id: str | None,
    since: float | None,
    until: float | None,
    zone: str,
) -> UsageReport:
    if since is not None and until is not None and until <= since:
        raise unprocessable("`until` is not after `since`", "choose a period that has a length")
    store = service.host_client.store
    cells = await store.usage_cells(session_id, since=since, until=until)
    uses = await store.tool_use(session_id, since=since, until=until)
    turns = await store.turn_counts(session_id, since=since, until=until)
    try:
        # The file of a time zone is read from the disk, and a year has many cells.
        return await service.threads.to_thread(
            lambda: report(by, cells, uses, turns, ZoneInfo(zone))
        )
    except (KeyError, ValueError, OSError) as error:
        hint = "use a name such as Europe/Berlin or UTC"
        raise unprocessable(f"There is no time zone {zone!r} here", hint) from error


async def _titles(service: Service, used: UsageReport) -> dict[str, str]:
    most = sorted(used.usage, key=lambda group: group.tokens, reverse=True)[:MOST_TITLES]
    rows = [await service.host_client.store.session(group.name) for group in most]
    return {row.session_id: row.title for row in rows if row is not None and row.title}


ROUTES = (health, models, tools, profiles, usage, usage_report, usage_csv)
