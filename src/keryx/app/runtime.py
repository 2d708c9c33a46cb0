"""The parts of every host: threads, child processes, HTTP clients and the executor, in one scope.

Leaving a `Runtime` ends everything that runs in it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from keryx.aio.bridge import Bridge
from keryx.aio.clock import Clock, RealClock
from keryx.aio.scope import Scope
from keryx.engine.calls.call_environment import CallEnvironment
from keryx.engine.calls.call_hooks import CallHooks, NoHooks
from keryx.engine.executor import Executor
from keryx.engine.redaction import NO_SECRETS, Redactor
from keryx.ports.place import Place
from keryx.ports.tool import Tool
from keryx.sandbox import Bounds, LocalPlace
from keryx.tools.http import HttpClients
from keryx.tools.public_http import PublicHttpClients, Resolve
from keryx.warden import Warden

CHILD_ENVIRONMENT: Final[Mapping[str, str]] = {"PATH": os.defpath}
"""The default environment of child processes: `PATH`, and no variable of the host."""


class Runtime:
    """Creates and closes the parts of a host. Belongs to the loop that created it."""

    def __init__(self, *, clock: Clock | None = None, resolve: Resolve | None = None) -> None:
        """`resolve` looks up the hosts of web pages; None: the system does."""
        self.scope = Scope("host", clock=clock or RealClock())
        self.bridge = Bridge(self.scope)
        self.warden = Warden(self.scope)
        self.executor = Executor(self.scope, self.bridge)
        self._http = HttpClients()
        self.http = self._http.get
        """Returns the HTTP client of the running loop."""
        self._public_http = PublicHttpClients(resolve)
        # For callers that pass no place, such as the demo and programs of developers.
        self._unconfined = LocalPlace(
            self.warden, self.bridge, Bounds(mode="off"), workspace=Path("/")
        )

    def call_environment(
        self,
        session_id: str,
        tools: Sequence[Tool],
        *,
        workspace: Path,
        hooks: CallHooks | None = None,
        env: Mapping[str, str] = CHILD_ENVIRONMENT,
        redactor: Redactor = NO_SECRETS,
        place: Place | None = None,
    ) -> CallEnvironment:
        """Return the environment in which the executor runs a session's calls."""
        return CallEnvironment(
            session_id=session_id,
            tools={tool.name: tool for tool in tools},
            workspace=workspace,
            loop=asyncio.get_running_loop(),
            bridge=self.bridge,
            place=place or self._unconfined,
            http=self._http.get,
            public_http=self._public_http.get,
            env=env,
            hooks=hooks or NoHooks(),
            redactor=redactor,
        )

    async def close(self) -> tuple[str, ...]:
        """Close everything; return the ids of the calls that could not be ended."""
        left_over = await self.executor.close()
        await self.warden.close()
        await self.bridge.close()
        await self._http.close()
        await self._public_http.close()
        self.scope.close()
        return left_over

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
