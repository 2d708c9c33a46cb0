"""Dispatch and bus within one process: it opens each of its sessions once, and owns them."""

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
from keryx.engine.live.session_hub import open_hub
from keryx.engine.log.drafts import read_draft
from keryx.engine.log.views import view_at_rest
from keryx.engine.session import Opening, Session
from keryx.errors import FencedError, KeryxError, SessionDeletedError
from keryx.ports.dispatch import Answer, Watching
from keryx.ports.store import Store
from keryx.ports.view import SessionView

EventHub = Hub[ev.Event]
Open = Callable[[str, Opening | None, EventHub | None], Awaitable[Session]]
"""Opens a session; the hub is passed if the session has readers already."""


def _ignore(session_id: str) -> None:
    """Do nothing when a session is closed."""
    del session_id


def _report(name: str, error: BaseException) -> None:
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"could not {name}", "exception": error}
    )


class LocalDispatch:
    """Sends work and commands to the sessions of this process. Belongs to one loop.

    A session that is idle is closed after a while, and opened again when it is needed. A reader
    does not keep a session open: its hub is enough.
    """

    def __init__(
        self,
        scope: Scope,
        store: Store,
        open_session: Open,
        on_closed: Callable[[str], None] = _ignore,
    ) -> None:
        """`on_closed` gets the id of each session that this process does not own any more."""
        self._store = store
        self._open_session = open_session
        self._clock = scope.clock
        # A session that cannot be opened or closed is reported, and does not delay the others.
        self._group = Group(Scope("opening", clock=scope.clock), on_error=_report)
        self._sessions: dict[str, asyncio.Future[Session]] = {}
        self._hubs: dict[str, EventHub] = {}
        """The hubs of sessions that have readers and are not open."""
        self._idle_sessions = IdleSessions(scope.deadlines, self._close_idle)
        self._on_closed = on_closed

    async def session(self, session_id: str, opening: Opening | None = None) -> Session:
        """Return the open session; callers that ask at the same time get the same object."""
        while True:
            session = await self._get_or_open(session_id, opening)
            # It may have been closed as idle between its opening and this line.
            if not session.is_released:
                return session

    async def _get_or_open(self, session_id: str, opening: Opening | None) -> Session:
        opened = self._sessions.get(session_id)
        if opened is not None and _is_broken(opened):
            await self._close_broken(session_id, opened)
            opened = self._sessions.get(session_id)
        if opened is None:
            opened = asyncio.get_running_loop().create_future()
            self._sessions[session_id] = opened
            self._group.start(self._open(session_id, opening, opened), name=f"open {session_id}")
        # Shielded: the first caller may be cancelled while others still wait.
        return await asyncio.shield(opened)

    async def _open(
        self, session_id: str, opening: Opening | None, opened: asyncio.Future[Session]
    ) -> None:
        """Open the session for all callers that wait. They get the error, if there is one."""
        hub = self._hubs.pop(session_id, None)
        try:
            session = await self._open_session(session_id, opening, hub)
            opened.set_result(session)
            self._update_idle(session_id, session)
        except asyncio.CancelledError:
            opened.cancel()
            raise
        except Exception as error:  # noqa: BLE001 (the callers get it)
            self._sessions.pop(session_id, None)
            if hub is not None:
                hub.close(error)
            opened.set_exception(error)
            opened.exception()  # marks it as retrieved, even if all callers were cancelled

    def rested(self, session_id: str) -> None:
        """Note that no turn of this session runs or waits any more."""
        opened = self._sessions.get(session_id)
        if opened is not None and opened.done() and not opened.cancelled():
            self._update_idle(session_id, opened.result())

    def _update_idle(self, session_id: str, session: Session) -> None:
        if session.is_resting and session_id in self._sessions:
            self._idle_sessions.add(session_id, session)
        else:
            self._idle_sessions.remove(session_id)

    def _close_idle(self, session_id: str) -> None:
        """Close an idle session; its readers stay connected to its hub."""
        session = self._sessions.pop(session_id).result()
        if session.hub.readers:
            self._keep_hub(session_id, session.hub)
        self._on_closed(session_id)
        self._group.start(session.release(), name=f"close idle {session_id}")

    def _keep_hub(self, session_id: str, hub: EventHub) -> None:
        def drop() -> None:
            if self._hubs.get(session_id) is hub:
                del self._hubs[session_id]

        self._hubs[session_id] = hub
        hub.on_empty = drop

    async def _close_broken(self, session_id: str, opened: asyncio.Future[Session]) -> None:
        """Close a session whose log failed; `FencedError` if another process owns it now."""
        session = opened.result()
        if isinstance(session.broken, FencedError):
            raise FencedError(str(session.broken))
        if self._sessions.get(session_id) is opened:
            del self._sessions[session_id]
            self._idle_sessions.remove(session_id)
            await session.close()

    async def stop_hosting(self, session_id: str) -> None:
        """Close a session that is about to be deleted; its readers get `SessionDeletedError`."""
        deleted = SessionDeletedError(f"the session {session_id} was deleted")
        if (hub := self._hubs.pop(session_id, None)) is not None:
            hub.close(deleted)
        opened = self._sessions.pop(session_id, None)
        if opened is not None:
            self._idle_sessions.remove(session_id)
            await (await asyncio.shield(opened)).close(deleted)
            self._on_closed(session_id)

    def holds(self, session_id: str) -> bool:
        """Return whether the session is open here, or being opened."""
        return session_id in self._sessions

    def open_ids(self) -> list[str]:
        return list(self._sessions)

    def hand_over(self, session_id: str) -> None:
        """Close a session, idle here, that another process hosts from now on."""
        opened = self._sessions.pop(session_id, None)
        self._idle_sessions.remove(session_id)
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
        """Send the command to a session that is open here."""
        try:
            return await session.tell(command)
        finally:
            self._update_idle(command.session_id, session)

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
                # This needs no log: a closed session stays closed until it gets a command.
                draft = await read_draft(self._store, session_id)
                return view_at_rest(session_id, resting, draft)
        return await (await self.session(session_id)).view()

    async def close(self) -> None:
        """Stop all sessions gracefully, at the same time: each may need its full grace period."""
        self._idle_sessions.close()
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
    with suppress(KeryxError):  # its new host reads what is in the store
        await session.close()
