"""The host of a guest: a program with its own tools or model, in a home that another process owns.

It hosts the sessions that need this program's tools or model; requests for all other sessions go to
the owner of the home. The owner decides which session is hosted where. If the owner ends, this
process takes the home or connects to the next owner; the sessions hosted here are not disturbed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final, Self

from keryx import commands as cm
from keryx.aio.group import Group
from keryx.app.host.homes.home import GuestRegistration, HomeTakenError, read_owner_address
from keryx.app.host.local_host import LocalHost
from keryx.app.host.remote_host import RemoteHost
from keryx.app.host.socket_protocol import NewSession, TakeRequest
from keryx.app.runtime import Runtime
from keryx.app.trust.trusted_folders import TrustedFolder
from keryx.errors import KeryxError
from keryx.ports.dispatch import Answer, Change, Watching
from keryx.ports.view import SessionView
from keryx.rpc import PeerLostError
from keryx.store.sqlite import SqliteStore

MAX_ATTEMPTS: Final = 20
"""How many owners are tried in a row. Each of them ran a moment ago, and ended by itself."""

RETRY_PAUSE: Final = 1.0
"""Seconds between two attempts to find an owner when the home itself cannot be used."""

ReplaceOwner = Callable[[LocalHost], Awaitable[RemoteHost | None]]
"""Connects to the next owner; None: the local host that was passed owns the home now."""


class GuestHost:
    """Hosts the sessions that need this program, and sends all other requests to the owner."""

    def __init__(
        self,
        registration: GuestRegistration,
        local: LocalHost,
        owner: RemoteHost,
        runtime: Runtime,
        replace_owner: ReplaceOwner,
    ) -> None:
        self.store: Final = local.store
        self._guest_id = registration.address.guest
        self._path = registration.path
        self._bridge = runtime.bridge
        self._local = local
        local.peers.on_owner_asked = self._on_owner_asked
        self._owner: RemoteHost | None = owner
        self._replace_owner = replace_owner
        if isinstance(local.store, SqliteStore):
            local.store.catch_up_index = self._catch_up_index
        self.memory: Final = local.memory
        if local.memory is not None:
            local.memory.service.tell_owner = self._tell_owner
        self._group = Group(runtime.scope.child("guest"))
        self._joining: asyncio.Task[KeryxError | None] | None = None
        self._elsewhere: set[str] = set()
        """Sessions that this process does not host, by the owner's decision."""

    @classmethod
    async def start(
        cls,
        registration: GuestRegistration,
        local: LocalHost,
        owner: RemoteHost,
        runtime: Runtime,
        replace_owner: ReplaceOwner,
        *,
        resume: bool,
    ) -> Self:
        """Announce the guest to the owner, and resume the sessions that waited for this program."""
        host = cls(registration, local, owner, runtime, replace_owner)
        try:
            try:
                await owner.announce(registration.address.guest)
            except PeerLostError:
                await host.rejoin(owner)
            host._group.start(host._stay_joined(), name="stay joined")
            if resume:
                await host._resume()
        except BaseException:
            await host.end()
            raise
        return host

    async def _resume(self) -> None:
        unfinished = await self.store.unfinished()
        await self._local.resume(
            [session_id for session_id in unfinished if await self._is_mine(session_id)]
        )

    async def _stay_joined(self) -> None:
        """Replace each owner that ends: others reach this program's sessions through the owner."""
        while (owner := self._owner) is not None:
            await owner.wait_lost()
            try:
                await self.rejoin(owner)
            except KeryxError:
                # A request that needs the owner reports the error; here it is retried.
                await asyncio.sleep(RETRY_PAUSE)

    def _on_owner_asked(self) -> None:
        if not self._group.scope.is_cancelled:
            self._group.start(self._check_owner(), name="check the owner")

    async def _check_owner(self) -> None:
        """Rejoin if the home was taken over from a frozen owner: then the new owner asks first."""
        owner, address = self._owner, await self._bridge.to_thread(read_owner_address, self._path)
        if owner is not None and address is not None and address != owner.address:
            with suppress(KeryxError):  # a request that needs the owner reports the error
                await self.rejoin(owner)

    async def rejoin(self, lost: RemoteHost | None = None) -> None:
        """Replace an owner that has ended. Callers that notice at once share one attempt."""
        if self._owner is None or self._owner is not (lost or self._owner):
            return
        if lost is None and not self._owner.is_lost:
            return
        if self._joining is None or self._joining.done():
            self._joining = self._group.start(self._find_next_owner(self._owner), name="rejoin")
        error = await asyncio.shield(self._joining)
        if error is not None:
            raise error

    async def _find_next_owner(self, lost: RemoteHost) -> KeryxError | None:
        """Return the error if there is no next owner: a raised error would end the group."""
        for _ in range(MAX_ATTEMPTS):
            try:
                await lost.end()
                owner = await self._replace_owner(self._local)
                if owner is not None:
                    lost = owner
                    await owner.announce(self._guest_id)
            except PeerLostError:
                continue  # that owner has ended too
            except KeryxError as error:
                return error
            self._owner = owner
            self._elsewhere.clear()
            return None
        return HomeTakenError(
            f"{MAX_ATTEMPTS} processes in a row took the home {self._path} and ended at once; "
            "see what those processes print"
        )

    async def _is_mine(self, session_id: str, *, is_new: bool = False) -> bool:
        """Return whether this process hosts the session. The owner decides, before it is opened."""
        while (owner := self._owner) is not None and not self._local.peers.holds(session_id):
            if session_id in self._elsewhere:
                return False
            try:
                is_mine = await owner.take(TakeRequest(self._guest_id, session_id, is_new))
            except PeerLostError:
                await self.rejoin(owner)
                continue
            (self._local.peers.granted if is_mine else self._elsewhere).add(session_id)
            return is_mine
        return True

    async def _host_of(self, session_id: str) -> LocalHost | RemoteHost:
        is_mine = await self._is_mine(session_id)
        return self._local if is_mine or self._owner is None else self._owner

    # -- requests

    async def open(self, request: NewSession) -> None:
        session_id = request.session_id
        if request.exists:
            await (await self._host_of(session_id)).open(request)
        elif await self._local.capabilities_for(request) and await self._is_mine(
            session_id, is_new=True
        ):
            await self._local.open(request)
        else:
            await (self._owner or self._local).open(request)

    async def tell(self, command: cm.Command) -> Answer:
        return await (await self._host_of(command.session_id)).tell(command)

    async def watch(self, session_id: str, *, after: int) -> Watching:
        return await (await self._host_of(session_id)).watch(session_id, after=after)

    async def view(self, session_id: str) -> SessionView:
        return await (await self._host_of(session_id)).view(session_id)

    async def changes(self, after: int | None) -> AsyncGenerator[Change]:
        async with aclosing((self._owner or self._local).changes(after)) as changes:
            async for change in changes:
                yield change

    async def delete(self, session_id: str, *, keep_memory: bool = False) -> bool:
        """Ask the owner, which also stops the process that hosts the session."""
        return await (self._owner or self._local).delete(session_id, keep_memory=keep_memory)

    async def rescan_memory(self, *, retry: bool, wait: bool) -> None:
        await (self._owner or self._local).rescan_memory(retry=retry, wait=wait)

    async def remove_rule(self, rule_id: str) -> bool:
        """Ask the owner, which tells all guests, this one included."""
        return await (self._owner or self._local).remove_rule(rule_id)

    async def trust(self, folder: TrustedFolder) -> None:
        await (self._owner or self._local).trust(folder)

    async def distrust(self, workspace: str) -> bool:
        return await (self._owner or self._local).distrust(workspace)

    async def _tell_owner(self, *, retry: bool, wait: bool) -> None:
        """Let the owner deliver; the next owner delivers everything when it starts."""
        if self._owner is not None:
            with suppress(PeerLostError):
                await self._owner.rescan_memory(retry=retry, wait=wait)

    async def _catch_up_index(self) -> None:
        if self._owner is not None:
            await self._owner.catch_up()

    async def end(self) -> None:
        await self._group.leave()
        self._group.scope.close()
        await self._local.end()
        if self._owner is not None:
            await self._owner.end()
