"""The interface of what a tool gets for one call: its session's parts, and ways to report."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from keryx.aio.capture import OutputSink
from keryx.aio.scope import CancellationToken, Scope
from keryx.events import Purpose
from keryx.messages import CallOutcome, Needs
from keryx.ports.agents import ChildResult, ChildTask
from keryx.ports.background import Background
from keryx.ports.files import Files
from keryx.ports.http import HttpClient
from keryx.ports.memory_access import MemoryAccess
from keryx.ports.place import PrivateFolder, Process
from keryx.ports.resources import Resources
from keryx.ports.search import SessionMatch

if TYPE_CHECKING:
    from keryx.ports.model_access import CallEndpoint
    from keryx.ports.tool import Tool

T = TypeVar("T")


class Emitted(msgspec.Struct, frozen=True):
    """The output of a call, unchanged: all of it, or its beginning."""

    data: bytes
    left_out: int
    """The number of bytes after `data` that are not stored."""


class ToolPlace(Protocol):
    """The session's place for one call: the processes that the call starts end with the call."""

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
    ) -> Process:
        """Start a process.

        By default it runs in the workspace with the session's environment for children, and its
        output is streamed and kept as the call's partial result.
        """
        ...

    async def private(self) -> PrivateFolder:
        """Return a folder that only the host and this session's processes share."""
        ...


class ToolContext(Protocol):
    """What a call can use. Everything here raises an error once the call has its outcome."""

    @property
    def session_id(self) -> str: ...

    @property
    def call_id(self) -> str: ...

    @property
    def workspace(self) -> Path: ...

    @property
    def place(self) -> ToolPlace: ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of child processes, built from an allow-list."""
        ...

    @property
    def token(self) -> CancellationToken: ...

    async def http(self) -> HttpClient: ...

    async def public_http(self, allow_private: Sequence[str] = ()) -> HttpClient:
        """Return a client that connects to public addresses only, for URLs of models and pages.

        It also reaches the hosts in `allow_private` (`host` or `host:port`). It does not decompress
        bodies.
        """
        ...

    @property
    def files(self) -> Files:
        """The session's files. May read the disk, so use it in a thread."""
        ...

    @property
    def background(self) -> Background:
        """The session's background processes."""
        ...

    @property
    def resources(self) -> Resources:
        """Objects of tools that live as long as the session, such as a browser."""
        ...

    @property
    def granted(self) -> Needs:
        """What was approved for this call beyond the session's confinement."""
        ...

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
        """Ask the model for this purpose, or the named one; return its reply.

        Each image is its data and its media type. The usage is logged under this call.
        `ToolFailedError` says what to do if there is no reply.
        """
        ...

    def endpoint(self, purpose: Purpose) -> CallEndpoint:
        """Return the model that makes or reads media for this purpose, for this call.

        `ToolFailedError` says what to configure.
        """
        ...

    def has_model_for(self, purpose: Purpose) -> bool:
        """Return whether a model of its own is configured for this purpose."""
        ...

    async def search_sessions(self, words: str, limit: int) -> Sequence[SessionMatch]:
        """Search in the transcripts of all sessions of this host."""
        ...

    async def run_agent(self, task: ChildTask) -> ChildResult:
        """Run a child agent until its turn ends. Its usage counts for this session's turn.

        The child is cancelled with this call. If this call runs again after a crash, it waits for
        the same child: so a tool that uses this declares `replay="keyed"`.
        """
        ...

    @property
    def memory(self) -> MemoryAccess:
        """What is remembered beyond this session."""
        ...

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that the session may use, by name. For containers, and for searches."""
        ...

    def load_tools(self, names: Sequence[str]) -> None:
        """Describe these tools to the model from its next request on, in this session."""
        ...

    @property
    def scope(self) -> Scope:
        """The scope of this call. For containers."""
        ...

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking code in a thread."""
        ...

    @property
    def nested(self) -> bool:
        """Whether another tool made this call: then a program reads the result, not a model.

        A program gets the complete result, as fields. Only models get notes, line numbers and
        shortened texts.
        """
        ...

    @property
    def printed(self) -> str:
        """The output of this call so far; of a long output the beginning and the end."""
        ...

    @property
    def emitted(self) -> Emitted:
        """The output of this call so far, without a gap in the middle. For nested calls only."""
        ...

    async def hold(self, size: int) -> None:
        """Wait until the call that made this one may hold so many more bytes in memory."""
        ...

    def cancel_after(self, seconds: float) -> None:
        """Cancel this call with reason `timeout` after so many seconds."""
        ...

    def emit(self, text: str, *, stream: str = "stdout") -> None:
        """Stream output. If the call is cancelled, the output is its partial result.

        Can be called from the call's own thread and from the loop.
        """
        ...

    def progress(self, done: float, total: float | None = None, note: str = "") -> None: ...

    def from_thread(
        self,
        work: Callable[..., Coroutine[Any, Any, T]],
        *args: Any,
        timeout: float | None = None,
    ) -> T:
        """Run async code on the host's loop and block for its result. For tools in threads."""
        ...

    async def ask(self, text: str, choices: Sequence[str] = ()) -> str | None:
        """Ask a person; None if nobody answers. The answer may differ from the choices."""
        ...

    async def call(
        self,
        tool: str | Tool,
        arguments: Mapping[str, Any] | bytes,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 (kept by the nested call's own scope)
    ) -> CallOutcome:
        """Run another tool as a nested call. For containers only.

        A name means a tool of the session. A container may pass a tool of its own as an object.

        Arguments that are bytes are JSON text; only the tool decodes them. After `timeout` seconds,
        waiting included, the nested call ends with reason `timeout`.
        """
        ...
