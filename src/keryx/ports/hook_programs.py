"""The interface of hooks: programs of people that see calls, and may change or refuse them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from keryx.aio.scope import Scope

HookEvent = Literal["before_call", "after_call"]


class HookAnswer(msgspec.Struct, frozen=True):
    """What a hook wants. Nothing of it is set if the hook only watches."""

    denied: str | None = None
    """Why the call may not run; None: it may."""
    input: msgspec.Raw | None = None
    """The input that the call gets instead, a JSON object."""
    result: msgspec.Raw | None = None
    """The result that the call gets instead, any JSON value."""
    note: str | None = None
    """A text that is added to the result."""


class HookProgram(Protocol):
    """One hook."""

    @property
    def name(self) -> str: ...

    @property
    def timeout(self) -> float:
        """Seconds."""
        ...

    async def run(self, request: bytes, scope: Scope) -> HookAnswer:
        """Run it with this JSON on stdin; `HookFailedError` if it gives no valid answer.

        Nothing of it runs any more when this returns or raises. Cancelling the scope, or the task,
        ends its whole process tree.
        """
        ...


class HookPrograms(Protocol):
    """The hooks of one session."""

    def matching(self, event: HookEvent, tool: str) -> Sequence[HookProgram]:
        """Return the hooks for this event of this tool, in the order in which they run."""
        ...
