"""Joins a home: as its owner, as a guest with its own tools or model, or as the owner's client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from keryx.aio.acquire import acquire
from keryx.app.host.guests.guest_host import GuestHost
from keryx.app.host.homes.home import GuestRegistration, Home, HomeTakenError
from keryx.app.host.homes.host_address import HostAddress
from keryx.app.host.local_host import LocalHost
from keryx.app.host.remote_host import RemoteHost
from keryx.app.models import Models
from keryx.app.runtime import Runtime
from keryx.app.tools import Tools
from keryx.config import Config
from keryx.rpc import PeerLostError

# A process that dies releases its socket and its lock at two different moments. The kernel reports
# only the first one, so taking the home is retried this often, with this pause in seconds.
MAX_ATTEMPTS: Final = 100
RETRY_PAUSE: Final = 0.05

AnyHost = LocalHost | GuestHost | RemoteHost

T = TypeVar("T")


class HomeJoiner:
    """Finds the host of a home for this process, and starts one if needed."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        models: Models,
        tools: Tools,
        resume: bool,
        take_over: bool,
        titles: bool,
    ) -> None:
        self._runtime = runtime
        self._models = models
        self._tools = tools
        self._resume = resume
        self._take_over = take_over
        self._titles = titles

    async def join(self, config: Config) -> AnyHost:
        """Become the host of the home, or connect to its host."""
        by_force, self._take_over = self._take_over, False
        # The tools and models of a program can run in its own process only.
        is_guest = self._tools.capabilities or self._models.capabilities
        return await self._take_or_connect(
            config.home,
            partial(self._own_home, config, by_force=by_force),
            partial(self._be_guest, config) if is_guest else partial(self._connect, config.home),
            by_force=by_force,
        )

    async def _take_or_connect(
        self,
        path: Path,
        own: Callable[[Home], Awaitable[T]],
        connect: Callable[[HostAddress], Awaitable[T]],
        *,
        by_force: bool = False,
    ) -> T:
        """Call `own` if this process can take the home, else `connect` to the home's owner."""
        for _ in range(MAX_ATTEMPTS):
            home = await acquire(
                self._runtime.bridge,
                partial(Home.take, path, by_force=by_force),
                _release_taken,
                name="take the home",
            )
            if isinstance(home, Home):
                return await own(home)
            try:
                return await connect(home)
            except (PeerLostError, FileNotFoundError):
                await asyncio.sleep(RETRY_PAUSE)
        raise HomeTakenError.unreachable(path)

    async def _connect(self, path: Path, address: HostAddress) -> RemoteHost:
        return await RemoteHost.connect(address, path, self._runtime.scope, self._runtime.bridge)

    async def _own_home(self, config: Config, home: Home, *, by_force: bool) -> AnyHost:
        host = await self._start_local_host(config, home, take_over=by_force)
        try:
            await host.become_owner(home, resume=self._resume)
        except BaseException:
            await host.end(for_good=False)
            raise
        return host

    async def _start_local_host(
        self, config: Config, home: Home | GuestRegistration, *, take_over: bool = False
    ) -> LocalHost:
        return await LocalHost.start(
            home,
            self._runtime,
            models=self._models,
            tools=self._tools,
            config=config,
            titles=self._titles,
            take_over=take_over,
        )

    async def _be_guest(self, config: Config, address: HostAddress) -> AnyHost:
        """Host the sessions that need this program here; the owner hosts all others."""
        owner = await self._connect(config.home, address)
        try:
            create = partial(GuestRegistration.create, config.home)
            registration = await acquire(
                self._runtime.bridge, create, GuestRegistration.release, name="register"
            )
            local = await self._start_local_host(config, registration)
            local.peers.serve(registration)
        except BaseException:
            await owner.end()
            raise
        replace_owner = partial(self._replace_owner, config.home)
        return await GuestHost.start(
            registration, local, owner, self._runtime, replace_owner, resume=self._resume
        )

    async def _replace_owner(self, path: Path, local: LocalHost) -> RemoteHost | None:
        """Make `local` the owner of the home and return None, or connect to the next owner."""

        async def own(home: Home) -> None:
            await local.become_owner(home, resume=self._resume)

        return await self._take_or_connect(path, own, partial(self._connect, path))


def _release_taken(home: Home | HostAddress) -> None:
    if isinstance(home, Home):
        home.release()
