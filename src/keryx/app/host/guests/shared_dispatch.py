"""Dispatch and bus of a home: each session is hosted by one process, this one or a guest of it."""

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

_NEEDS_ALL: Final = (cm.SendMessage, cm.CompactContext)
"""What cannot be done without the tools and the model of a session."""


class ProgramGoneError(UserMustActError):
    """A session needs tools or a model of a program that does not run."""


class SharedDispatch:
    """Brings work and commands to whoever hosts each session: this process, or a guest of it.

    A session that needs what only one program has is hosted by that program. While it does not
    run, such a session can be read and changed, and rests.
    """

    def __init__(
        self,
        scope: Scope,
        store: Store,
        open_session: Open,
        brings: Iterable[str],
        *,
        changed: Callable[[str], None],
        let_go: Callable[[str], None],
    ) -> None:
        """`changed` is told of sessions that turn out to be damaged, `let_go` of those that are not
        open any more."""
        self._store = store
        self._on_change = changed
        self._open_session = open_session
        self._local = LocalDispatch(scope, store, self._open, let_go)
        self._group = Group(Scope("handing over", clock=scope.clock))
        self.brings = frozenset(brings)
        self.guests: GuestTable | None = None
        """Of the owner of a home; a guest has none."""
        self._lacking: set[str] = set()
        """Open here and at rest, but unable to work here."""
        self._changed = asyncio.Event()

    def lead(self, guests: GuestTable) -> None:
        self.guests = guests

    def rested(self, session_id: str) -> None:
        self._local.rested(session_id)

    def holds(self, session_id: str) -> bool:
        return self._local.holds(session_id)

    def open_ids(self) -> list[str]:
        return self._local.open_ids()

    async def needs_of(self, session_id: str) -> frozenset[str]:
        """What the session uses now that only the program has that made it."""
        first = await self._store.events(session_id, limit=1)
        if not first or not isinstance(first[0], SessionOpened) or not first[0].brought:
            return frozenset()
        settings = Settings()
        for event in await self._store.events(session_id):
            if isinstance(event, SessionOpened | SessionChanged):
                settings.take(event)
        used = {f"model:{settings.model}", *(f"tool:{name}" for name in settings.tools)}
        return frozenset(first[0].brought) & used

    # -- who hosts what

    async def _guest_of(self, session_id: str) -> Guest | None:
        """The guest that hosts the session; None: this process does, from now on if need be."""
        if self.guests is None or (
            self._local.holds(session_id) and session_id not in self._lacking
        ):
            return None
        guest = self.guests.host_of(session_id)
        if guest is not None or not self.guests.members:
            return guest
        needs = await self.needs_of(session_id)
        guest = self.guests.host_of(session_id)
        if guest is None and needs and not needs <= self.brings:
            guest = self.guests.able(needs)
            if guest is not None:
                self._hand_over(session_id, guest)
        return guest

    def _hand_over(self, session_id: str, guest: Guest) -> None:
        """In one step: whoever asks next finds the guest."""
        self._lacking.discard(session_id)
        self._local.hand_over(session_id)
        guest.sessions.add(session_id)
        self.note_change()

    async def take(self, session_id: str, guest: Guest, *, is_new: bool) -> bool:
        """Whether the session is that guest's to host, before it claims it."""
        assert self.guests is not None
        if not is_new:
            needs = await self.needs_of(session_id)
            if not needs or not needs <= guest.brings:
                return False
        other = self.guests.host_of(session_id)
        if other is None and (session_id in self._lacking or not self.holds(session_id)):
            self._hand_over(session_id, guest)
            return True
        return other is guest

    def note_change(self) -> None:
        """Who hosts what has changed: whoever waits for a host looks again."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def lost(self, sessions: Iterable[str]) -> None:
        """A guest is gone: what it left unfinished goes on wherever it can."""
        self.note_change()
        self._group.start(self._go_on(set(sessions)), name="go on without a guest")

    async def _go_on(self, sessions: set[str]) -> None:
        for session_id in sessions.intersection(await self._store.unfinished()):
            try:
                await self.wake(session_id)
            except (KeryxError, OSError, msgspec.DecodeError):
                continue  # it rests until its program comes back; whoever asks is told

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
        """Open it here, unless it would have to go on without what it needs."""
        if opening is None:
            missing = await self.needs_of(session_id) - self.brings
            if missing and await self._store.resting(session_id) is None:
                raise _program_gone(session_id, missing)
            session = await self._open_session(session_id, opening, hub)
            if missing:
                # Only now: until it is open it cannot be handed over.
                self._lacking.add(session_id)
            return session
        return await self._open_session(session_id, opening, hub)

    async def resume(self, unfinished: Sequence[str], resume_guard: ResumeGuard) -> None:
        """Go on with what an earlier host left. One that cannot go on holds up no other."""
        resume_guard.expect(unfinished)
        for session_id in unfinished:
            try:
                await self.wake(session_id)
            except StoreDamagedError:
                raise
            except ProgramGoneError:
                resume_guard.rests(session_id)
            except Exception as error:  # noqa: BLE001 (whoever opens it is told why)
                resume_guard.rests(session_id)
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"session {session_id} could not go on", "exception": error}
                )

    # -- dispatch and bus

    async def session(self, session_id: str, opening: Opening | None = None) -> None:
        """Make a session here, or see that one that exists is open."""
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
        """Safe to try again at the next host: a command takes effect once, by its id."""
        session_id = command.session_id
        while (guest := await self._guest_of(session_id)) is not None:
            try:
                return await guest.host.tell(command)
            except PeerLostError:
                self._drop(guest)
        session = await self._local.session(session_id)
        if session_id in self._lacking and isinstance(command, _NEEDS_ALL):
            missing = await self.needs_of(session_id) - self.brings
            if missing:
                raise _program_gone(session_id, missing)
            self._lacking.discard(session_id)
            session = await self._local.session(session_id)
        return await self._local.tell_session(session, command)

    async def watch(self, session_id: str, *, after: int) -> Watching:
        if await self._guest_of(session_id) is None:
            try:
                return await self._local.watch(session_id, after=after)
            except ProgramGoneError:
                pass
        return Relay(self.relayed, session_id, after)

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

    async def relayed(self, session_id: str, after: int) -> AsyncGenerator[Event]:
        """The session's stream from whoever hosts it, until that is someone else."""
        changed, guest = self._changed, await self._guest_of(session_id)
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

    async def forget(self, session_id: str) -> None:
        """Whoever hosts it stops, because it is about to be deleted."""
        guest = None if self.guests is None else self.guests.host_of(session_id)
        if guest is not None:
            guest.sessions.discard(session_id)
            try:
                await guest.host.let_go(session_id)
            except PeerLostError:
                self._drop(guest)
        self._lacking.discard(session_id)
        await self._local.forget(session_id)

    async def close(self) -> None:
        await self._group.leave()
        await self._local.close()

    def _drop(self, guest: Guest) -> None:
        if self.guests is not None:
            self.guests.drop(guest)


def _program_gone(session_id: str, missing: Iterable[str]) -> ProgramGoneError:
    what = ", ".join(f"the {name.replace(':', ' ', 1)}" for name in sorted(missing))
    return ProgramGoneError(
        f"the session {session_id} needs {what}, which only the program has that made it, and that "
        "is not running: start it again, and the session goes on; or change what the session uses"
    )
