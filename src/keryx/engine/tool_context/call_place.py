"""The place, the background processes and the HTTP client of one call.

Everything here raises once the call has its outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keryx.aio.capture import OutputSink
from keryx.engine.calls.background import Backgrounds
from keryx.engine.calls.call import Call
from keryx.engine.calls.slots import Slots
from keryx.errors import DeveloperMustActError
from keryx.ports.background import BackgroundProcess, Printed
from keryx.ports.http import HttpClient, HttpRequest
from keryx.ports.place import PrivateFolder, Process


class CallPlace:
    """The session's place, bound to one call: processes belong to the call's scope."""

    __slots__ = ("_call", "_starts")

    def __init__(self, call: Call, starts: Slots | None) -> None:
        self._call = call
        self._starts = starts

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
    ) -> Process:
        call = self._call
        call.refuse_if_cancelled()
        environment = call.environment
        place = environment.require_place()
        if self._starts is not None:
            await call.hold_start(self._starts)
            call.refuse_if_cancelled()
        process = await place.spawn(
            argv,
            env=environment.env if env is None else env,
            cwd=str(environment.workspace) if cwd is None else cwd,
            output=call.output if output is None else output,
            stdin=stdin,
            scope=call.scope,
            granted=call.granted,
        )
        call.processes.add(process)
        return process

    async def private(self) -> PrivateFolder:
        self._call.refuse_if_cancelled()
        return await self._call.environment.require_place().private()


class CallBackground:
    """The session's background processes, for the use of one call."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def _all(self) -> Backgrounds:
        self._call.refuse_if_cancelled()
        if self._call.environment.background is None:
            raise DeveloperMustActError(
                "this session has no background processes; open it with them"
            )
        return self._call.environment.background

    async def start(self, argv: Sequence[str], *, command: str, cwd: str | None = None) -> str:
        environment = self._call.environment
        return await self._all.start(
            argv,
            command=command,
            place=environment.require_place(),
            env=environment.env,
            cwd=str(environment.workspace) if cwd is None else cwd,
            granted=self._call.granted,
            redactor=environment.redactor,
        )

    def processes(self) -> list[BackgroundProcess]:
        return self._all.processes()

    def read(self, name: str, *, after: int = 0) -> Printed:
        return self._all.read(name, after=after)

    async def write(self, name: str, text: str) -> None:
        await self._all.write(name, text)

    async def wait(self, name: str, seconds: float) -> BackgroundProcess:
        return await self._all.wait(name, seconds)

    async def kill(self, name: str) -> BackgroundProcess:
        return await self._all.kill(name)


class CallHttp:
    """The loop's HTTP client; it raises once the call is over."""

    __slots__ = ("_call", "_client")

    def __init__(self, call: Call, client: HttpClient) -> None:
        self._call = call
        self._client = client

    def request(self, method: str, url: str, **options: Any) -> HttpRequest:
        self._call.refuse_if_cancelled()
        return self._client.request(method, url, **options)
