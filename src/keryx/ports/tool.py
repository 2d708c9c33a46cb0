"""The interface of tools: what a tool declares, and what the engine gives to each call of it.

A tool gets everything that it needs of its session from its `ToolContext`. It uses no global state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from keryx.messages import NO_NEEDS, Needs
from keryx.ports.effects import Effects
from keryx.ports.tool_context import ToolContext

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


def aliases_of(tool: Tool) -> tuple[str, ...]:
    """Return the other names of a tool. A call may use them; models are told the name alone.

    A tool has them as an attribute `aliases`; most tools have none.
    """
    return getattr(tool, "aliases", ())


def find_named(tools: Mapping[str, Tool], name: str) -> Tool | None:
    """Return the tool with this name, else the one with this alias; None if there is neither."""
    tool = tools.get(name)
    if tool is not None:
        return tool
    return next((tool for tool in tools.values() if name in aliases_of(tool)), None)
