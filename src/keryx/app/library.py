"""The library: open a session, send, watch, steer, cancel. Everything else is internal."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

import msgspec

from keryx import config
from keryx.app.handles import SessionHandle
from keryx.app.host.socket_protocol import NewSession
from keryx.app.host_client import HostClient
from keryx.app.models import Models
from keryx.app.places import find_workspace
from keryx.app.runtime import Runtime
from keryx.app.tools import Tools
from keryx.config import IN_MEMORY, Config
from keryx.errors import DeveloperMustActError
from keryx.ids import new_id
from keryx.messages import ApprovalMode, File, Image
from keryx.ports.model import Model
from keryx.ports.store import Store
from keryx.ports.tool import Tool

MODEL_PARTS: Final = ("name", "window", "sees_images", "encode", "stream")
"""What every model has; see `ports/model.py`."""


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
        self._model = _checked_model(model)
        self._resume = _checked_bool("resume", resume)
        self._take_over = _checked_bool("take_over", take_over)
        self._titles = _checked_bool("titles", titles)
        self._tools = None if tools is None else Tools.of_program(tools)
        self._workspace = _checked_path("workspace", workspace)
        self._found_workspace: str | None = None
        self._home = None if home is None else _checked_path("home", home)
        self._folder: str | None = None
        self._runtime: Runtime | None = None
        self._models: Models | None = None
        self._host_client: HostClient | None = None

    async def __aenter__(self) -> Self:
        self._runtime = runtime = Runtime()
        try:
            found = await self._configuration(runtime)
            self._models = models = Models(
                found, self._model, threads=partial(runtime.bridge.start_thread, name="prices")
            )
            # A large library is loaded beside the tools: part of that needs no interpreter.
            runtime.bridge.start_thread(models.load, name="load")
            tools = await self._find_tools(found, runtime)
            host_client = HostClient(
                found,
                runtime,
                models=models,
                tools=tools,
                resume=self._resume,
                take_over=self._take_over,
                titles=self._titles,
            )
            await host_client.join()
        except BaseException:
            await self._close()
            raise
        self._host_client = host_client
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        host_client, self._host_client = self._host_client, None
        if host_client is not None:
            await host_client.leave()
        await self._close()

    async def _find_tools(self, found: Config, runtime: Runtime) -> Tools:
        if self._tools is None:
            return await runtime.bridge.to_thread(Tools.built_in, found)
        return self._tools

    async def _configuration(self, runtime: Runtime) -> Config:
        found = await runtime.bridge.to_thread(config.load, self._home)
        if str(found.home) != IN_MEMORY:
            return found
        self._folder = await runtime.bridge.to_thread(partial(tempfile.mkdtemp, prefix="keryx-"))
        return msgspec.structs.replace(found, home=Path(self._folder), in_memory=True)

    async def _close(self) -> None:
        if self._models is not None:
            await self._models.close()
        if self._runtime is not None:
            if (folder := self._folder) is not None:
                self._folder = None
                await self._runtime.bridge.to_thread(shutil.rmtree, folder)
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
        host_client, runtime = self._there, self._runtime
        assert runtime is not None
        # One that exists has a workspace of its own.
        workspace = ""
        if session_id is None:
            workspace = await self._find_workspace(runtime)
        wanted = NewSession(
            session_id=new_id("s") if session_id is None else session_id,
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
        await host_client.open(wanted)
        return SessionHandle(host_client, wanted.session_id)

    async def _find_workspace(self, runtime: Runtime) -> str:
        """Where new sessions work. It is looked for once: it stays where it is."""
        if self._found_workspace is None:
            path = await runtime.bridge.to_thread(find_workspace, self._workspace)
            self._found_workspace = str(path)
        return self._found_workspace

    def _names(self, tools: object) -> tuple[Any, ...] | None:
        if tools is None:
            return None if self._tools is None else tuple(self._tools.by_name)
        if isinstance(tools, str) or not isinstance(tools, Iterable):
            raise _wrong("tools", tools, "a list of names, for instance ['read_file', 'shell']")
        return tuple(cast("Iterable[Any]", tools))

    async def upload(self, data: bytes, name: str, media_type: str) -> Image | File:
        """Keep what is to be attached to a message; durable once this returns."""
        _expect("data", data, bytes)
        _expect("name", name, str)
        _expect("media_type", media_type, str)
        blob = await self._there.keep_upload(data)
        made = Image if media_type.startswith("image/") else File
        return made(blob, media_type, name)

    async def delete(self, session_id: str) -> bool:
        """Everything of the session is gone. False: there was none."""
        _expect("session_id", session_id, str)
        return await self._there.delete(session_id)

    @property
    def host_client(self) -> HostClient:
        """The way to the sessions, for front ends."""
        return self._there

    @property
    def store(self) -> Store:
        """The logs, for reading."""
        return self._there.store

    @property
    def _there(self) -> HostClient:
        if self._host_client is None:
            raise DeveloperMustActError("use it inside `async with Keryx(...) as app:`")
        return self._host_client


# -- what a program passes, checked before anything is made of it


def _wrong(name: str, value: object, expected: str) -> DeveloperMustActError:
    return DeveloperMustActError(f"{name}={value!r:.80} must be {expected}")


def _expect(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise _wrong(name, value, kind.__name__)


def _checked_bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    return value


def _checked_path(name: str, value: Any) -> Path:
    try:
        path = cast("object", os.fspath(value))
    except TypeError:
        path = None
    if not isinstance(path, str) or not path or "\0" in path:
        raise _wrong(name, value, "the path of a folder")
    return Path(path)


def _checked_model(value: Any) -> str | Model | None:
    if value is None or isinstance(value, str):
        return value
    missing = [part for part in MODEL_PARTS if not hasattr(value, part)]
    if isinstance(value, type) or missing or not isinstance(value.name, str):
        raise _wrong("model", value, "`provider:name`, or a model of your own (ports/model.py)")
    model: Model = value
    return model
