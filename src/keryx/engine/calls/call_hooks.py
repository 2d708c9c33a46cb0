"""What the executor asks of, and tells, whoever keeps the session's log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from keryx.aio.scope import Reason
from keryx.messages import NO_NEEDS, CallOutcome, Needs
from keryx.ports.effects import Effects
from keryx.ports.tool import Tool


class Consent(msgspec.Struct, frozen=True):
    """Whether a call may run, and what it is granted beyond the session's confinement."""

    denied: str | None = None
    needs: Needs = NO_NEEDS


GRANTED: Final = Consent()


class CallView(Protocol):
    """What a witness may know of a call."""

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
        """As the model wrote them."""
        ...

    @property
    def effects(self) -> Effects: ...

    @property
    def reason(self) -> Reason | None:
        """Why it is cancelled, if it is."""
        ...

    @property
    def overlaps(self) -> tuple[str, ...]:
        """The left-overs that its effects may get in touch with."""
        ...

    @property
    def parent(self) -> CallView | None: ...


class CallHooks(Protocol):
    """Sees every call of a session. The async ones are waited for, the others only told."""

    async def approve(self, call: CallView) -> Consent:
        """Whether the call may run. Waiting holds only later conflicting calls of the same step."""
        ...

    async def ask(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        """Ask a person in words; None if nobody answers."""
        ...

    async def starting(self, call: CallView) -> None:
        """Commit that the call starts. It acts only after this returned."""
        ...

    def output(self, call: CallView, stream: str, text: str) -> None: ...

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None: ...

    def ended(self, call: CallView, outcome: CallOutcome) -> None:
        """The call has its outcome; told as it ends, not in call order."""
        ...

    def settled(self, call: CallView, duration: float) -> None:
        """A left-over has ended at last."""
        ...


class NoHooks:
    """Approves everything and keeps nothing. Also the place to inherit defaults from."""

    async def approve(self, call: CallView) -> Consent:
        del call
        return GRANTED

    async def ask(self, call: CallView, text: str, choices: tuple[str, ...]) -> str | None:
        del call, text, choices
        return None

    async def starting(self, call: CallView) -> None: ...

    def output(self, call: CallView, stream: str, text: str) -> None: ...

    def progress(self, call: CallView, done: float, total: float | None, note: str) -> None: ...

    def ended(self, call: CallView, outcome: CallOutcome) -> None: ...

    def settled(self, call: CallView, duration: float) -> None: ...
