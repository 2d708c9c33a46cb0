"""The programs that host sessions of their own in a home, as its owner knows them.

Which session is whose is decided here, on one loop, before a guest claims it: so no session has
two hosts that live. A guest that is gone hosts nothing; what it wrote is in the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import Final

from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host.home import Plate
from keryx.app.host.remote_host import RemoteHost
from keryx.errors import KeryxError
from keryx.ports.store import Store

# A guest that lives answers in a moment. One that is frozen keeps nobody waiting for longer.
PATIENCE: Final = 2.0


class Guest:
    """One program with a host of its own, and the way to it."""

    def __init__(self, host: RemoteHost, brings: Iterable[str], sessions: Iterable[str]) -> None:
        self.host = host
        self.brings = frozenset(brings)
        self.sessions = set(sessions)


class GuestTable:
    """The guests of one home. Belongs to the owner's loop."""

    def __init__(
        self,
        scope: Scope,
        store: Store,
        *,
        changed: Callable[[str], None],
        lost: Callable[[set[str]], None],
    ) -> None:
        self._scope = scope
        self._store = store
        self._changed = changed
        self._lost = lost
        self._group = Group(scope.child("guests"))
        self.members: dict[str, Guest] = {}
        """By the id of the guest."""
        self._meeting: dict[str, asyncio.Task[None]] = {}
        self._closed = False

    async def meet(self, plates: Sequence[Plate]) -> None:
        """Ask each what it hosts. One that does not answer hosts nothing any more."""
        meetings = [
            self._meeting.setdefault(
                plate.guest, self._group.start(self._meet(plate), name=f"meet {plate.guest}")
            )
            for plate in plates
            if plate.guest not in self.members
        ]
        if meetings:
            await asyncio.wait(meetings)

    def by_id(self, guest_id: str) -> Guest | None:
        return self.members.get(guest_id)

    def host_of(self, session_id: str) -> Guest | None:
        return next((each for each in self.members.values() if session_id in each.sessions), None)

    def able(self, needs: Iterable[str]) -> Guest | None:
        """A guest that brought all of this along."""
        return next((each for each in self.members.values() if each.brings.issuperset(needs)), None)

    async def remove_rule(self, rule_id: str) -> None:
        """No guest allows calls by that rule any more; it is not recorded any more already."""
        for guest in tuple(self.members.values()):
            with suppress(KeryxError, TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await guest.host.remove_rule(rule_id)

    def drop(self, guest: Guest) -> None:
        """It is gone: it hosts nothing any more."""
        known = [guest_id for guest_id, each in self.members.items() if each is guest]
        for guest_id in known:
            del self.members[guest_id]
            if not self._closed:
                self._lost(guest.sessions)

    def stop(self) -> None:
        """The owner begins to end: guests that go are none of its business any more."""
        self._closed = True

    async def close(self) -> None:
        """The owner ends; the guests go on, and find the next one."""
        self.stop()
        await self._group.leave()
        self._group.scope.close()
        for guest in self.members.values():
            await guest.host.hang_up()
        self.members.clear()

    async def _meet(self, plate: Plate) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                host = await RemoteHost.reach(plate, self._scope, self._store)
                try:
                    hosted = await host.hosted()
                except BaseException:
                    await host.hang_up()
                    raise
        except (KeryxError, TimeoutError, OSError):
            return  # dead, frozen or ending: it hosts nothing
        finally:
            self._meeting.pop(plate.guest, None)
        guest = self.members[plate.guest] = Guest(host, hosted.brings, hosted.sessions)
        self._group.start(self._attend(guest), name=f"guest {plate.guest}")

    async def _attend(self, guest: Guest) -> None:
        """Hear what changes there, until it is gone."""
        try:
            with suppress(KeryxError, OSError):
                async with aclosing(guest.host.changes(None)) as changes:
                    async for change in changes:
                        self._changed(change.session_id)
            # It ends: what it hosts is its own until it has hung up.
            await guest.host.wait_lost()
            await guest.host.hang_up()
        finally:
            self.drop(guest)
