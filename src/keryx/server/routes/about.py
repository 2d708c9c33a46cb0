"""What the server has: health, models, tools, profiles, usage; and logging in and out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import Cookie
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta

from keryx.ports.store import UsageRow
from keryx.server.access.auth import COOKIE
from keryx.server.access.forwarded import Outside
from keryx.server.access.login_link import token_in
from keryx.server.access.logins import LASTS
from keryx.server.routes.params import TheCaller, TheOutside, TheService
from keryx.server.schemas import ID_PATTERN, Secret

LARGEST_LOGIN = 10_000
"""Bytes of a request from someone who is not let in yet."""
RECENT = 200
"""Sessions whose workspaces are offered again."""

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
    status: Literal["ok"] = "ok"


class Login(msgspec.Struct, frozen=True):
    """A token or a password. A browser that tells a secret of its own can ask again."""

    token: Secret | None = None
    password: Secret | None = None
    browser: Annotated[str, Meta(min_length=32, max_length=1_000)] | None = None


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
    """Whether the server is there."""
    return Health(service.version)


@post("/api/login", status_code=204, request_max_body_size=LARGEST_LOGIN)
async def log_in(
    request: Request[Any, Any, Any],
    service: TheService,
    outside: TheOutside,
    data: JSONBody[Login],
) -> Response[None]:
    """Log in with the printed link or its token, which work once, or with the password.

    Should the answer get lost, the token works again for a short while, for who tells the same
    `browser` as before.
    """
    secret = await service.access.log_in(
        outside.client,
        token=token_in(data.token),
        password=data.password,
        browser=data.browser,
        cookies=request.headers.get("cookie"),
    )
    return Response(None, status_code=204, cookies=[_cookie(outside, secret, LASTS)])


@post("/api/logout", status_code=204)
async def log_out(service: TheService, outside: TheOutside, caller: TheCaller) -> Response[None]:
    """End this login; its event streams end with it."""
    await service.access.log_out(caller)
    return Response(None, status_code=204, cookies=[_cookie(outside, "", 0)])


def _cookie(outside: Outside, value: str, age: int) -> Cookie:
    return Cookie(
        key=COOKIE,
        value=value,
        max_age=age,
        path=f"{outside.prefix}/",
        httponly=True,
        samesite="strict",
        secure=outside.is_secure,
    )


@get("/api/models")
async def models(service: TheService) -> ModelList:
    """The models that are configured and found."""
    found = service.host_client.models
    known = tuple(dict.fromkeys(found.known()))
    return ModelList(found.default or None, known)


@get("/api/tools")
async def tools(service: TheService) -> ToolList:
    """The tools of this host, and the sets that they come in."""
    found = service.host_client.tools
    named = {tool.name: name for name, each in found.sets.items() for tool in each}
    return ToolList(
        tuple(
            ToolInfo(tool.name, tool.description, named.get(tool.name, ""))
            for tool in found.by_name.values()
        ),
        tuple(found.sets),
    )


@get("/api/profiles")
async def profiles(service: TheService) -> ProfileList:
    """The profiles, and where sessions can work."""
    found = service.host_client.config.profiles
    rows = await service.host_client.store.sessions(limit=RECENT)
    return ProfileList(
        tuple(
            ProfileInfo(name, tuple(each.personalities), each.model) for name, each in found.items()
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


ROUTES = (health, log_in, log_out, models, tools, profiles, usage)
