"""The seam between the engine and whatever does the work that a model asks for.

A `Tool` declares what it is and does one thing: `invoke`. What it needs of the session comes
as a `ToolContext`; it reaches for nothing ambient.
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
"""Stands in a subject for text that nobody knows before the call runs."""
ANY_NAME: Final = "\1"
"""Stands in a subject for one character that is no dash."""


class Risk(msgspec.Struct, frozen=True):
    """A tool's own judgement of its arguments, for whoever decides on approvals.

    `patterns` say what of the tool this call is ("git push"), for rules that cover others like it:
    all of them must be covered. None: rules cover the tool as a whole; empty: only this very call.
    """

    level: Literal["none", "low", "high"]
    why: str = ""
    patterns: tuple[str, ...] | None = None
    needs: Needs = NO_NEEDS
    changes: bool | None = None
    """Whether it may change anything; None: as its effects say."""
    folder: str | None = None
    """The folder that all patterns are paths in, if consent may be given for all of it."""
    subjects: tuple[str, ...] = ()
    """All that this call may do besides what `patterns` say, for rules that deny or ask: it is
    enough if one of them matches. They may hold `ANY_TEXT` and `ANY_NAME`."""
    peril: str | None = None
    """How a pattern begins that allows a call of level high: with the very words that make it high.
    None: any rule that speaks of the call allows it."""


class Complete(msgspec.Struct, frozen=True):
    """Wrap what a cancelled tool returns within the grace if the work was in fact done."""

    value: Any


class Exact(msgspec.Struct, frozen=True):
    """Wrap what a tool gives a script that could read or run the same by itself.

    The script gets it to the last byte: values of secrets stay in it, or to write a file back would
    destroy it. What the script says of it in turn is redacted like all that is shown.
    """

    value: Any


class Emitted(msgspec.Struct, frozen=True):
    """What a call emitted, as it came: all of it, or its beginning."""

    data: bytes
    left_out: int
    """Bytes that came after those and are not kept."""


class HttpResponse(Protocol):
    """What tools use of a response."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes: ...

    async def text(self) -> str: ...


class HttpRequest(Protocol):
    """A request under way: entered for its response, left to close it."""

    async def __aenter__(self) -> HttpResponse: ...

    async def __aexit__(self, *exc: object) -> object: ...


class HttpClient(Protocol):
    """The running loop's own client, shared by all that runs there."""

    def request(self, method: str, url: str, **options: Any) -> HttpRequest: ...


class ToolPlace(Protocol):
    """The session's place, as one call may use it: what it starts ends with the call."""

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        output: OutputSink | None = None,
        stdin: bool = False,
    ) -> Process:
        """Start a process: by default in the workspace, with the session's environment for
        children, and with its output streamed and kept as the call's partial result."""
        ...

    async def private(self) -> PrivateFolder:
        """A folder that the host and this session's processes share, and nobody else."""
        ...


class ToolContext(Protocol):
    """All that a call may reach. Refuses everything once the call has its outcome."""

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
        """The environment for children, built from an allow-list."""
        ...

    @property
    def token(self) -> CancellationToken: ...

    async def http(self) -> HttpClient: ...

    @property
    def files(self) -> Files:
        """The session's files, and what it may do with them. May ask the disk: not on the loop."""
        ...

    @property
    def background(self) -> Background:
        """The session's background processes."""
        ...

    @property
    def tools(self) -> Mapping[str, Tool]:
        """What was granted, by name. For containers."""
        ...

    @property
    def scope(self) -> Scope:
        """What this call's work hangs on. For containers."""
        ...

    async def to_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run blocking code in a thread."""
        ...

    @property
    def nested(self) -> bool:
        """Whether another tool made this call: then a program reads the result, and no model.

        Programs get the whole of what is there, in keys of its own. Notes, cuts and line numbers
        are for models.
        """
        ...

    @property
    def printed(self) -> str:
        """What this call emitted so far, bounded: head and tail."""
        ...

    @property
    def emitted(self) -> Emitted:
        """What this call emitted so far, not cut in the middle. For nested calls only."""
        ...

    async def hold(self, size: int) -> None:
        """Wait until so many bytes more may be in memory for the call that made this one."""
        ...

    def cancel_after(self, seconds: float) -> None:
        """End this call with reason `timeout` that long after now, unless it has ended."""
        ...

    def emit(self, text: str, *, stream: str = "stdout") -> None:
        """Stream output. What was emitted survives a cancellation as the partial result.

        Callable from the call's own thread as well as from the loop.
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
        """Ask a person; None if nobody answers. The choices are offers, not limits."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | bytes,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 (kept by the nested call's own scope)
    ) -> CallOutcome:
        """Run another tool under this call. For containers only.

        The arguments may be JSON text, which nobody but the tool decodes. After `timeout` seconds,
        whatever it did or waited for by then, that call ends with reason `timeout`.
        """
        ...


class Tool(Protocol):
    """One tool, as the engine sees it."""

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
        """Whether it calls other tools. A container runs on the loop and holds nothing."""
        ...

    def parse(self, arguments: bytes | str | Mapping[str, Any]) -> Any:
        """Validate what the model sent; `InvalidArgumentsError` says what to do better."""
        ...

    def effects(self, args: Any) -> Effects: ...

    def risk(self, args: Any, workspace: Path) -> Risk: ...

    def preview(self, args: Any) -> str:
        """One short line for screens."""
        ...

    def invoke(self, args: Any, context: ToolContext) -> Awaitable[Any] | Any:
        """Do the work: a coroutine on the loop, a plain value in a thread."""
        ...
