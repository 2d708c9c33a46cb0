"""What a tool sees of its call: the `ToolContext`, and the place and client bound to it.

Everything here refuses once the call has its outcome, so that a left-over can do no more harm
through it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from keryx.aio.capture import OutputSink
from keryx.aio.scope import CancellationToken, Scope, call_soon
from keryx.engine.calls.background import Backgrounds
from keryx.engine.calls.call import Call
from keryx.engine.calls.slots import Slots
from keryx.errors import DeveloperMustActError
from keryx.messages import CallOutcome
from keryx.ports.background import BackgroundProcess, Printed
from keryx.ports.files import Files
from keryx.ports.place import PrivateFolder, Process
from keryx.ports.tool import Emitted, HttpClient, HttpRequest, Tool

T = TypeVar("T")

Nest = Callable[[Call, str, Mapping[str, Any] | bytes, float | None], Awaitable[CallOutcome]]
"""Runs a tool under a call, for so many seconds at most."""


class CallContext:
    """The `ToolContext` of one call."""

    __slots__ = ("_call", "_nest", "_starts", "token")

    def __init__(self, call: Call, nest: Nest, starts: Slots | None) -> None:
        self._call = call
        self._nest = nest
        self._starts = starts
        self.token = CancellationToken(call.scope)

    @property
    def session_id(self) -> str:
        return self._call.environment.session_id

    @property
    def call_id(self) -> str:
        return self._call.call_id

    @property
    def workspace(self) -> Path:
        return self._call.environment.workspace

    @property
    def environment(self) -> Mapping[str, str]:
        return self._call.environment.env

    @property
    def place(self) -> CallPlace:
        return CallPlace(self._call, self._starts)

    async def http(self) -> CallHttp:
        self._call.refuse_if_cancelled()
        if self._call.environment.http is None:
            raise DeveloperMustActError("this session was opened without an HTTP client")
        return CallHttp(self._call, await self._call.environment.http())

    @property
    def files(self) -> Files:
        self._call.refuse_if_over()
        files, granted = self._call.environment.files, self._call.granted
        if files is None:
            raise DeveloperMustActError("this session was opened without files")
        if callable(files):
            files = files()
        return files.granting(granted) if granted else files

    @property
    def background(self) -> CallBackground:
        return CallBackground(self._call)

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self._call.environment.tools

    @property
    def scope(self) -> Scope:
        return self._call.scope

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        self._call.refuse_if_over()
        return await self._call.environment.bridge.to_thread(work, *args)

    @property
    def nested(self) -> bool:
        return self._call.parent is not None

    @property
    def printed(self) -> str:
        return self._call.output.text()

    @property
    def emitted(self) -> Emitted:
        return self._call.output.emitted()

    async def hold(self, size: int) -> None:
        self._call.refuse_if_cancelled()
        await self._call.output.hold(size)

    def cancel_after(self, seconds: float) -> None:
        self._call.cancel_after(seconds)

    def emit(self, text: str, *, stream: str = "stdout") -> None:
        self._call.refuse_if_over()
        self._call.output.emit(stream, text)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        self._call.refuse_if_over()
        call = self._call
        call_soon(call.environment.loop, call.environment.hooks.progress, call, done, total, note)

    def from_thread(
        self,
        work: Callable[..., Coroutine[Any, Any, T]],
        *args: Any,
        timeout: float | None = None,
    ) -> T:
        self._call.refuse_if_cancelled()
        return self._call.environment.bridge.from_thread(work, *args, timeout=timeout)

    async def ask(self, text: str, choices: Sequence[str] = ()) -> str | None:
        self._call.refuse_if_cancelled()
        return await self._call.environment.hooks.ask(self._call, text, tuple(choices))

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | bytes,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 (kept by the nested call's own scope)
    ) -> CallOutcome:
        self._call.refuse_if_cancelled()
        if not self._call.tool.container:
            raise DeveloperMustActError(
                f"{self._call.tool.name!r} calls other tools: declare it with container=True"
            )
        return await self._nest(self._call, tool, arguments, timeout)


class CallPlace:
    """The session's place, bound to one call: what it starts is in the call's scope."""

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
        if environment.place is None:
            raise DeveloperMustActError("this session was opened without a place for processes")
        if self._starts is not None:
            await call.hold_start(self._starts)
            call.refuse_if_cancelled()
        process = await environment.place.spawn(
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
        if self._call.environment.place is None:
            raise DeveloperMustActError("this session was opened without a place for processes")
        return await self._call.environment.place.private()


class CallBackground:
    """The session's background processes, as one call may use them."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def _all(self) -> Backgrounds:
        self._call.refuse_if_cancelled()
        if self._call.environment.background is None:
            raise DeveloperMustActError("this session was opened without background processes")
        return self._call.environment.background

    async def start(self, argv: Sequence[str], *, command: str, cwd: str | None = None) -> str:
        environment = self._call.environment
        if environment.place is None:
            raise DeveloperMustActError("this session was opened without a place for processes")
        return await self._all.start(
            argv,
            command=command,
            place=environment.place,
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
    """The loop's HTTP client, refusing once the call is over."""

    __slots__ = ("_call", "_client")

    def __init__(self, call: Call, client: HttpClient) -> None:
        self._call = call
        self._client = client

    def request(self, method: str, url: str, **options: Any) -> HttpRequest:
        self._call.refuse_if_cancelled()
        return self._client.request(method, url, **options)
