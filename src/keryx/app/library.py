"""The library: open a session, send, watch, steer, cancel. Everything else is internal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from keryx import config
from keryx.app.front import Front
from keryx.app.handles import SessionHandle
from keryx.app.host.wire import NewSession
from keryx.app.models import Models
from keryx.app.places import find_workspace
from keryx.app.runtime import Runtime
from keryx.app.tools import Tools
from keryx.config import Config
from keryx.engine.desk import mint
from keryx.errors import DeveloperMustActError
from keryx.messages import ApprovalMode, File, Image
from keryx.ports.model import Model
from keryx.ports.store import Store
from keryx.ports.tool import Tool


class Keryx:
    """The sessions of a home. This process hosts them, or attaches to the one that does.

    `titles` lets a model give a better title to each session after its first turn.
    `take_over` takes a home from a host that is frozen; that one can write nothing more.
    `tools`: exactly these; None: those that every host has, for files, the shell and questions.
    """

    def __init__(
        self,
        *,
        model: str | Model | None = None,
        tools: Sequence[Tool] | None = None,
        workspace: str | Path = ".",
        home: str | Path | None = None,
        resume: bool = True,
        take_over: bool = False,
        titles: bool = False,
    ) -> None:
        self._model = model
        self._resume = resume
        self._take_over = take_over
        self._titles = titles
        self._tools = tools
        self._workspace = Path(workspace)
        self._home = home
        self._runtime: Runtime | None = None
        self._models: Models | None = None
        self._front: Front | None = None

    async def __aenter__(self) -> Self:
        self._runtime = runtime = Runtime()
        try:
            found = await runtime.bridge.to_thread(config.load, self._home)
            self._models = models = Models(
                found, self._model, threads=partial(runtime.bridge.start_thread, name="prices")
            )
            # A large library is loaded beside the tools: part of that needs no interpreter.
            runtime.bridge.start_thread(models.load, name="load")
            tools = await self._find_tools(found, runtime)
            front = Front(
                found,
                runtime,
                models=models,
                tools=tools,
                resume=self._resume,
                take_over=self._take_over,
                titles=self._titles,
            )
            await front.join()
        except BaseException:
            await self._close()
            raise
        self._front = front
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        front, self._front = self._front, None
        if front is not None:
            await front.leave()
        await self._close()

    async def _find_tools(self, found: Config, runtime: Runtime) -> Tools:
        if self._tools is None:
            return await runtime.bridge.to_thread(Tools.built_in, found)
        return Tools.of_program(self._tools)

    async def _close(self) -> None:
        if self._models is not None:
            await self._models.close()
        if self._runtime is not None:
            await self._runtime.close()

    async def open(
        self,
        session_id: str | None = None,
        *,
        tools: Sequence[str] | None = None,
        effort: str | None = None,
        personality: str | None = None,
        profile: str | None = None,
        approvals: ApprovalMode | None = None,
        read_only: bool = False,
    ) -> SessionHandle:
        """A new session, or an old one by its id. The rest is for new ones.

        `tools` is a closed set (default: all that the host has); an empty one means no tools.
        """
        front, runtime = self._there, self._runtime
        assert runtime is not None
        # One that exists has a workspace of its own.
        workspace = ""
        if session_id is None:
            workspace = str(await runtime.bridge.to_thread(find_workspace, self._workspace))
        wanted = NewSession(
            session_id=session_id or mint("s"),
            exists=session_id is not None,
            workspace=workspace,
            model=self._model if isinstance(self._model, str) else None,
            tools=self._names(tools),
            effort=effort,
            personality=personality,
            profile=profile,
            approvals=approvals,
            read_only=read_only,
        )
        await front.open(wanted)
        return SessionHandle(front, wanted.session_id)

    def _names(self, tools: Sequence[str] | None) -> tuple[str, ...] | None:
        if tools is None and self._tools is not None:
            return tuple(tool.name for tool in self._tools)
        return None if tools is None else tuple(tools)

    async def upload(self, data: bytes, name: str, media_type: str) -> Image | File:
        """Keep what is to be attached to a message; durable once this returns."""
        blob = await self._there.keep_upload(data)
        made = Image if media_type.startswith("image/") else File
        return made(blob, media_type, name)

    async def delete(self, session_id: str) -> bool:
        """Everything of the session is gone. False: there was none."""
        return await self._there.delete(session_id)

    @property
    def front(self) -> Front:
        """The way to the sessions, for front ends."""
        return self._there

    @property
    def store(self) -> Store:
        """The logs, for reading."""
        return self._there.store

    @property
    def _there(self) -> Front:
        if self._front is None:
            raise DeveloperMustActError("use it inside `async with Keryx(...) as app:`")
        return self._front
