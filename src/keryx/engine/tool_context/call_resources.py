"""The session's resources for one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from keryx.aio.capture import OutputSink
from keryx.aio.scope import Scope
from keryx.engine.calls.call import Call
from keryx.engine.calls.session_resources import SessionResources
from keryx.errors import DeveloperMustActError
from keryx.ports.place import Process
from keryx.ports.resources import Closeable, ResourceContext

R = TypeVar("R", bound=Closeable)


class CallResources:
    """The session's resources, for the use of one call."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def _all(self) -> SessionResources:
        self._call.refuse_if_cancelled()
        if self._call.environment.resources is None:
            raise DeveloperMustActError("this session has no resources; open it with them")
        return self._call.environment.resources

    async def get(self, key: str, create: Callable[[ResourceContext], Awaitable[R]]) -> R:
        return await self._all.get(key, create, self._context)

    async def drop(self, key: str) -> bool:
        return await self._all.drop(key)

    def _context(self, scope: Scope) -> ResourceContext:
        return _PlaceOfResource(self._call, scope)


class _PlaceOfResource:
    """Starts the processes of one resource, with what its first call was granted."""

    def __init__(self, call: Call, scope: Scope) -> None:
        self.scope = scope
        self._environment = call.environment
        self._granted = call.granted

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
    ) -> Process:
        environment = self._environment
        return await environment.require_place().spawn(
            argv,
            env=environment.env if env is None else env,
            cwd=str(environment.workspace) if cwd is None else cwd,
            output=output,
            stdin=stdin,
            scope=self.scope,
            granted=self._granted,
        )
