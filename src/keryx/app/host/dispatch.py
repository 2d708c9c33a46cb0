"""Dispatch and bus within one process: its sessions, each opened once and owned here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from keryx import commands as cm
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.engine.log.unsent import read_draft
from keryx.engine.log.views import view_at_rest
from keryx.engine.session import Opening, Session
from keryx.errors import DeveloperMustActError, FencedError, KeryxError
from keryx.ports.dispatch import Answer, Watching
from keryx.ports.store import Store
from keryx.ports.view import SessionView

Open = Callable[[str, Opening | None], Awaitable[Session]]


class LocalDispatch:
    """Brings work and commands to the sessions of this process. Belongs to one loop."""

    def __init__(self, scope: Scope, store: Store, open_session: Open) -> None:
        self._store = store
        self._open_session = open_session
        self._group = Group(Scope("opening", clock=scope.clock))
        self._sessions: dict[str, asyncio.Future[Session]] = {}

    async def session(self, session_id: str, opening: Opening | None = None) -> Session:
        """The one owner of this session, however many ask at once."""
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
        try:
            opened.set_result(await self._open_session(session_id, opening))
        except asyncio.CancelledError:
            opened.cancel()
            raise
        except Exception as error:  # noqa: BLE001 (whatever it is, whoever asked is told)
            self._sessions.pop(session_id, None)
            opened.set_exception(error)
            opened.exception()  # seen, also if all who asked have given up

    async def _let_go(self, session_id: str, found: asyncio.Future[Session]) -> None:
        """A session whose log failed is opened anew, unless someone else owns it now."""
        session = found.result()
        if isinstance(session.broken, FencedError):
            raise FencedError(str(session.broken))
        if self._sessions.get(session_id) is found:
            del self._sessions[session_id]
            await session.close()

    async def forget(self, session_id: str) -> None:
        """Stop owning a session that is about to be deleted; its readers are told."""
        found = self._sessions.pop(session_id, None)
        if found is not None:
            gone = DeveloperMustActError(f"the session {session_id} was deleted")
            await (await asyncio.shield(found)).close(gone)

    def holds(self, session_id: str) -> bool:
        """Whether the session is open here, or about to be."""
        return session_id in self._sessions

    def open_ids(self) -> list[str]:
        return list(self._sessions)

    def hand_over(self, session_id: str) -> None:
        """Another process hosts the session from now on; it is at rest here."""
        opened = self._sessions.pop(session_id, None)
        if opened is not None and opened.done() and not opened.cancelled():
            self._group.start(_close(opened.result()), name=f"hand over {session_id}")

    # -- dispatch

    async def wake(self, session_id: str) -> None:
        await (await self.session(session_id)).read_inbox()

    # -- bus

    async def tell(self, command: cm.Command) -> Answer:
        return await (await self.session(command.session_id)).tell(command)

    async def watch(self, session_id: str, *, after: int) -> Watching:
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
        await self._group.leave()
        async with Group(Scope("closing")) as group:
            for session_id, opened in self._sessions.items():
                if opened.done() and not opened.cancelled():
                    group.start(opened.result().close(), name=f"close {session_id}")
        self._sessions.clear()


def _is_broken(opened: asyncio.Future[Session]) -> bool:
    return opened.done() and not opened.cancelled() and opened.result().broken is not None


async def _close(session: Session) -> None:
    with suppress(KeryxError):  # whoever hosts it now reads what is in the store
        await session.close()
