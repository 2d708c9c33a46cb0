"""What the calls of one session share: its tools, its place, what they hold, what is left over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from keryx.aio.bridge import Bridge
from keryx.engine.calls.background import Backgrounds
from keryx.engine.calls.call_hooks import CallHooks, NoHooks
from keryx.engine.calls.order import Paths
from keryx.engine.effects import Holdings, conflict
from keryx.engine.redaction import NO_SECRETS, Redactor
from keryx.ports.effects import Effects
from keryx.ports.files import Files
from keryx.ports.place import Place
from keryx.ports.tool import HttpClient, Tool
from keryx.ports.workers import Workers


class CallEnvironment(msgspec.Struct, eq=False, kw_only=True):
    """One session's way through the executor. A grant is closed: no tools means no tools."""

    session_id: str
    tools: Mapping[str, Tool]
    workspace: Path
    loop: asyncio.AbstractEventLoop
    bridge: Bridge
    hooks: CallHooks = msgspec.field(default_factory=NoHooks)
    place: Place | None = None
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    files: Files | Callable[[], Files] | None = None
    """The session's files; a function opens them when the first call asks, in its thread."""
    background: Backgrounds | None = None
    workers: Workers | None = None
    redactor: Redactor = NO_SECRETS
    http: Callable[[], Awaitable[HttpClient]] | None = None
    holdings: Holdings = msgspec.field(default_factory=Holdings)
    paths: Paths = msgspec.field(default_factory=Paths)
    left_over: dict[str, Effects] = msgspec.field(default_factory=dict[str, Effects])

    def overlaps(self, effects: Effects) -> tuple[str, ...]:
        """The left-overs that a call with these effects may get in touch with."""
        if not self.left_over:
            return ()
        return tuple(
            call_id for call_id, theirs in self.left_over.items() if conflict(theirs, effects)
        )
