"""What the hosts of one home ask each other: which guests there are, and who hosts what."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from keryx.app.host.guests.guest_table import GuestTable
from keryx.app.host.guests.shared_dispatch import SharedDispatch
from keryx.app.host.guests.temporary_sessions import sweep
from keryx.app.host.home import GuestRoom, Home, live_guests
from keryx.app.host.socket_protocol import Hosted, Taken
from keryx.app.host.socket_server import Serves, SocketServer
from keryx.app.runtime import Runtime
from keryx.errors import DeveloperMustActError
from keryx.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from keryx.ports.store import Store


class Sharing:
    """One host's part in a home: its room, or the home itself, and who is connected to it."""

    def __init__(
        self,
        host: Serves,
        home: Home | GuestRoom,
        runtime: Runtime,
        dispatch: SharedDispatch,
        changed: Callable[[str], None],
    ) -> None:
        self._host = host
        self._homes: list[Home | GuestRoom] = [home]
        self._runtime = runtime
        self._dispatch = dispatch
        self._changed = changed
        self._served: list[SocketServer] = []
        self._store: Store | None = None
        self.met: Callable[[], None] = _ignore
        """Called when an owner asks what this guest hosts."""
        self.granted: set[str] = set()
        """Sessions that the owner of the home has left to this guest."""

    def serve(self, home: Home | GuestRoom) -> None:
        """Take connections."""
        served = SocketServer(self._host, self, self._runtime.scope, home.plate.secret)
        self._served.append(served)
        served.listen(home.listening)

    async def left_behind(self, home: Home, store: Store, *, resume: bool) -> list[str]:
        """What earlier hosts left unfinished, without what nobody is there to finish."""
        if home in self._homes:
            await sweep(home.path, store, self._runtime.bridge)
        return await store.unfinished() if resume else []

    async def lead(self, home: Home, store: Store) -> None:
        """Own the home: meet the guests that live in it, then take connections."""
        self._store = store
        if home not in self._homes and isinstance(store, SqliteStore):
            await store.lead()
        guests = GuestTable(self._runtime.scope, store, changed=self._note, lost=self._without)
        self._dispatch.lead(guests)
        own = {each.plate.guest for each in self._homes}
        await guests.meet([plate for plate in home.guests if plate.guest not in own])
        if home not in self._homes:
            self._homes.append(home)
        self.serve(home)

    def is_guests(self, session_id: str) -> bool:
        """Whether a guest hosts the session."""
        guests = self._dispatch.guests
        return guests is not None and guests.host_of(session_id) is not None

    def holds(self, session_id: str) -> bool:
        """Whether the session is hosted here."""
        return session_id in self.granted or self._dispatch.holds(session_id)

    async def remove_rule(self, rule_id: str) -> None:
        """Tell the guests that a rule is gone; one that is gone itself need not be told."""
        if self._dispatch.guests is not None:
            await self._dispatch.guests.remove_rule(rule_id)

    # -- asked by others

    async def announced(self, guest: str) -> None:
        """A guest has come, or has found this host after another one."""
        guests = self._dispatch.guests
        if guests is not None:
            path = self._homes[0].path
            plates = await self._runtime.bridge.to_thread(live_guests, path)
            await guests.meet([plate for plate in plates if plate.guest == guest])

    async def take(self, taken: Taken) -> bool:
        """Whether the session is that guest's to host from now on."""
        guests = self._dispatch.guests
        guest = None if guests is None else guests.by_id(taken.guest)
        if guest is None:
            raise DeveloperMustActError(f"there is no guest {taken.guest!r}; announce it first")
        return await self._dispatch.take(taken.session_id, guest, is_new=taken.is_new)

    def hosted(self) -> Hosted:
        """What this guest hosts, and what it brought along."""
        self.met()
        sessions = self.granted.union(self._dispatch.open_ids())
        return Hosted(tuple(sessions), tuple(self._dispatch.brings))

    async def let_go(self, session_id: str) -> None:
        """The session is about to be deleted by the owner."""
        self.granted.discard(session_id)
        await self._dispatch.forget(session_id)

    def _without(self, sessions: set[str]) -> None:
        """A guest is gone: its sessions go on where they can, and what it left is removed."""
        self._dispatch.lost(sessions)
        sweep = partial(live_guests, self._homes[0].path)
        self._runtime.bridge.start_thread(sweep, name="sweep after a guest")

    def _note(self, session_id: str) -> None:
        self._changed(session_id)
        if isinstance(self._store, SqliteStore):
            self._store.changed_elsewhere()

    # -- the end

    async def without(self, home: Home) -> None:
        """The home could not be led: others may have it, if it was not served yet."""
        if home not in self._homes:
            await self._runtime.bridge.to_thread(home.release)

    def stop_listening(self) -> None:
        if self._dispatch.guests is not None:
            self._dispatch.guests.stop()
        for served in self._served:
            served.stop_listening()

    async def close(self) -> None:
        """Let others have the home, then let go of who is connected."""
        if self._dispatch.guests is not None:
            await self._dispatch.guests.close()
        for home in self._homes:
            await self._runtime.bridge.to_thread(home.release)
        for served in self._served:
            await served.close()


def _ignore() -> None:
    """Nobody is told."""
