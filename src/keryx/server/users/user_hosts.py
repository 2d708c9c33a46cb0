"""A host for each named user, opened when it is first needed and closed with the server.

Every user has a store, a memory, rules and uploads of its own. So a route cannot reach what belongs
to another user: the service that it gets is the caller's own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app import Keryx
from keryx.config.users import UserRecord
from keryx.errors import KeryxError
from keryx.server.service import Service

_log: Final = logging.getLogger("keryx.server")

OpenHost = Callable[[UserRecord], Keryx]


class _UserHost(NamedTuple):
    app: Keryx
    service: Service


class UserHosts:
    """The hosts of the named users. Belongs to one loop."""

    def __init__(
        self,
        scope: Scope,
        open_host: OpenHost,
        create_service: Callable[[Keryx, UserRecord], Awaitable[Service]],
    ) -> None:
        self._open_host, self._create_service = open_host, create_service
        self._group = Group(scope.child("users"))
        self._hosts: dict[str, asyncio.Task[_UserHost | KeryxError]] = {}

    def prepare(self, users: Iterable[UserRecord]) -> None:
        """Open the hosts of these users, so that their unfinished turns continue."""
        for user in users:
            if not user.disabled:
                self._task_of(user)

    async def service_of(self, user: UserRecord) -> Service:
        """Return the service of this user. Requests at the same time open one host."""
        host = await asyncio.shield(self._task_of(user))
        if isinstance(host, KeryxError):
            self._hosts.pop(user.name, None)  # the next request tries again
            raise host
        return host.service

    async def close_host(self, name: str) -> None:
        """Close the host of a user that is removed or disabled."""
        if (task := self._hosts.pop(name, None)) is not None:
            await self._close(task)

    async def close(self) -> None:
        """Close all hosts; their running turns continue at the next start."""
        tasks = [*self._hosts.values()]
        self._hosts.clear()
        for task in tasks:
            await self._close(task)
        await self._group.leave()
        self._group.scope.close()

    def _task_of(self, user: UserRecord) -> asyncio.Task[_UserHost | KeryxError]:
        if user.name not in self._hosts:
            self._hosts[user.name] = self._group.start(self._open(user), name=f"open {user.name}")
        return self._hosts[user.name]

    async def _open(self, user: UserRecord) -> _UserHost | KeryxError:
        """Return the host, or the error: an error that is raised would end the group."""
        app = self._open_host(user)
        try:
            await app.__aenter__()
        except KeryxError as error:
            _log.error("the home of a user cannot be opened: %s", error)
            return error
        try:
            return _UserHost(app, await self._create_service(app, user))
        except BaseException:
            await app.__aexit__(None, None, None)
            raise

    async def _close(self, task: asyncio.Task[_UserHost | KeryxError]) -> None:
        host = await asyncio.shield(task)
        if isinstance(host, _UserHost):
            await host.app.__aexit__(None, None, None)
