"""Dispatch and bus within one process: its sessions, each opened once and owned here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from keryx import commands as cm
from keryx import events as ev
from keryx.aio.group import Group
from keryx.aio.hub import Hub
from keryx.aio.scope import Scope
from keryx.app.host.idle_sessions import IdleSessions
from keryx.engine.log.drafts import read_draft
from keryx.engine.log.views import view_at_rest
from keryx.engine.session import Opening, Session, open_hub
from keryx.errors import FencedError, KeryxError, SessionDeletedError
from keryx.ports.dispatch import Answer, Watching
from keryx.ports.store import Store
from keryx.ports.view import SessionView

EventHub = Hub[ev.Event]
Open = Callable[[str, Opening | None, EventHub | None], Awaitable[Session]]
"""Opens a session; the hub is there already if somebody watches it."""


def _ignore(session_id: str) -> None:
    """Nobody needs to know."""
    del session_id


def _report(name: str, error: BaseException) -> None:
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"could not {name}", "exception": error}
    )


class LocalDispatch:
    """Brings work and commands to the sessions of this process. Belongs to one loop.

    A session that rests is let go after a while, and opened again when it is needed. Whoever
    watches one does not keep it open: the hub is enough.
    """

    def __init__(
        self,
        scope: Scope,
        store: Store,
        open_session: Open,
        let_go: Callable[[str], None] = _ignore,
    ) -> None:
        """`let_go` is told of each session that is not owned here any more."""
        self._store = store
        self._open_session = open_session
        self._clock = scope.clock
        # One that cannot be opened or closed is reported, and holds up no other.
        self._group = Group(Scope("opening", clock=scope.clock), on_error=_report)
        self._sessions: dict[str, asyncio.Future[Session]] = {}
        self._hubs: dict[str, EventHub] = {}
        """Of sessions that are watched and not open."""
        self._resting = IdleSessions(scope.deadlines, self._rest)
        self._on_let_go = let_go

    async def session(self, session_id: str, opening: Opening | None = None) -> Session:
        """The one owner of this session, however many ask at once."""
        while True:
            session = await self._opened(session_id, opening)
            # Between its opening and this line it may have been let go again, with many others.
            if not session.is_let_go:
                return session

    async def _opened(self, session_id: str, opening: Opening | None) -> Session:
        found = self._sessions.get(session_id)
        if found is not None and _is_broken(found):
            await self._let_go(session_id, found)
            found = self._sessions.get(session_id)
        if found is None:
            found = asyncio.get_running_loop().create_future()
            self._sessions[session_id] = found
            self._group.start(self._open(session_id, opening, found), name=f"open {session_id}")
        # Whoever asked first may give up; the others still want it.
        return await asyncio.shield(found)

    async def _open(
        self, session_id: str, opening: Opening | None, opened: asyncio.Future[Session]
    ) -> None:
        """Open it for all who wait. An error is theirs, and no other session's."""
        hub = self._hubs.pop(session_id, None)
        try:
            session = await self._open_session(session_id, opening, hub)
            opened.set_result(session)
            self._rests(session_id, session)
        except asyncio.CancelledError:
            opened.cancel()
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, whoever asked is told)
            self._sessions.pop(session_id, None)
            if hub is not None:
                hub.close(error)
            opened.set_exception(error)
            opened.exception()  # seen, also if all who asked have given up

    def rested(self, session_id: str) -> None:
        """No turn of this session runs any more, and none waits."""
        opened = self._sessions.get(session_id)
        if opened is not None and opened.done() and not opened.cancelled():
            self._rests(session_id, opened.result())

    def _rests(self, session_id: str, session: Session) -> None:
        if session.is_resting and session_id in self._sessions:
            self._resting.add(session_id, session)
        else:
            self._resting.remove(session_id)

    def _rest(self, session_id: str) -> None:
        """Let go of a session that is idle; its readers stay."""
        session = self._sessions.pop(session_id).result()
        if session.hub.readers:
            self._keep_hub(session_id, session.hub)
        self._on_let_go(session_id)
        self._group.start(session.let_go(), name=f"let go of {session_id}")

    def _keep_hub(self, session_id: str, hub: EventHub) -> None:
        def drop() -> None:
            if self._hubs.get(session_id) is hub:
                del self._hubs[session_id]

        self._hubs[session_id] = hub
        hub.on_empty = drop

    async def _let_go(self, session_id: str, found: asyncio.Future[Session]) -> None:
        """A session whose log failed is opened anew, unless someone else owns it now."""
        session = found.result()
        if isinstance(session.broken, FencedError):
            raise FencedError(str(session.broken))
        if self._sessions.get(session_id) is found:
            del self._sessions[session_id]
            self._resting.remove(session_id)
            await session.close()

    async def forget(self, session_id: str) -> None:
        """Stop owning a session that is about to be deleted; its readers are told."""
        gone = SessionDeletedError(f"the session {session_id} was deleted")
        if (hub := self._hubs.pop(session_id, None)) is not None:
            hub.close(gone)
        found = self._sessions.pop(session_id, None)
        if found is not None:
            self._resting.remove(session_id)
            await (await asyncio.shield(found)).close(gone)
            self._on_let_go(session_id)

    def holds(self, session_id: str) -> bool:
        """Whether the session is open here, or about to be."""
        return session_id in self._sessions

    def open_ids(self) -> list[str]:
        return list(self._sessions)

    def hand_over(self, session_id: str) -> None:
        """Another process hosts the session from now on; it is at rest here."""
        opened = self._sessions.pop(session_id, None)
        self._resting.remove(session_id)
        if (hub := self._hubs.pop(session_id, None)) is not None:
            hub.close()
        if opened is not None and opened.done() and not opened.cancelled():
            self._group.start(_close(opened.result()), name=f"hand over {session_id}")

    # -- dispatch

    async def wake(self, session_id: str) -> None:
        await (await self.session(session_id)).read_inbox()

    # -- bus

    async def tell(self, command: cm.Command) -> Answer:
        return await self.tell_session(await self.session(command.session_id), command)

    async def tell_session(self, session: Session, command: cm.Command) -> Answer:
        """Give the command to a session that is open here."""
        try:
            return await session.tell(command)
        finally:
            self._rests(command.session_id, session)

    async def watch(self, session_id: str, *, after: int) -> Watching:
        if session_id not in self._sessions and session_id not in self._hubs:
            resting = await self._store.resting(session_id)
            if resting is not None and session_id not in self._sessions | self._hubs:
                hub = open_hub(self._store, self._clock, session_id, resting.seq)
                self._keep_hub(session_id, hub)
        if (hub := self._hubs.get(session_id)) is not None:
            return hub.read(after=after)
        return (await self.session(session_id)).hub.read(after=after)

    async def view(self, session_id: str) -> SessionView:
        if session_id not in self._sessions:
            resting = await self._store.resting(session_id)
            if resting is not None:
                # Nobody needs its whole log for this; and who watches or talks to it opens it.
                draft = await read_draft(self._store, session_id)
                return view_at_rest(session_id, resting, draft)
        return await (await self.session(session_id)).view()

    async def close(self) -> None:
        """Stop all sessions gracefully, at the same time: each may take its ladder."""
        self._resting.close()
        await self._group.leave()
        for hub in tuple(self._hubs.values()):
            hub.close()
        async with Group(Scope("closing"), on_error=_report) as group:
            for session_id, opened in self._sessions.items():
                if opened.done() and not opened.cancelled():
                    group.start(opened.result().close(), name=f"close {session_id}")
        self._sessions.clear()


def _is_broken(opened: asyncio.Future[Session]) -> bool:
    return opened.done() and not opened.cancelled() and opened.result().broken is not None


async def _close(session: Session) -> None:
    with suppress(KeryxError):  # whoever hosts it now reads what is in the store
        await session.close()
