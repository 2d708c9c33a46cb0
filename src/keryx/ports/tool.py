"""The interface of tools: what a tool declares, and what the engine gives to each call of it.

A tool gets everything that it needs of its session from its `ToolContext`. It uses no global state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from keryx.aio.capture import OutputSink
from keryx.aio.scope import CancellationToken, Scope
from keryx.messages import NO_NEEDS, CallOutcome, Needs
from keryx.ports.background import Background
from keryx.ports.effects import Effects
from keryx.ports.files import Files
from keryx.ports.place import PrivateFolder, Process

T = TypeVar("T")

Isolation = Literal["loop", "thread", "process"]
"""Where a tool runs: as a task on the loop, in a thread, or in a process that can be killed."""

Replay = Literal["never", "safe", "keyed"]
"""Whether a call that had started may run again after a crash; keyed: with its call id as key."""


ANY_TEXT: Final = "\0"
"""A placeholder in `Risk.subjects`: text that is unknown until the call runs."""
ANY_NAME: Final = "\1"
"""A placeholder in `Risk.subjects`: one character that is not a dash."""


class Risk(msgspec.Struct, frozen=True):
    """How risky a tool finds its arguments. The approval rules decide with it.

    `patterns` name the kind of call ("git push"). A rule covers a call if it covers all of its
    patterns. None: a rule covers every call of the tool. Empty: a rule covers only this one call.
    """

    level: Literal["none", "low", "high"]
    why: str = ""
    patterns: tuple[str, ...] | None = None
    needs: Needs = NO_NEEDS
    changes: bool | None = None
    """Whether the call may change anything; None: its effects tell."""
    folder: str | None = None
    """If all patterns are paths in one folder, and a person may approve that folder: the folder."""
    subjects: tuple[str, ...] = ()
    """What else the call may do. A rule that denies or asks applies if it matches one of these.
    They may contain `ANY_TEXT` and `ANY_NAME`."""
    peril: str | None = None
    """For a call of level high: the words with which a pattern must begin to allow it.
    None: any rule that covers the call allows it."""


class Complete(msgspec.Struct, frozen=True):
    """Wraps the result of a cancelled tool that finished its work within the grace."""

    value: Any


class Exact(msgspec.Struct, frozen=True):
    """Wraps a result that a script gets unchanged, since it could read or run the same by itself.

    Secrets stay in the result: a script that writes a redacted file back would destroy it. The
    script's own output is redacted like any other.
    """

    value: Any


class Emitted(msgspec.Struct, frozen=True):
    """The output of a call, unchanged: all of it, or its beginning."""

    data: bytes
    left_out: int
    """The number of bytes after `data` that are not stored."""


class HttpResponse(Protocol):
    """The parts of a response that tools use."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes: ...

    async def text(self) -> str: ...


class HttpRequest(Protocol):
    """A running request. Entering it returns the response; leaving it closes the connection."""

    async def __aenter__(self) -> HttpResponse: ...

    async def __aexit__(self, *exc: object) -> object: ...


class HttpClient(Protocol):
    """The HTTP client of the running loop. All calls on that loop share it."""

    def request(self, method: str, url: str, **options: Any) -> HttpRequest: ...


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

    @property
    def files(self) -> Files:
        """The session's files. May read the disk, so use it in a thread."""
        ...

    @property
    def background(self) -> Background:
        """The session's background processes."""
        ...

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that the session may use, by name. For containers."""
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
        tool: str,
        arguments: Mapping[str, Any] | bytes,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 (kept by the nested call's own scope)
    ) -> CallOutcome:
        """Run another tool as a nested call. For containers only.

        Arguments that are bytes are JSON text; only the tool decodes them. After `timeout` seconds,
        waiting included, the nested call ends with reason `timeout`.
        """
        ...


class Tool(Protocol):
    """One tool."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON schema of the arguments."""
        ...

    @property
    def isolation(self) -> Isolation: ...

    @property
    def replay(self) -> Replay: ...

    @property
    def timeout(self) -> float | None:
        """Seconds, counted from the start of the call."""
        ...

    @property
    def container(self) -> bool:
        """Whether it calls other tools. A container runs on the loop and holds no slots."""
        ...

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> Any:
        """Validate the arguments; `InvalidArgumentsError` says how to correct them."""
        ...

    def effects(self, args: Any) -> Effects: ...

    def risk(self, args: Any, workspace: Path) -> Risk: ...

    def preview(self, args: Any) -> str:
        """Return one short line for screens."""
        ...

    def invoke(self, args: Any, context: ToolContext) -> Awaitable[Any] | Any:
        """Do the work. Returns an awaitable on the loop, a plain value in a thread."""
        ...
