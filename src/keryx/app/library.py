"""The library: open a session, send, watch, steer, cancel. Everything else is internal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from keryx import config
from keryx.aio.bridge import Bridge
from keryx.aio.clock import RealClock
from keryx.app.handles import SessionHandle
from keryx.app.home import Home
from keryx.app.models import Models
from keryx.app.prompt import read_prompt
from keryx.app.runtime import Runtime
from keryx.engine.calls.lane import Lane
from keryx.engine.calls.witness import Witness
from keryx.engine.desk import Surroundings, mint
from keryx.engine.limits import Limits
from keryx.engine.session import Opening, Session
from keryx.errors import DeveloperMustActError
from keryx.ports.model import Model
from keryx.ports.store import Store
from keryx.ports.tool import Tool
from keryx.store.sqlite import SqliteStore

STORE_THREADS: Final = 8
"""One writes, the others read."""


class Keryx:
    """A host in this process: its sessions live as long as it is open, their logs for ever."""

    def __init__(
        self,
        *,
        model: str | Model | None = None,
        tools: Sequence[Tool] = (),
        workspace: str | Path = ".",
        home: str | Path | None = None,
        resume: bool = True,
    ) -> None:
        self._asked_model = model
        self._resume = resume
        self._tools = {tool.name: tool for tool in tools}
        self._workspace = Path(workspace)
        self._asked_home = home
        self._opened: _Opened | None = None

    async def __aenter__(self) -> Self:
        opened = await _Opened.begin(self._asked_home, self._asked_model, self._tools)
        self._opened = opened
        if self._resume:
            await opened.resume()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.end()

    async def open(self, session_id: str | None = None) -> SessionHandle:
        """A new session, or an old one by its id."""
        opened = self._running
        if session_id is not None and await opened.store.session(session_id) is None:
            raise DeveloperMustActError(
                f"there is no session {session_id!r}; `keryx sessions list` shows those there are"
            )
        workspace = await opened.runtime.bridge.to_thread(self._workspace.resolve)
        opening = Opening(
            model=opened.model_name, workspace=str(workspace), tools=tuple(self._tools)
        )
        return SessionHandle(await opened.session(session_id or mint("s"), opening))

    @property
    def store(self) -> Store:
        """The logs, for reading."""
        return self._running.store

    @property
    def _running(self) -> _Opened:
        if self._opened is None:
            raise DeveloperMustActError("use it inside `async with Keryx(...) as app:`")
        return self._opened


class _Opened:
    """The parts of a host that is open."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        home: Home,
        threads: Bridge,
        store: Store,
        models: Models,
        model_name: str,
        tools: dict[str, Tool],
        limits: Limits,
        personalities: dict[str, str],
    ) -> None:
        self.runtime = runtime
        self.store = store
        self.model_name = model_name
        self._home = home
        self._threads = threads
        self._models = models
        self._tools = tools
        self._sessions: dict[str, Session] = {}
        self._around = Surroundings(
            store=store,
            executor=runtime.executor,
            clock=RealClock(),
            model=models.find,
            lane=self._lane,
            prompt=read_prompt(runtime.bridge, personalities),
            limits=limits,
        )

    @classmethod
    async def begin(
        cls, home: str | Path | None, model: str | Model | None, tools: dict[str, Tool]
    ) -> Self:
        runtime = Runtime()
        try:
            found = await runtime.bridge.to_thread(config.load, home)
            taken = await runtime.bridge.to_thread(Home.take, found.home)
        except BaseException:
            await runtime.close()
            raise
        try:
            # Threads of its own: a commit must not wait behind tools that block.
            threads = Bridge(runtime.scope, threads=STORE_THREADS)
            store = await SqliteStore.open(taken.store, threads)
        except BaseException:
            taken.release()
            await runtime.close()
            raise
        models = Models(found)
        if model is not None and not isinstance(model, str):
            models.add(model)
        name = model if isinstance(model, str) else model.name if model else found.model or ""
        limits = Limits(found.limits.steps, found.limits.tokens, found.limits.seconds)
        return cls(
            runtime=runtime,
            home=taken,
            threads=threads,
            store=store,
            models=models,
            model_name=name,
            tools=tools,
            limits=limits,
            personalities=dict(found.personalities),
        )

    async def resume(self) -> None:
        """Go on with every turn that an earlier host left unfinished."""
        unfinished = await self.store.unfinished()
        self._around.neighbours.expect(unfinished)
        for session_id in unfinished:
            await self.session(session_id, None)

    async def session(self, session_id: str, opening: Opening | None) -> Session:
        found = self._sessions.get(session_id)
        if found is None:
            found = await Session.open(session_id, self._around, self.runtime.scope, opening)
            self._sessions[session_id] = found
        return found

    def _lane(
        self, session_id: str, tools: tuple[str, ...], workspace: Path, witness: Witness
    ) -> Lane:
        granted = [self._tools[name] for name in tools if name in self._tools]
        return self.runtime.lane(session_id, granted, workspace=workspace, witness=witness)

    async def end(self) -> None:
        for session in self._sessions.values():
            await session.close()
        await self.runtime.executor.close()
        await self.store.close()
        await self._threads.close()
        await self._models.close()
        await self.runtime.close()
        self._home.release()
