"""The `ToolContext` of one call.

Everything here raises once the call has its outcome, so that a left-over call can do no more harm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from keryx.aio.scope import CancellationToken, Scope, call_soon
from keryx.engine.calls.call import Call
from keryx.engine.calls.slots import Slots
from keryx.engine.tool_context.call_agents import run_agent
from keryx.engine.tool_context.call_endpoint import CallEndpoint, call_endpoint
from keryx.engine.tool_context.call_memory import CallMemory
from keryx.engine.tool_context.call_models import ask_model
from keryx.engine.tool_context.call_place import CallBackground, CallHttp, CallPlace
from keryx.engine.tool_context.call_resources import CallResources
from keryx.errors import DeveloperMustActError
from keryx.events import Purpose
from keryx.messages import CallOutcome, Needs
from keryx.ports.agents import ChildResult, ChildTask
from keryx.ports.files import Files
from keryx.ports.search import SessionMatch
from keryx.ports.tool import Tool
from keryx.ports.tool_context import Emitted

T = TypeVar("T")

LONGEST_NOTE: Final = 1_000
"""Characters of a note about the progress. Every screen gets each of them."""

Nest = Callable[[Call, str | Tool, Mapping[str, Any] | bytes, float | None], Awaitable[CallOutcome]]
"""Runs a tool as a nested call, for so many seconds at most."""


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
            raise DeveloperMustActError("this session has no HTTP client; open it with one")
        return CallHttp(self._call, await self._call.environment.http())

    async def public_http(self, allow_private: Sequence[str] = ()) -> CallHttp:
        self._call.refuse_if_cancelled()
        if self._call.environment.public_http is None:
            raise DeveloperMustActError("this session has no HTTP client; open it with one")
        return CallHttp(self._call, await self._call.environment.public_http(allow_private))

    @property
    def files(self) -> Files:
        self._call.refuse_if_over()
        files, granted = self._call.environment.files, self._call.granted
        if files is None:
            raise DeveloperMustActError("this session has no files; open it with them")
        if callable(files):
            files = files()
        return files.granting(granted) if granted else files

    @property
    def background(self) -> CallBackground:
        return CallBackground(self._call)

    @property
    def resources(self) -> CallResources:
        return CallResources(self._call)

    @property
    def granted(self) -> Needs:
        return self._call.granted

    async def ask_model(
        self,
        purpose: Purpose,
        text: str,
        *,
        system: str = "",
        images: Sequence[tuple[bytes, str]] = (),
        model: str | None = None,
        max_tokens: int | None = None,
    ) -> str:
        self._call.refuse_if_cancelled()
        return await ask_model(
            self._call,
            purpose,
            text,
            system=system,
            images=images,
            model=model,
            max_tokens=max_tokens,
        )

    def endpoint(self, purpose: Purpose) -> CallEndpoint:
        self._call.refuse_if_cancelled()
        return call_endpoint(self._call, purpose)

    def has_model_for(self, purpose: Purpose) -> bool:
        models = self._call.environment.models
        return models is not None and models.is_configured(purpose)

    async def search_sessions(self, words: str, limit: int) -> Sequence[SessionMatch]:
        self._call.refuse_if_cancelled()
        if self._call.environment.search is None:
            raise DeveloperMustActError("this session cannot search; open it with a store")
        return await self._call.environment.search(words, limit)

    async def run_agent(self, task: ChildTask) -> ChildResult:
        self._call.refuse_if_cancelled()
        return await run_agent(self._call, task)

    @property
    def memory(self) -> CallMemory:
        return CallMemory(self._call)

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self._call.environment.tools

    def load_tools(self, names: Sequence[str]) -> None:
        self._call.refuse_if_cancelled()
        self._call.environment.log_loaded(tuple(names), self._call.call_id)

    @property
    def scope(self) -> Scope:
        return self._call.scope

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        self._call.refuse_if_over()
        # A call is over only when nothing of it runs any more.
        return await self._call.environment.bridge.to_thread_and_end(work, *args)

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
        note = call.environment.redactor.text(note)[:LONGEST_NOTE]
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
        environment = self._call.environment
        text, *others = map(environment.redactor.text, (text, *choices))
        return await environment.hooks.ask(self._call, text, tuple(others))

    async def call(
        self,
        tool: str | Tool,
        arguments: Mapping[str, Any] | bytes,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 (the nested call's own scope enforces it)
    ) -> CallOutcome:
        self._call.refuse_if_cancelled()
        if not self._call.tool.container:
            raise DeveloperMustActError(
                f"{self._call.tool.name!r} calls other tools: declare it with container=True"
            )
        return await self._nest(self._call, tool, arguments, timeout)
