"""The hooks that the executor calls, so that the owner of the session can approve and log calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from keryx.aio.scope import Reason
from keryx.messages import NO_NEEDS, CallOutcome, HookAction, Needs
from keryx.ports.effects import Effects
from keryx.ports.tool import Tool


class Consent(msgspec.Struct, frozen=True):
    """Whether a call may run, and what it is granted beyond the session's confinement."""

    denied: str | None = None
    """Why the call may not run; None: it may."""
    needs: Needs = NO_NEEDS


GRANTED: Final = Consent()


class Review(msgspec.Struct, frozen=True):
    """What the hooks before a call decided before a crash; no arguments: nothing was changed."""

    arguments: str | None = None
    actions: tuple[HookAction, ...] = ()


class CallView(Protocol):
    """What hooks can read of a call."""

    @property
    def call_id(self) -> str: ...

    @property
    def tool(self) -> Tool: ...

    @property
    def args(self) -> Any: ...

    @property
    def workspace(self) -> Path: ...

    @property
    def arguments(self) -> str:
        """The arguments as the model wrote them; empty for the call of a script."""
        ...

    @property
    def raw(self) -> str | bytes | Mapping[str, Any] | None:
        """The arguments as they came."""
        ...

    @property
    def effects(self) -> Effects: ...

    @property
    def reason(self) -> Reason | None:
        """Why the call is cancelled; None if it is not."""
        ...

    @property
    def overlaps(self) -> tuple[str, ...]:
        """The left-over calls whose effects conflict with this call's effects."""
        ...

    @property
    def parent(self) -> CallView | None: ...


class CallHooks(Protocol):
    """Is called for every call of a session. The executor waits for the async hooks."""

    async def approve(self, call: CallView) -> Consent:
        """Return whether the call may run. Only later conflicting calls of its step wait too."""
        ...

    def was_amended(self, call_id: str) -> bool:
        """Return whether a log says that hooks changed the input of this call."""
        ...

    async def earlier_review(self, call: CallView) -> Review | None:
        """Return what hooks decided about this call before a crash; None: they have not run."""
        ...

    def amended(self, call: CallView, actions: tuple[HookAction, ...]) -> None:
        """Log that hooks changed the input of the call."""
        ...

    async def ask(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        """Ask a person a question; None if nobody answers."""
        ...

    async def starting(self, call: CallView) -> None:
        """Log that the call starts. The call acts only after this has returned."""
        ...

    def output(self, call: CallView, stream: str, text: str) -> None: ...

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None: ...

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        """The call has its outcome. Calls end in any order."""
        ...

    def settled(self, call: CallView, duration: float) -> None:
        """A left-over call has ended."""
        ...


class NoHooks:
    """Approves every call and does nothing else. A base class for hooks that need only a few."""

    async def approve(self, call: CallView) -> Consent:
        del call
        return GRANTED

    def was_amended(self, call_id: str) -> bool:
        del call_id
        return False

    async def earlier_review(self, call: CallView) -> Review | None:
        del call
        return None

    def amended(self, call: CallView, actions: tuple[HookAction, ...]) -> None: ...

    async def ask(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        del call, text, choices
        return None

    async def starting(self, call: CallView) -> None: ...

    def output(self, call: CallView, stream: str, text: str) -> None: ...

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None: ...

    def ended(self, call: CallView, outcome: CallOutcome) -> None: ...

    def settled(self, call: CallView, duration: float) -> None: ...
