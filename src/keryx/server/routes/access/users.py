"""Who is signed in, and the named users: the owner of the server lists, adds, changes and removes
them. The contents of a user's sessions are never shown to the owner.
"""

from __future__ import annotations

from datetime import datetime, time
from functools import partial
from typing import Annotated

import msgspec
from litestar import delete, get, patch, post
from litestar.params import JSONBody, PathParameter
from msgspec import UNSET, Meta, UnsetType

from keryx.config.users import NAME_PATTERN, UserRecord
from keryx.server.access.users import Users
from keryx.server.problems import not_found
from keryx.server.routes.params import TheCaller, TheService, TheUserHosts
from keryx.server.schemas import Secret
from keryx.server.service import Service
from keryx.server.users.user_hosts import UserHosts

UserName = Annotated[str, PathParameter(pattern=NAME_PATTERN)]
DayCost = Annotated[float, Meta(ge=0, le=1_000_000_000)]
DayTokens = Annotated[int, Meta(ge=0, le=2**53)]


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """The caller. No `user`: the owner, who may change everything."""

    user: str | None
    is_owner: bool
    has_users: bool
    """Whether there are named users."""


class UserInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    folder: str
    disabled: bool
    cost_per_day: float | None
    tokens_per_day: int | None
    cost_today: float
    """US dollars, as far as they are known."""
    tokens_today: int
    last_active: float | None
    """When a session of this user last changed."""


class UserList(msgspec.Struct, frozen=True):
    users: tuple[UserInfo, ...]


class NewUser(msgspec.Struct, frozen=True, kw_only=True):
    """The user gets a new folder. `keryx users add` can choose another one."""

    name: Annotated[str, Meta(pattern=NAME_PATTERN)]
    password: Secret


class UserChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Limits are per day; null removes one. A new password signs the user out everywhere."""

    password: Secret | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    cost_per_day: DayCost | UnsetType | None = UNSET
    tokens_per_day: DayTokens | UnsetType | None = UNSET


@get("/api/me")
async def show_me(service: TheService, caller: TheCaller) -> Me:
    """Who is signed in."""
    return Me(
        user=caller.user or None, is_owner=not caller.user, has_users=bool(service.access.users)
    )


@get("/api/users")
async def list_users(service: TheService, user_hosts: TheUserHosts) -> UserList:
    """The named users, and what each of them used today."""
    await service.access.reload()
    users = service.access.users.values()
    return UserList(tuple([await _info(user_hosts, user) for user in users]))


@post("/api/users", status_code=201)
async def add_user(
    service: TheService, user_hosts: TheUserHosts, data: JSONBody[NewUser]
) -> UserInfo:
    """Add a user, who signs in with this name and password."""
    user = await service.threads.to_thread(_users(service).add, data.name, data.password)
    await service.access.reload()
    return await _info(user_hosts, user)


@patch("/api/users/{name:str}")
async def change_user(
    service: TheService, user_hosts: TheUserHosts, name: UserName, data: JSONBody[UserChanges]
) -> UserInfo:
    """Change the limits or the password of a user, or whether the user may sign in."""
    await _require(service, name)
    users = _users(service)
    if isinstance(data.password, str):
        now = service.access.wall()
        await service.threads.to_thread(partial(users.set_password, name, data.password, at=now))
    changes = {
        field: value
        for field in ("disabled", "cost_per_day", "tokens_per_day")
        if not isinstance(value := getattr(data, field), UnsetType)
    }
    user = await service.threads.to_thread(partial(users.change, name, **changes))
    await service.access.reload()
    if user.disabled:
        await user_hosts.close_host(name)
    return await _info(user_hosts, user)


@delete("/api/users/{name:str}", status_code=204)
async def remove_user(service: TheService, user_hosts: TheUserHosts, name: UserName) -> None:
    """Remove a user with all sessions. The folder that the sessions worked in stays."""
    await _require(service, name)
    await user_hosts.close_host(name)
    await service.threads.to_thread(_users(service).remove, name)
    await service.access.reload()


def _users(service: Service) -> Users:
    return Users(service.host_client.config.settings_home)


async def _require(service: Service, name: str) -> None:
    await service.access.reload()
    if name not in service.access.users:
        raise not_found("There is no user with that name", "GET /api/users lists all users")


async def _info(user_hosts: UserHosts, user: UserRecord) -> UserInfo:
    cost, tokens, last_active = 0.0, 0, None
    if not user.disabled:
        store = (await user_hosts.service_of(user)).host_client.store
        midnight = datetime.combine(datetime.now().astimezone().date(), time.min).astimezone()
        spent = await store.spent(since=midnight.timestamp())
        newest = await store.sessions(limit=1, archived=None)
        cost, tokens = spent.cost, spent.tokens
        last_active = newest[0].changed_at if newest else None
    return UserInfo(
        name=user.name,
        folder=user.folder,
        disabled=user.disabled,
        cost_per_day=user.cost_per_day,
        tokens_per_day=user.tokens_per_day,
        cost_today=cost,
        tokens_today=tokens,
        last_active=last_active,
    )


ROUTES = (show_me, list_users, add_user, change_user, remove_user)
