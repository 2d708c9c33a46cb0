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

from keryx.aio.acquire import acquire, release
from keryx.app.handles import SessionHandle
from keryx.app.host.socket_protocol import NewSession
from keryx.app.host_client import HostClient
from keryx.app.memory.memory_client import MemoryClient
from keryx.app.models import Models
from keryx.app.runtime import Runtime
from keryx.app.services.places import find_workspace
from keryx.app.tools import Tools
from keryx.config import DEFAULT, IN_MEMORY, Config, load
from keryx.errors import DeveloperMustActError
from keryx.ids import new_id
from keryx.messages import ApprovalMode, Effort, File, Image
from keryx.ports.model import Model
from keryx.ports.store import Store
from keryx.ports.tool import Tool

MODEL_PARTS: Final = ("name", "window", "sees_images", "encode", "stream")
"""The attributes of every model; see `ports/model.py`."""


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
        self._model = _checked_model(model)
        self._own_models = _checked_models(models)
        self._resume = _checked_bool("resume", resume)
        self._take_over = _checked_bool("take_over", take_over)
        self._titles = _checked_bool("titles", titles)
        self._tools = None if tools is None else Tools.of_program(tools)
        self._workspace = _checked_path("workspace", workspace)
        self._workspace_path: str | None = None
        self._home = None if home is None else _checked_path("home", home)
        self._temporary_folder: str | None = None
        self._runtime: Runtime | None = None
        self._models: Models | None = None
        self._host_client: HostClient | None = None

    async def __aenter__(self) -> Self:
        self._runtime = runtime = Runtime()
        try:
            config = await self._load_config(runtime)
            self._models = models = Models(
                config,
                self._model,
                others=self._own_models,
                threads=partial(runtime.bridge.start_thread, name="prices"),
                runtime=runtime,
            )
            # A large library is imported while the tools load: part of that needs no interpreter.
            models.loading = runtime.bridge.start_thread(models.load, name="load").future
            tools = await self._load_tools(config, runtime)
            host_client = HostClient(
                config,
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

    async def _load_tools(self, config: Config, runtime: Runtime) -> Tools:
        if self._tools is None:
            return await runtime.bridge.to_thread(Tools.built_in, config)
        return self._tools

    async def _load_config(self, runtime: Runtime) -> Config:
        config = await runtime.bridge.to_thread(load, self._home)
        if str(config.home) != IN_MEMORY:
            return config
        create = partial(tempfile.mkdtemp, prefix="keryx-")
        self._temporary_folder = await acquire(runtime.bridge, create, shutil.rmtree)
        return msgspec.structs.replace(
            config,
            home=Path(self._temporary_folder),
            settings_home=Path(self._temporary_folder),
            in_memory=True,
        )

    async def _close(self) -> None:
        if self._models is not None:
            await self._models.close()
        if self._runtime is not None:
            if (folder := self._temporary_folder) is not None:
                self._temporary_folder = None
                await release(self._runtime.bridge, partial(shutil.rmtree, folder))
            await self._runtime.close()

    async def open(
        self,
        session_id: str | None = None,
        *,
        tools: Sequence[str] | None = None,
        effort: Effort | None = None,
        personality: str | None = None,
        profile: str | None = None,
        approvals: ApprovalMode | None = None,
        read_only: bool = False,
    ) -> SessionHandle:
        """Create a session, or open one by its id. All other arguments are for new sessions:
        `DeveloperMustActError` if one is passed with an id; `change` the session instead.

        `tools` names the only tools of the session; empty: no tools. Default: those that the
        profile has for programs, or all of the host.
        """
        host_client, runtime = self.host_client, self._runtime
        assert runtime is not None
        settings = (tools, effort, personality, profile, approvals)
        if session_id is not None and (read_only or any(value is not None for value in settings)):
            raise DeveloperMustActError(
                f"the session {session_id!r:.80} has its settings; open it by its id alone, and "
                "change them with session.change(...)"
            )
        # An existing session has its own workspace.
        workspace, names = "", self._tool_names(tools)
        if session_id is None:
            workspace = await self._find_workspace(runtime)
            if names is None:
                names = await host_client.tools_for("program", profile or DEFAULT)
        request = NewSession(
            session_id=new_id("s") if session_id is None else session_id,
            exists=session_id is not None,
            workspace=workspace,
            model=self._model if isinstance(self._model, str) else None,
            tools=names,
            effort=effort,
            personality=personality,
            profile=profile,
            approvals=approvals,
            read_only=read_only,
        )
        await host_client.open(request)
        return SessionHandle(host_client, request.session_id)

    async def _find_workspace(self, runtime: Runtime) -> str:
        """Return the workspace of new sessions. It is resolved once."""
        if self._workspace_path is None:
            path = await runtime.bridge.to_thread(find_workspace, self._workspace)
            self._workspace_path = str(path)
        return self._workspace_path

    def _tool_names(self, tools: object) -> tuple[Any, ...] | None:
        if tools is None:
            return None if self._tools is None else tuple(self._tools.by_name)
        if isinstance(tools, str) or not isinstance(tools, Iterable):
            raise _wrong("tools", tools, "a list of names, for instance ['read_file', 'shell']")
        return tuple(cast("Iterable[Any]", tools))

    async def upload(self, data: bytes, name: str, media_type: str) -> Image | File:
        """Store a file that will be attached to a message; durable once this returns."""
        _expect("data", data, bytes)
        _expect("name", name, str)
        _expect("media_type", media_type, str)
        blob = await self.host_client.keep_upload(data)
        kind = Image if media_type.startswith("image/") else File
        return kind(blob, media_type, name)

    async def delete(self, session_id: str, *, keep_memory: bool = False) -> bool:
        """Delete everything of the session. False: there was no such session.

        What only this session taught is forgotten too, unless `keep_memory` is true.
        """
        _expect("session_id", session_id, str)
        _checked_bool("keep_memory", keep_memory)
        return await self.host_client.delete(session_id, keep_memory=keep_memory)

    @property
    def host_client(self) -> HostClient:
        """The client of the host, for front ends."""
        if self._host_client is None:
            raise DeveloperMustActError(
                "Keryx is not running; use it inside `async with Keryx(...) as app:`"
            )
        return self._host_client

    @property
    def memory(self) -> MemoryClient:
        """What is remembered beyond sessions."""
        return self.host_client.memory

    @property
    def store(self) -> Store:
        """The logs, for reading."""
        return self.host_client.store


# -- checks of the arguments that a program passes


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


def _checked_models(values: Any) -> tuple[Model, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _wrong("models", values, "a list of models of your own (ports/model.py)")
    models: list[Model] = []
    for value in cast("Iterable[object]", values):
        model = _checked_model(value)
        if model is None or isinstance(model, str):
            raise _wrong("models", value, "a model of your own; a session names all others")
        models.append(model)
    return tuple(models)
