"""What the calls of one session share: tools, place, held effects and left-overs."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from keryx.aio.bridge import Bridge
from keryx.engine.calls.background import Backgrounds
from keryx.engine.calls.call_hooks import CallHooks, NoHooks
from keryx.engine.calls.order import Paths
from keryx.engine.calls.session_resources import SessionResources
from keryx.engine.effects import Holdings, conflict
from keryx.engine.redaction import NO_SECRETS, Redactor
from keryx.errors import DeveloperMustActError, UnknownToolError
from keryx.events import Purpose, Usage
from keryx.ports.agents import Agents
from keryx.ports.effects import Effects
from keryx.ports.files import Files
from keryx.ports.hook_programs import HookPrograms
from keryx.ports.http import HttpClient
from keryx.ports.memory_access import MemoryNote, Recall
from keryx.ports.model_access import ModelAccess
from keryx.ports.place import Place
from keryx.ports.search import SessionMatch
from keryx.ports.tool import Tool, find_named
from keryx.ports.workers import Workers

LogUsage = Callable[[str, Purpose, str, Usage | None, float | None], None]
"""Logs the usage of a call: call id, purpose, name of the model, usage, cost."""


def _no_log(
    call_id: str, purpose: Purpose, model: str, usage: Usage | None, cost: float | None
) -> None:
    del call_id, purpose, model, usage, cost


LogLoaded = Callable[[tuple[str, ...], str], None]
"""Logs that a call loaded tools: their names, call id."""


def _no_load(names: tuple[str, ...], call_id: str) -> None:
    del names, call_id


async def _no_limits() -> None:
    """Allow every request."""


class SessionMemory(Protocol):
    """The host's memory in the scope of one session; changes are logged under a call."""

    async def change(self, call_id: str, notes: Sequence[MemoryNote]) -> list[str]: ...

    async def remove(self, call_id: str, memory_id: str) -> None: ...

    async def recall(self, call_id: str, words: str, limit: int) -> Recall: ...


class CallEnvironment(msgspec.Struct, eq=False, kw_only=True):
    """What one session's calls run with. Only the tools that are listed here can be called."""

    session_id: str
    tools: Mapping[str, Tool]
    workspace: Path
    loop: asyncio.AbstractEventLoop
    bridge: Bridge
    hooks: CallHooks = msgspec.field(default_factory=NoHooks)
    place: Place | None = None
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    files: Files | Callable[[], Files] | None = None
    """The session's files. A function opens them when the first call needs them, in its thread."""
    background: Backgrounds | None = None
    workers: Workers | None = None
    redactor: Redactor = NO_SECRETS
    http: Callable[[], Awaitable[HttpClient]] | None = None
    public_http: Callable[[Sequence[str]], Awaitable[HttpClient]] | None = None
    resources: SessionResources | None = None
    models: ModelAccess | None = None
    agents: Agents | None = None
    memory: SessionMemory | None = None
    search: Callable[[str, int], Awaitable[Sequence[SessionMatch]]] | None = None
    log_usage: LogUsage = _no_log
    log_loaded: LogLoaded = _no_load
    check_budget: Callable[[], Awaitable[None]] = _no_limits
    """Is awaited before each request to a model; `ModelError` if a limit does not allow it."""
    programs: HookPrograms | None = None
    """The hooks of people; None: there are none."""
    holdings: Holdings = msgspec.field(default_factory=Holdings)
    paths: Paths = msgspec.field(default_factory=Paths)
    left_over: dict[str, Effects] = msgspec.field(default_factory=dict[str, Effects])

    def require_place(self) -> Place:
        """Return the session's place; `DeveloperMustActError` if it was opened without one."""
        if self.place is None:
            raise DeveloperMustActError("this session has no place for processes; open it with one")
        return self.place

    def find_tool(self, name: str) -> Tool:
        """Return the tool of that name or alias; `UnknownToolError` suggests a similar name."""
        tool = find_named(self.tools, name)
        if tool is not None:
            return tool
        if not self.tools:
            raise UnknownToolError(f"there is no tool {name!r}: this session has no tools")
        matches = difflib.get_close_matches(name, self.tools, n=1)
        hint = f" Did you mean {matches[0]!r}?" if matches else ""
        names = ", ".join(sorted(self.tools)[:50])
        raise UnknownToolError(f"there is no tool {name[:100]!r}.{hint} The tools are: {names}.")

    def overlaps(self, effects: Effects) -> tuple[str, ...]:
        """Return the left-over calls whose effects conflict with these effects."""
        if not self.left_over:
            return ()
        return tuple(call_id for call_id, held in self.left_over.items() if conflict(held, effects))
