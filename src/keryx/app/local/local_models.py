"""The models of this machine: creates them, and pulls one when the page asks for it."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

import msgspec

from keryx.aio.group import Group
from keryx.app.runtime import Runtime
from keryx.config import Config, user_home
from keryx.config.installers import installer_environment
from keryx.errors import KeryxError, ModelError
from keryx.models.embedded.model import EmbeddedModel
from keryx.models.embedded.model_file import (
    GET_LIBRARY,
    LIBRARY,
    SMOLLM2,
    check,
    is_pulled,
    library_folder,
    model_file,
)
from keryx.models.embedded.pull import pull
from keryx.models.embedded.workers import Workers
from keryx.models.http import Clients
from keryx.ports.model import Model

TINY: Final = f"local:{SMOLLM2.name}"

State = Literal["unavailable", "absent", "pulling", "failed", "ready"]


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """The tiny model of this machine: whether it can be used, and how far its download is."""

    state: State
    model: str = TINY
    done: int = 0
    """Bytes that are here."""
    total: int = SMOLLM2.wheel_size
    problem: str = ""
    hint: str = ""


def check_local(name: str, config: Config) -> None:
    """Raise `ModelError` if this model cannot be used, with what is missing. Blocking."""
    check(model_file(name, config.settings_home, user_home(config.environment)))


class LocalModels:
    """The local models of one host. Belongs to its loop."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._workers = Workers(runtime.warden, runtime.bridge, runtime.scope)
        self._group = Group(runtime.scope.child("pulls"))
        self._pulling: asyncio.Task[None] | None = None
        self._done = 0
        self._failure: KeryxError | None = None

    @property
    def workers(self) -> Workers:
        return self._workers

    def create(self, name: str, config: Config, clients: Clients) -> Model:
        """Return the model of that name; `ModelError` if the name cannot be one."""
        file = model_file(name, config.settings_home, user_home(config.environment))
        return EmbeddedModel(name, file, self._workers, clients)

    async def state(self, config: Config) -> LocalModel:
        """Return the state of the tiny model."""
        folder = await self._runtime.bridge.to_thread(library_folder)
        if folder is None:
            problem = f"It needs the package {LIBRARY}, which is not installed."
            return LocalModel(state="unavailable", problem=problem, hint=GET_LIBRARY)
        if self._pulling is not None and not self._pulling.done():
            return LocalModel(state="pulling", done=self._done)
        if await self._runtime.bridge.to_thread(is_pulled, SMOLLM2, config.settings_home):
            return LocalModel(state="ready", done=SMOLLM2.wheel_size)
        if (failure := self._failure) is not None:
            message, hint = str(failure), ""
            if isinstance(failure, ModelError):
                message, hint = failure.message, failure.hint
            return LocalModel(state="failed", problem=message, hint=hint)
        return LocalModel(state="absent")

    async def start_pull(self, config: Config) -> LocalModel:
        """Start to pull the tiny model, unless it is here or being pulled; return its state."""
        state = await self.state(config)
        if state.state in ("absent", "failed") and (self._pulling is None or self._pulling.done()):
            self._done, self._failure = 0, None
            self._pulling = self._group.start(self._pull(config), name="pull a model")
            return LocalModel(state="pulling")
        return state

    async def close(self) -> None:
        """End the pull and all workers."""
        await self._group.leave()
        self._group.scope.close()
        await self._workers.close()

    async def _pull(self, config: Config) -> None:
        """Pull, and remember the error: one that is raised would end the group."""
        try:
            await pull(
                SMOLLM2,
                config.settings_home,
                warden=self._runtime.warden,
                bridge=self._runtime.bridge,
                env=installer_environment(config.environment),
                report=self._report,
            )
        except KeryxError as error:
            self._failure = error

    def _report(self, done: int, total: int) -> None:
        del total
        self._done = done
