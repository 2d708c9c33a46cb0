"""Dispatch and bus of a home: each session is hosted by one process, the owner or a guest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Final

import msgspec

from keryx import commands as cm
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.app.host.dispatch import EventHub, LocalDispatch, Open
from keryx.app.host.guests.guest_table import Guest, GuestTable
from keryx.app.host.guests.relay import Relay
from keryx.app.host.socket_protocol import NewSession
from keryx.engine.log.drafts import read_draft
from keryx.engine.log.rebuild import folded
from keryx.engine.log.resume_guard import ResumeGuard
from keryx.engine.log.state import Settings
from keryx.engine.log.views import view_of
from keryx.engine.session import Opening, Session
from keryx.errors import KeryxError, SessionDamagedError, StoreDamagedError, UserMustActError
from keryx.events import Event, SessionChanged, SessionOpened
from keryx.ports.dispatch import Answer, Watching
from keryx.ports.store import Store
from keryx.ports.view import SessionView
from keryx.rpc import PeerLostError

_NEEDS_CAPABILITIES: Final = (cm.SendMessage, cm.CompactContext)
"""Commands that need all tools and the model of the session."""


class ProgramGoneError(UserMustActError):
    """A session needs the tools or the model of a program that is not running."""


class SharedDispatch:
    """Sends work and commands to the host of each session: this process, or a guest.

    A *capability* is a tool or a model that one program alone has (`tool:NAME`, `model:NAME`). A
    session that needs such capabilities is hosted by that program. While the program does not run,
    the session can be read and changed, but no turn runs.
    """

    def __init__(
        self,
        scope: Scope,
        store: Store,
        open_session: Open,
        capabilities: Iterable[str],
        *,
        on_change: Callable[[str], None],
        on_closed: Callable[[str], None],
    ) -> None:
        """`on_change` gets the ids of damaged sessions, `on_closed` those of closed sessions."""
        self._store = store
        self._on_change = on_change
        self._open_session = open_session
        self._local = LocalDispatch(scope, store, self._open, on_closed)
        self._group = Group(Scope("handing over", clock=scope.clock))
        self.capabilities = frozenset(capabilities)
        self.guests: GuestTable | None = None
        """The guests of the home; None if this host is itself a guest."""
        self._incapable: set[str] = set()
        """Sessions that are open here and idle, but lack the capabilities to run here."""
        self._hosts_changed = asyncio.Event()

    def rested(self, session_id: str) -> None:
        self._local.rested(session_id)

    def holds(self, session_id: str) -> bool:
        return self._local.holds(session_id)

    def open_ids(self) -> list[str]:
        return self._local.open_ids()

    async def required_capabilities(self, session_id: str) -> frozenset[str]:
        """Return the capabilities that the session needs at present."""
        first = await self._store.events(session_id, limit=1)
        if not first or not isinstance(first[0], SessionOpened) or not first[0].brought:
            return frozenset()
        settings = Settings()
        for event in await self._store.events(session_id):
            if isinstance(event, SessionOpened | SessionChanged):
                settings.apply(event)
        used = {f"model:{settings.model}", *(f"tool:{name}" for name in settings.tools)}
        return frozenset(first[0].brought) & used

    # -- which host has which session

    async def _guest_of(self, session_id: str) -> Guest | None:
        """Return the guest that hosts the session; None: this process hosts it, or will now."""
        if self.guests is None or (
            self._local.holds(session_id) and session_id not in self._incapable
        ):
            return None
        guest = self.guests.host_of(session_id)
        if guest is not None or not self.guests.members:
            return guest
        required = await self.required_capabilities(session_id)
        guest = self.guests.host_of(session_id)
        if guest is None and required and not required <= self.capabilities:
            guest = self.guests.find_capable(required)
            if guest is not None:
                self._hand_over(session_id, guest)
        return guest

    def _hand_over(self, session_id: str, guest: Guest) -> None:
        """Make the guest the host of the session, in one step without an await."""
        self._incapable.discard(session_id)
        self._local.hand_over(session_id)
        guest.sessions.add(session_id)
        self._note_hosts_changed()

    async def take(self, session_id: str, guest: Guest, *, is_new: bool) -> bool:
        """Return whether the guest may host the session; asked before the guest opens it."""
        assert self.guests is not None
        if not is_new:
            required = await self.required_capabilities(session_id)
            if not required or not required <= guest.capabilities:
                return False
        host = self.guests.host_of(session_id)
        if host is None and (session_id in self._incapable or not self.holds(session_id)):
            self._hand_over(session_id, guest)
            return True
        return host is guest

    def _note_hosts_changed(self) -> None:
        """Wake the readers that wait for a session to get another host."""
        changed, self._hosts_changed = self._hosts_changed, asyncio.Event()
        changed.set()

    def on_guest_lost(self, sessions: Iterable[str]) -> None:
        """Resume the unfinished sessions of a guest that has ended, where possible."""
        self._note_hosts_changed()
        self._group.start(self._resume_lost(set(sessions)), name="resume without a guest")

    async def _resume_lost(self, sessions: set[str]) -> None:
        for session_id in sessions.intersection(await self._store.unfinished()):
            try:
                await self.wake(session_id)
            except (KeryxError, OSError, msgspec.DecodeError):
                continue  # it waits for its program; requests to it report the error

    async def _open(
        self, session_id: str, opening: Opening | None, hub: EventHub | None
    ) -> Session:
        try:
            return await self._open_here(session_id, opening, hub)
        except SessionDamagedError:
            await self._store.mark_damaged(session_id)
            self._on_change(session_id)
            raise

    async def _open_here(
        self, session_id: str, opening: Opening | None, hub: EventHub | None
    ) -> Session:
        """Open the session in this process; refuse if a turn waits and a capability is missing."""
        if opening is None:
            missing = await self.required_capabilities(session_id) - self.capabilities
            if missing and await self._store.resting(session_id) is None:
                raise _program_gone(session_id, missing)
            session = await self._open_session(session_id, opening, hub)
            if missing:
                # Added after the session is open: before that it cannot be handed over.
                self._incapable.add(session_id)
            return session
        return await self._open_session(session_id, opening, hub)

    async def resume(self, unfinished: Sequence[str], resume_guard: ResumeGuard) -> None:
        """Resume the work of an earlier host. A session that fails does not delay the others."""
        resume_guard.expect(unfinished)
        for session_id in unfinished:
            try:
                await self.wake(session_id)
            except StoreDamagedError:
                raise
            except ProgramGoneError:
                resume_guard.mark_resting(session_id)
            except Exception as error:  # noqa: BLE001 (a request to the session reports it)
                resume_guard.mark_resting(session_id)
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"session {session_id} could not be resumed", "exception": error}
                )

    # -- dispatch and bus

    async def session(self, session_id: str, opening: Opening | None = None) -> None:
        """Create a session here, or make sure that an existing one is open at its host."""
        while (guest := await self._guest_of(session_id)) is not None:
            try:
                return await guest.host.open(NewSession(session_id=session_id, exists=True))
            except PeerLostError:
                self._drop(guest)
        await self._local.session(session_id, opening)
        return None

    async def wake(self, session_id: str) -> None:
        if await self._guest_of(session_id) is not None:
            await self.session(session_id)
        else:
            await self._local.wake(session_id)

    async def tell(self, command: cm.Command) -> Answer:
        """Send a command. It can be retried at the next host: it takes effect once, by its id."""
        session_id = command.session_id
        while (guest := await self._guest_of(session_id)) is not None:
            try:
                return await guest.host.tell(command)
            except PeerLostError:
                self._drop(guest)
        session = await self._local.session(session_id)
        if session_id in self._incapable and isinstance(command, _NEEDS_CAPABILITIES):
            missing = await self.required_capabilities(session_id) - self.capabilities
            if missing:
                raise _program_gone(session_id, missing)
            self._incapable.discard(session_id)
            session = await self._local.session(session_id)
        return await self._local.tell_session(session, command)

    async def watch(self, session_id: str, *, after: int) -> Watching:
        if await self._guest_of(session_id) is None:
            try:
                return await self._local.watch(session_id, after=after)
            except ProgramGoneError:
                pass
        return Relay(self._read_from_host, session_id, after)

    async def view(self, session_id: str) -> SessionView:
        while (guest := await self._guest_of(session_id)) is not None:
            try:
                return await guest.host.view(session_id)
            except PeerLostError:
                self._drop(guest)
        try:
            return await self._local.view(session_id)
        except ProgramGoneError:
            fold = await folded(session_id, await self._store.events(session_id))
            return view_of(fold, await read_draft(self._store, session_id))

    async def _read_from_host(self, session_id: str, after: int) -> AsyncGenerator[Event]:
        """Yield the session's events from its present host, until another process hosts it."""
        changed, guest = self._hosts_changed, await self._guest_of(session_id)
        try:
            source = self._local if guest is None else guest.host
            async with await source.watch(session_id, after=after) as reader:
                async for event in reader:
                    yield event
        except PeerLostError:
            if guest is not None:
                self._drop(guest)
        except ProgramGoneError:
            for event in await self._store.events(session_id, after=after):
                yield event
            await changed.wait()

    async def stop_hosting(self, session_id: str) -> None:
        """Close a session that is about to be deleted, at whichever host has it."""
        guest = None if self.guests is None else self.guests.host_of(session_id)
        if guest is not None:
            guest.sessions.discard(session_id)
            try:
                await guest.host.stop_hosting(session_id)
            except PeerLostError:
                self._drop(guest)
        self._incapable.discard(session_id)
        await self._local.stop_hosting(session_id)

    async def close(self) -> None:
        await self._group.leave()
        await self._local.close()

    def _drop(self, guest: Guest) -> None:
        if self.guests is not None:
            self.guests.drop(guest)


def _program_gone(session_id: str, missing: Iterable[str]) -> ProgramGoneError:
    names = ", ".join(f"the {name.replace(':', ' ', 1)}" for name in sorted(missing))
    return ProgramGoneError(
        f"the session {session_id} needs {names}, which only the program has that created the "
        "session, and that program is not running; start it to continue the session, or change "
        "the session's tools or model"
    )
