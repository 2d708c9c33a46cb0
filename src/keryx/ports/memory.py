"""The interface of memory providers: what they take, what they give, and how they fail.

The log of a session is the truth; what is remembered follows from it. A provider is one place
where memories are stored and searched: files of notes, an index of vectors, a service elsewhere.
Deliveries to a provider come in the order of each session, from one owner, and again after a crash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, Protocol, runtime_checkable

import msgspec

from keryx.errors import NobodyMustActError, RecordChangedError, UserMustActError
from keryx.events import MemoryAbout, MemoryKind, RecalledMemory, Trust

MemoryState = Literal["active", "replaced", "removed"]

PERSON: Final = r"[a-z][a-z-]*:[^/\x00-\x1f\x7f]+"
"""How a person is written for whom a session is: where they are from, and their id there."""
_PROFILE_AND_PERSON: Final = re.compile(rf"(.*)/({PERSON})", re.DOTALL)


def memory_profile(profile: str, person: str | None) -> str:
    """Return the profile that the memories of a session have.

    A person other than the owner of the home has memories of their own in each profile. Every
    provider keeps profiles apart, so this keeps people apart too. Different people, or different
    profiles, never give the same: no person has a slash, and `config` refuses a profile that ends
    like one of these.
    """
    return profile if person is None else f"{profile}/{person}"


def profile_and_person(memory_profile: str) -> tuple[str, str | None]:
    """Return the profile of a session and its person; see `memory_profile`."""
    match = _PROFILE_AND_PERSON.fullmatch(memory_profile)
    return (memory_profile, None) if match is None else (match[1], match[2])


class MemoryScope(msgspec.Struct, frozen=True):
    """Whose memories a query is about: those of a profile for all workspaces, and for this one."""

    profile: str
    """As `memory_profile` returns it, here and in all that is stored."""
    workspace: str


class MemorySource(msgspec.Struct, frozen=True):
    """Where a memory comes from: an event of a session's log."""

    session_id: str
    seq: int
    turn_id: str | None = None
    call_id: str | None = None


class Memory(msgspec.Struct, frozen=True, kw_only=True, tag="memory"):
    """One thing that is remembered."""

    id: str
    text: str
    kind: MemoryKind
    about: MemoryAbout
    trust: Trust
    profile: str
    workspace: str
    """Empty if it is about the user."""
    created_at: float
    sources: tuple[MemorySource, ...] = ()
    """Empty: a person added it outside of sessions."""
    replaces: str | None = None
    state: MemoryState = "active"
    conflicts_with: str | None = None
    """Another active memory, which had replaced the same one before: both were kept."""


class TurnText(msgspec.Struct, frozen=True):
    """What one side said in a turn. The id is that of the message or of the step."""

    id: str
    by: Literal["user", "assistant"]
    text: str


class TurnMemory(msgspec.Struct, frozen=True, kw_only=True, tag="turn"):
    """A turn that has ended: the person's words and the answer; no tools, no recalled memories."""

    id: str
    session_id: str
    profile: str
    workspace: str
    at: float
    seq: int
    texts: tuple[TurnText, ...]


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True, tag="withdrawal"):
    """These memories and turns are not true any more: undone, removed, replaced or forgotten."""

    id: str
    session_id: str
    items: tuple[str, ...]
    erase: bool = False
    """Whether a person wants them forgotten: nothing of them may stay."""


MemoryItem = Memory | TurnMemory | Withdrawal


class Delivery(msgspec.Struct, frozen=True):
    """An item for a provider.

    `attempts` says how often it was sent before: then it may be stored already, also by a process
    that was killed. `equal_before` counts the items of this session with the same text that this
    provider has stored before it.
    """

    item: MemoryItem
    attempts: int = 0
    equal_before: int = 0


class MemoryProvider(Protocol):
    """One place where memories are stored and searched. Used on one loop."""

    @property
    def name(self) -> str: ...

    async def store(self, session_id: str, deliveries: Sequence[Delivery]) -> None:
        """Store these items of one session in order, each of them once.

        Return when all are stored. An error says nothing about the items before it: they come
        again, with a higher number of attempts.
        """
        ...

    async def recall(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        """Return what fits these words best, of this scope only."""
        ...

    async def context(self, scope: MemoryScope, words: str, limit: int) -> Sequence[RecalledMemory]:
        """Return what the model should be given before it reads a message about these words."""
        ...

    async def remaining(self, items: Sequence[str]) -> Sequence[str]:
        """Return those of the erased items that are still stored here, or may be."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class EditedByPeople(Protocol):
    """A provider whose memories people edit in place."""

    async def notice_edits(self) -> None:
        """Pass on what people did since the last look."""
        ...


class MemoryEdits(Protocol):
    """Takes what people did to memories at a provider. The same edit twice counts once."""

    async def add(self, memory: Memory) -> None:
        """Add a person's memory, or one that replaces another; durable on return."""
        ...

    async def remove(self, memory_id: str) -> None:
        """Remove a memory, so that it can be restored; durable on return."""
        ...


class TurnMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A text of an earlier turn that a search found."""

    id: str
    turn_id: str
    session_id: str
    by: Literal["user", "assistant"]
    text: str
    at: float


@runtime_checkable
class TurnSearch(Protocol):
    """A provider that also finds earlier turns by their meaning."""

    async def search_turns(
        self, scope: MemoryScope, words: str, limit: int
    ) -> Sequence[TurnMatch]: ...


class ProviderUnavailableError(NobodyMustActError):
    """The provider did not take the items, or nobody knows whether it did. They are sent again."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ItemRefusedError(UserMustActError):
    """The provider will never take this item; the text says why. The others are sent again."""

    def __init__(self, item_id: str, message: str) -> None:
        super().__init__(message)
        self.item_id = item_id


class FateUnknownError(NobodyMustActError):
    """Nobody can find out whether this item was stored. It is shown as such, and not sent again."""

    def __init__(self, item_id: str, message: str) -> None:
        super().__init__(message)
        self.item_id = item_id


class MemoryReplacedError(RecordChangedError):
    """A person edits a memory that is not active any more; `newest` took its place, if any did."""

    def __init__(self, memory_id: str, newest: Memory | None) -> None:
        how = "removed" if newest is None else f"replaced by {newest.id} ({newest.text})"
        super().__init__(
            f"the memory {memory_id} was {how} meanwhile; nothing was changed: look at it again, "
            "then decide"
        )
        self.newest = newest
