"""A program that brings tools or a model along, in a home that another process owns.

It hosts the sessions that need what it brought, in this process; for all others it talks to the
owner. The owner decides which is which. If the owner goes away, this process takes the home, or
finds the next owner; its own sessions do not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final, Self

from keryx import commands as cm
from keryx.aio.group import Group
from keryx.app.host.home import GuestRoom, HomeTakenError, owner_of
from keryx.app.host.local_host import LocalHost
from keryx.app.host.remote_host import RemoteHost
from keryx.app.host.socket_protocol import NewSession, Taken
from keryx.app.runtime import Runtime
from keryx.errors import KeryxError
from keryx.ports.dispatch import Answer, Change, Watching
from keryx.ports.view import SessionView
from keryx.rpc import PeerLostError

TRIES: Final = 20
"""Owners that are tried in a row. Each was there a moment ago, and ends of its own accord."""

PAUSE: Final = 1.0
"""Seconds between two attempts to find an owner when the home itself cannot be used."""

Join = Callable[[LocalHost], Awaitable[RemoteHost | None]]
"""Finds the next owner; None: the host that was passed owns the home now."""


class GuestHost:
    """Hosts what needs this program, and leads to the owner for the rest."""

    def __init__(
        self, room: GuestRoom, own: LocalHost, owner: RemoteHost, runtime: Runtime, join: Join
    ) -> None:
        self.store: Final = own.store
        self._guest_id = room.plate.guest
        self._path = room.path
        self._bridge = runtime.bridge
        self._own = own
        own.sharing.met = self._on_met
        self._owner: RemoteHost | None = owner
        self._join = join
        self._group = Group(runtime.scope.child("guest"))
        self._joining: asyncio.Task[KeryxError | None] | None = None
        self._elsewhere: set[str] = set()
        """Sessions that the owner said are not this program's."""

    @classmethod
    async def begin(
        cls,
        room: GuestRoom,
        own: LocalHost,
        owner: RemoteHost,
        runtime: Runtime,
        join: Join,
        *,
        resume: bool,
    ) -> Self:
        """Tell the owner, and go on with what waited for this program."""
        host = cls(room, own, owner, runtime, join)
        try:
            try:
                await owner.announce(room.plate.guest)
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
        waiting = [each for each in await self.store.unfinished() if await self._is_mine(each)]
        await self._own.resume(waiting)

    async def _stay_joined(self) -> None:
        """A home without an owner gets one: others must find the sessions of this program."""
        while (owner := self._owner) is not None:
            await owner.wait_lost()
            try:
                await self.rejoin(owner)
            except KeryxError:
                # Whoever needs the owner is told why there is none; here it is tried again.
                await asyncio.sleep(PAUSE)

    def _on_met(self) -> None:
        if not self._group.scope.is_cancelled:
            self._group.start(self._look_for_owner(), name="look for the owner")

    async def _look_for_owner(self) -> None:
        """The owner may have been frozen, and its home taken over: the new one asks first."""
        owner, plate = self._owner, await self._bridge.to_thread(owner_of, self._path)
        if owner is not None and plate is not None and plate != owner.plate:
            with suppress(KeryxError):  # whoever needs the owner is told why there is none
                await self.rejoin(owner)

    async def rejoin(self, lost: RemoteHost | None = None) -> None:
        """The owner is gone: find the next one, once for all who noticed."""
        if self._owner is None or self._owner is not (lost or self._owner):
            return
        if lost is None and not self._owner.is_lost:
            return
        if self._joining is None or self._joining.done():
            self._joining = self._group.start(self._replace(self._owner), name="rejoin")
        error = await asyncio.shield(self._joining)
        if error is not None:
            raise error

    async def _replace(self, lost: RemoteHost) -> KeryxError | None:
        """An error is a result here: the group of others who join shall not end with it."""
        for _ in range(TRIES):
            try:
                await lost.end()
                owner = await self._join(self._own)
                if owner is not None:
                    lost = owner
                    await owner.announce(self._guest_id)
            except PeerLostError:
                continue  # that one is gone too
            except KeryxError as error:
                return error
            self._owner = owner
            self._elsewhere.clear()
            return None
        return HomeTakenError("the owners of this home end as soon as they begin; see their logs")

    async def _is_mine(self, session_id: str, *, is_new: bool = False) -> bool:
        """Whether this process hosts the session: the owner decides, before it is claimed."""
        while (owner := self._owner) is not None and not self._own.sharing.holds(session_id):
            if session_id in self._elsewhere:
                return False
            try:
                is_mine = await owner.take(Taken(self._guest_id, session_id, is_new))
            except PeerLostError:
                await self.rejoin(owner)
                continue
            (self._own.sharing.granted if is_mine else self._elsewhere).add(session_id)
            return is_mine
        return True

    async def _host_of(self, session_id: str) -> LocalHost | RemoteHost:
        is_mine = await self._is_mine(session_id)
        return self._own if is_mine or self._owner is None else self._owner

    # -- what is asked

    async def open(self, wanted: NewSession) -> None:
        if wanted.exists:
            await (await self._host_of(wanted.session_id)).open(wanted)
        elif self._own.brought_for(wanted) and await self._is_mine(wanted.session_id, is_new=True):
            await self._own.open(wanted)
        else:
            await (self._owner or self._own).open(wanted)

    async def tell(self, command: cm.Command) -> Answer:
        return await (await self._host_of(command.session_id)).tell(command)

    async def watch(self, session_id: str, *, after: int) -> Watching:
        return await (await self._host_of(session_id)).watch(session_id, after=after)

    async def view(self, session_id: str) -> SessionView:
        return await (await self._host_of(session_id)).view(session_id)

    async def changes(self, after: int | None) -> AsyncGenerator[Change]:
        async with aclosing((self._owner or self._own).changes(after)) as changes:
            async for change in changes:
                yield change

    async def delete(self, session_id: str) -> bool:
        """By the owner, which sees that nothing of it is left behind."""
        return await (self._owner or self._own).delete(session_id)

    async def remove_rule(self, rule_id: str) -> bool:
        """By the owner, which tells all guests, this one too."""
        return await (self._owner or self._own).remove_rule(rule_id)

    async def end(self) -> None:
        await self._group.leave()
        self._group.scope.close()
        await self._own.end()
        if self._owner is not None:
            await self._owner.end()
