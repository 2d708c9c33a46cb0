"""Dispatch and bus within one host: its sessions, each opened once and owned here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from keryx import commands as cm
from keryx.aio.group import Group
from keryx.aio.scope import Scope
from keryx.engine.session import Opening, Session
from keryx.errors import DeveloperMustActError, FencedError
from keryx.ports.dispatch import Answer, Watching

Open = Callable[[str, Opening | None], Awaitable[Session]]


class LocalDispatch:
    """Brings work and commands to the sessions of this process. Belongs to one loop."""

    def __init__(self, scope: Scope, open_session: Open) -> None:
        self._open_session = open_session
        self._group = Group(Scope("opening", clock=scope.clock))
        self._sessions: dict[str, asyncio.Task[Session]] = {}

    async def session(self, session_id: str, opening: Opening | None = None) -> Session:
        """The one owner of this session, however many ask at once."""
        found = self._sessions.get(session_id)
        if found is None or _is_over(found):
            if found is not None:
                await self._let_go(session_id, found)
                return await self.session(session_id, opening)
            found = self._group.start(self._open(session_id, opening), name=f"open {session_id}")
            self._sessions[session_id] = found
        # Whoever asked first may give up; the others still want it.
        return await asyncio.shield(found)

    async def _open(self, session_id: str, opening: Opening | None) -> Session:
        try:
            return await self._open_session(session_id, opening)
        except BaseException:
            self._sessions.pop(session_id, None)
            raise

    async def _let_go(self, session_id: str, found: asyncio.Task[Session]) -> None:
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

    # -- dispatch

    async def wake(self, session_id: str) -> None:
        await (await self.session(session_id)).read_inbox()

    # -- bus

    async def tell(self, command: cm.Command) -> Answer:
        return await (await self.session(command.session_id)).tell(command)

    async def watch(self, session_id: str, *, after: int) -> Watching:
        return (await self.session(session_id)).hub.read(after=after)

    async def close(self) -> None:
        """Stop all sessions gracefully, at the same time: each may take its ladder."""
        group = Group(Scope("closing"))
        for opened in tuple(self._sessions.values()):
            group.start(_close(opened), name=opened.get_name())
        async with group:
            pass
        self._sessions.clear()
        await self._group.leave()


def _is_over(opened: asyncio.Task[Session]) -> bool:
    return opened.done() and not opened.cancelled() and opened.result().broken is not None


async def _close(opened: asyncio.Task[Session]) -> None:
    await (await asyncio.shield(opened)).close()
