"""The guests of a home (programs that host their own sessions there), as its owner sees them.

The owner decides here, on one loop, which guest hosts a session, before the guest opens it: so no
session has two live hosts. A guest that has ended hosts nothing; what it wrote is in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import Final

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host.homes.host_address import HostAddress
from keryx.app.host.remote_host import RemoteHost
from keryx.errors import KeryxError
from keryx.ports.store import Store

# Seconds. A live guest answers within milliseconds; a frozen one must not delay others for long.
GUEST_TIMEOUT: Final = 2.0


class Guest:
    """One guest: the connection to it, its capabilities and the sessions that it hosts."""

    def __init__(
        self, host: RemoteHost, capabilities: Iterable[str], sessions: Iterable[str]
    ) -> None:
        self.host = host
        self.capabilities = frozenset(capabilities)
        self.sessions = set(sessions)


class GuestTable:
    """The guests of one home. Belongs to the owner's loop."""

    def __init__(
        self,
        scope: Scope,
        store: Store,
        *,
        on_change: Callable[[str], None],
        on_lost: Callable[[set[str]], None],
    ) -> None:
        self._scope = scope
        self._store = store
        self._on_change = on_change
        self._on_lost = on_lost
        self._group = Group(scope.child("guests"))
        self.members: dict[str, Guest] = {}
        """The guests by their ids."""
        self._connecting: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def connect(self, addresses: Sequence[HostAddress]) -> None:
        """Connect to these guests and ask what they host. Guests that do not answer are ignored."""
        connections = [
            self._connecting.setdefault(
                address.guest,
                self._group.start(self._connect(address), name=f"connect {address.guest}"),
            )
            for address in addresses
            if address.guest not in self.members
        ]
        if connections:
            await asyncio.wait(connections)

    def by_id(self, guest_id: str) -> Guest | None:
        return self.members.get(guest_id)

    def host_of(self, session_id: str) -> Guest | None:
        guests = self.members.values()
        return next((guest for guest in guests if session_id in guest.sessions), None)

    def find_capable(self, required: Iterable[str]) -> Guest | None:
        """Return a guest that has all of these capabilities."""
        guests = self.members.values()
        return next((guest for guest in guests if guest.capabilities.issuperset(required)), None)

    async def remove_rule(self, rule_id: str) -> None:
        """Tell all guests to drop a rule that is removed from the store already."""
        for guest in tuple(self.members.values()):
            with suppress(KeryxError, TimeoutError):
                async with asyncio.timeout(GUEST_TIMEOUT):
                    await guest.host.remove_rule(rule_id)

    def drop(self, guest: Guest) -> None:
        """Remove a guest that has ended: it hosts nothing any more."""
        guest_ids = [guest_id for guest_id, member in self.members.items() if member is guest]
        for guest_id in guest_ids:
            del self.members[guest_id]
            if not self._closed:
                self._on_lost(guest.sessions)

    def stop(self) -> None:
        """Ignore guests that end from now on, because the owner itself is ending."""
        self._closed = True

    async def close(self) -> None:
        """Close the connections: the owner ends, and the guests look for the next one."""
        self.stop()
        await self._group.leave()
        self._group.scope.close()
        for guest in self.members.values():
            await guest.host.hang_up()
        self.members.clear()

    async def _connect(self, address: HostAddress) -> None:
        try:
            async with asyncio.timeout(GUEST_TIMEOUT):
                host = await RemoteHost.reach(address, self._scope, self._store)
                try:
                    hosted = await host.hosted()
                except BaseException:
                    await host.hang_up()
                    raise
        except (KeryxError, TimeoutError, OSError):
            return  # dead, frozen or ending: it hosts nothing
        finally:
            self._connecting.pop(address.guest, None)
        guest = self.members[address.guest] = Guest(host, hosted.brings, hosted.sessions)
        self._group.start(self._follow(guest), name=f"guest {address.guest}")

    async def _follow(self, guest: Guest) -> None:
        """Report the changes of the guest's sessions until the guest has ended."""
        try:
            with suppress(KeryxError, OSError):
                async with aclosing(guest.host.changes(None)) as changes:
                    async for change in changes:
                        self._on_change(change.session_id)
            # The guest is ending: it still hosts its sessions until the connection is closed.
            await guest.host.wait_lost()
            await guest.host.hang_up()
        finally:
            self.drop(guest)
