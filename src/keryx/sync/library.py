"""Keryx, blocking: the sessions of a home for a program without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from keryx import app
from keryx.errors import DeveloperMustActError
from keryx.messages import ApprovalMode, File, Image
from keryx.ports.model import Model
from keryx.ports.tool import Tool
from keryx.sync.caller import Caller
from keryx.sync.logs import Logs
from keryx.sync.sessions import Session


class Keryx:
    """The sessions of a home. This process hosts them, or attaches to the one that does.

    `titles` lets a model give a better title to each session after its first turn.
    `take_over` takes a home from a host that is frozen; that one can write nothing more.
    `tools`: exactly these, tools or typed functions; None: those that every host has, for files,
    the shell and questions.
    `home`: where state lives; None: what `KERYX_HOME` says, or the user's own. `keryx.IN_MEMORY`
    keeps everything in this process, with nothing on the disk but a temporary folder, and forgets
    it at the end: for tests and notebooks.
    """

    def __init__(
        self,
        *,
        model: str | Model | None = None,
        tools: Sequence[Tool | Callable[..., Any]] | None = None,
        workspace: str | Path = ".",
        home: str | Path | None = None,
        resume: bool = True,
        take_over: bool = False,
        titles: bool = False,
    ) -> None:
        self._app = app.Keryx(
            model=model,
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
        effort: str | None = None,
        personality: str | None = None,
        profile: str | None = None,
        approvals: ApprovalMode | None = None,
        read_only: bool = False,
    ) -> Session:
        """A new session, or an old one by its id. The rest is for new ones.

        `tools` is a closed set (default: all that the host has); an empty one means no tools.
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
        """Keep what is to be attached to a message; durable once this returns."""
        return self._call(self._app.upload, data, name, media_type)

    def delete(self, session_id: str) -> bool:
        """Everything of the session is gone. False: there was none."""
        return self._call(self._app.delete, session_id)

    @property
    def store(self) -> Logs:
        """The logs, for reading."""
        return Logs(self._call, self._app.store)

    @property
    def _call(self) -> Caller:
        if self._caller is None:
            raise DeveloperMustActError("use it inside `with Keryx(...) as app:`")
        return self._caller
