"""The interface of a host's memory, as sessions and their calls use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from keryx.events import (
    MemoryAbout,
    MemoryChanged,
    MemoryKind,
    RecalledMemory,
    TurnRestored,
    TurnUndone,
)
from keryx.ports.memory import Memory, MemoryScope, TurnMatch, TurnMemory
from keryx.ports.store import OutboxRow


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """What the providers gave, and which of them did not answer in time."""

    memories: tuple[RecalledMemory, ...] = ()
    late: tuple[str, ...] = ()
    waited: float = 0.0
    syncing_for: float | None = None
    """How long the oldest item has been waiting for a provider; None: nothing waits."""
    faults: tuple[str, ...] = ()
    """What of the memory does not work, and what to do: warnings for people."""


class HostMemory(Protocol):
    """What a host remembers beyond its sessions."""

    def turn_row(self, turn: TurnMemory) -> OutboxRow:
        """Return the row that lets providers store a turn; commit it with the end of the turn."""
        ...

    def undone_row(self, event: TurnUndone) -> OutboxRow:
        """Return the row that takes back what a turn taught."""
        ...

    def restored_row(self, event: TurnRestored, turn: TurnMemory | None) -> OutboxRow:
        """Return the row that lets what a turn taught count again; `turn`: what was said in it."""
        ...

    def changed_row(self, event: MemoryChanged) -> OutboxRow:
        """Return the row that applies a change of a call."""
        ...

    def wake(self) -> None:
        """Take in rows that are committed now."""
        ...

    def redact_with(self, redact: Callable[[str], str]) -> None:
        """Remove secrets from what people write with this function: providers may be elsewhere."""
        ...

    async def context(self, session_id: str, scope: MemoryScope, words: str) -> Recall:
        """Return what the model should be given with a message of this session."""
        ...

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Recall: ...

    async def search_turns(self, scope: MemoryScope, words: str, limit: int) -> list[TurnMatch]:
        """Return earlier turns by their meaning; none if no provider can, or none in time."""
        ...

    async def get(self, memory_id: str) -> Memory | None: ...

    async def fault(self) -> str | None:
        """Return why the memory does not work now, and what to do; None: it works."""
        ...


class TellOwner(Protocol):
    """Lets the owner of the home take in and deliver what another process wrote."""

    async def __call__(self, *, retry: bool, wait: bool) -> None:
        """`retry`: also to providers that are left alone. `wait`: return when it is delivered."""
        ...


class MemoryNote(msgspec.Struct, frozen=True, kw_only=True):
    """What a call wants to be remembered; `target`: the memory that this one replaces."""

    text: str
    kind: MemoryKind = "fact"
    about: MemoryAbout | None = None
    """None: what the replaced memory is about; otherwise the user."""
    target: str | None = None


class MemoryAccess(Protocol):
    """The memory for one call. What it accepts is durable, and visible to every later call."""

    async def remember(self, notes: Sequence[MemoryNote]) -> list[str]:
        """Remember these in order; return their ids. `ToolFailedError` if a target is gone."""
        ...

    async def remove(self, memory_id: str) -> None:
        """Remove a memory; `ToolFailedError` if there is none."""
        ...

    async def recall(self, words: str, limit: int) -> Recall:
        """Return what fits these words best, in this session's profile and workspace."""
        ...
