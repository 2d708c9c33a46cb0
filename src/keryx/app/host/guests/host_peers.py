"""Requests between the owner and the guests of one home: which host has which session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from keryx.aio.acquire import release
from keryx.app.host.guests.guest_table import GuestTable
from keryx.app.host.guests.shared_dispatch import SharedDispatch
from keryx.app.host.guests.temporary_sessions import abandoned_leases
from keryx.app.host.homes.home import GuestRegistration, Home, live_guests
from keryx.app.host.socket_protocol import HostedSessions, TakeRequest
from keryx.app.host.socket_server import HostService, SocketServer
from keryx.app.runtime import Runtime
from keryx.errors import DeveloperMustActError
from keryx.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from keryx.ports.store import Store


class HostPeers:
    """Connects one host, owner or guest, to the other hosts of its home; has its socket servers."""

    def __init__(
        self,
        host: HostService,
        home: Home | GuestRegistration,
        runtime: Runtime,
        dispatch: SharedDispatch,
        on_change: Callable[[str], None],
    ) -> None:
        self._host = host
        self._homes: list[Home | GuestRegistration] = [home]
        self._runtime = runtime
        self._dispatch = dispatch
        self._on_change = on_change
        self._servers: list[SocketServer] = []
        self._store: Store | None = None
        self.on_owner_asked: Callable[[], None] = _ignore
        """Called when an owner asks which sessions this guest hosts."""
        self.granted: set[str] = set()
        """Sessions that the owner of the home lets this guest host."""

    def serve(self, home: Home | GuestRegistration) -> None:
        """Accept connections on the socket of the home or of the guest."""
        server = SocketServer(self._host, self, self._runtime.scope, home.address.secret)
        self._servers.append(server)
        server.listen(home.listening)

    async def left_sessions(
        self, home: Home, store: Store, *, resume: bool
    ) -> tuple[list[str], dict[str, Path]]:
        """Return the sessions of earlier hosts that are unfinished, and those to be deleted.

        These are the temporary sessions of dead processes, with the files to remove after them.
        """
        unfinished = await store.unfinished() if resume else []
        if home not in self._homes:
            return unfinished, {}
        return unfinished, await abandoned_leases(home.path, self._runtime.bridge)

    async def become_owner(self, home: Home, store: Store) -> None:
        """Connect to the live guests of the home, then accept connections as its owner."""
        self._store = store
        if home not in self._homes and isinstance(store, SqliteStore):
            await store.lead()
        guests = GuestTable(
            self._runtime.scope, store, on_change=self._on_guest_change, on_lost=self._on_guest_lost
        )
        self._dispatch.guests = guests
        own_ids = {own_home.address.guest for own_home in self._homes}
        await guests.connect([address for address in home.guests if address.guest not in own_ids])
        if home not in self._homes:
            self._homes.append(home)
        self.serve(home)

    async def without_host(self, session_ids: Sequence[str], store: Store) -> list[str]:
        """Return the sessions that no guest hosts, and that have not been deleted meanwhile."""
        guests = self._dispatch.guests
        own = [id_ for id_ in session_ids if guests is None or guests.host_of(id_) is None]
        return [id_ for id_ in own if await store.session(id_) is not None]

    def holds(self, session_id: str) -> bool:
        """Return whether this host has the session."""
        return session_id in self.granted or self._dispatch.holds(session_id)

    async def remove_rule(self, rule_id: str) -> None:
        """Tell the guests that are alive to drop a rule."""
        if self._dispatch.guests is not None:
            await self._dispatch.guests.remove_rule(rule_id)

    # -- requests of other hosts

    async def announce(self, guest_id: str) -> None:
        """Connect to a guest that is new, or that had another owner before."""
        guests = self._dispatch.guests
        if guests is not None:
            path = self._homes[0].path
            addresses = await self._runtime.bridge.to_thread(live_guests, path)
            await guests.connect([address for address in addresses if address.guest == guest_id])

    async def take(self, request: TakeRequest) -> bool:
        """Return whether that guest may host the session from now on."""
        guests = self._dispatch.guests
        guest = None if guests is None else guests.by_id(request.guest)
        if guest is None:
            raise DeveloperMustActError(f"there is no guest {request.guest!r}; announce it first")
        return await self._dispatch.take(request.session_id, guest, is_new=request.is_new)

    def hosted(self) -> HostedSessions:
        """Return the sessions and the capabilities of this guest."""
        self.on_owner_asked()
        sessions = self.granted.union(self._dispatch.open_ids())
        return HostedSessions(tuple(sessions), tuple(self._dispatch.capabilities))

    async def stop_hosting(self, session_id: str) -> None:
        """Close a session that the owner is about to delete."""
        self.granted.discard(session_id)
        await self._dispatch.stop_hosting(session_id)

    async def catch_up(self) -> None:
        """Index what was committed here and elsewhere, for a search of another process."""
        if isinstance(self._store, SqliteStore):
            self._store.changed_elsewhere()
            await self._store.catch_up_index()

    def _on_guest_lost(self, sessions: set[str]) -> None:
        """Continue the sessions of a guest that has ended where possible, and remove its files."""
        self._dispatch.on_guest_lost(sessions)
        remove_files = partial(live_guests, self._homes[0].path)
        self._runtime.bridge.start_thread(remove_files, name="remove files of dead guests")

    def _on_guest_change(self, session_id: str) -> None:
        self._on_change(session_id)
        if isinstance(self._store, SqliteStore):
            self._store.changed_elsewhere()

    # -- the end

    async def give_up(self, home: Home) -> None:
        """Release a home that could not be taken over, unless it accepts connections already."""
        if home not in self._homes:
            await release(self._runtime.bridge, home.release)

    def stop_listening(self) -> None:
        if self._dispatch.guests is not None:
            self._dispatch.guests.stop()
        for server in self._servers:
            server.stop_listening()

    async def close(self) -> None:
        """Release the home for other processes, then close all connections."""
        if self._dispatch.guests is not None:
            await self._dispatch.guests.close()
        for home in self._homes:
            await release(self._runtime.bridge, home.release)
        for server in self._servers:
            await server.close()


def _ignore() -> None:
    """Do nothing: only a guest needs to know."""
