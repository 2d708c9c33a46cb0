"""Keryx, blocking: the sessions of a home for a program without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from keryx import app
from keryx.errors import DeveloperMustActError
from keryx.messages import ApprovalMode, Effort, File, Image
from keryx.ports.model import Model
from keryx.ports.tool import Tool
from keryx.sync.caller import Caller
from keryx.sync.logs import Logs
from keryx.sync.memories import Memories
from keryx.sync.sessions import Session


class Keryx:
    """The sessions of a home. This process hosts them, or connects to the process that does.

    `models`: models that this program brings along, beside `model`. A session may name each.
    `titles` lets a model write a title for each session after its first turn.
    `take_over` takes a home from a host that is frozen; that host can write nothing more.
    `tools`: exactly these, tools or typed functions; None: the built-in tools for files, the shell
    and questions.
    `home`: the folder of all state; None: `KERYX_HOME`, or the user's default. `keryx.IN_MEMORY`
    keeps all state in this process (except a temporary folder) and loses it at the end: for tests
    and notebooks.
    """

    def __init__(
        self,
        *,
        model: str | Model | None = None,
        models: Sequence[Model] = (),
        tools: Sequence[Tool | Callable[..., Any]] | None = None,
        workspace: str | Path = ".",
        home: str | Path | None = None,
        resume: bool = True,
        take_over: bool = False,
        titles: bool = False,
    ) -> None:
        self._app = app.Keryx(
            model=model,
            models=models,
            tools=tools,
            workspace=workspace,
            home=home,
            resume=resume,
            take_over=take_over,
            titles=titles,
        )
        self._caller: Caller | None = None

    def __enter__(self) -> Self:
        caller = Caller()
        try:
            caller(self._app.__aenter__)
        except BaseException:
            caller.close()
            raise
        self._caller = caller
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        caller, self._caller = self._caller, None
        if caller is not None:
            try:
                caller(self._app.__aexit__, kind, error, traceback)
            finally:
                caller.close()

    def open(
        self,
        session_id: str | None = None,
        *,
        tools: Sequence[str] | None = None,
        effort: Effort | None = None,
        personality: str | None = None,
        profile: str | None = None,
        approvals: ApprovalMode | None = None,
        read_only: bool = False,
    ) -> Session:
        """Create a session, or open one by its id. All other arguments are for new sessions:
        `DeveloperMustActError` if one is passed with an id; `change` the session instead.

        `tools` names the only tools of the session; empty: no tools. Default: those that the
        profile has for programs, or all of the host.
        """
        handle = self._call(
            self._app.open,
            session_id,
            tools=tools,
            effort=effort,
            personality=personality,
            profile=profile,
            approvals=approvals,
            read_only=read_only,
        )
        return Session(self._call, handle)

    def upload(self, data: bytes, name: str, media_type: str) -> Image | File:
        """Store a file that will be attached to a message; durable once this returns."""
        return self._call(self._app.upload, data, name, media_type)

    def delete(self, session_id: str, *, keep_memory: bool = False) -> bool:
        """Delete everything of the session. False: there was no such session.

        What only this session taught is forgotten too, unless `keep_memory` is true.
        """
        return self._call(self._app.delete, session_id, keep_memory=keep_memory)

    @property
    def memory(self) -> Memories:
        """What is remembered beyond sessions."""
        return Memories(self._call, self._app.memory)

    @property
    def store(self) -> Logs:
        """The logs, for reading."""
        return Logs(self._call, self._app.store)

    @property
    def _call(self) -> Caller:
        if self._caller is None:
            raise DeveloperMustActError("use it inside `with Keryx(...) as app:`")
        return self._caller
