"""The bodies of requests and answers about the memory. Plain data; this module knows no routes."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from keryx.app.memory.memory_client import MAX_TEXT
from keryx.config import DEFAULT
from keryx.events import MemoryAbout, MemoryKind, Trust
from keryx.ports.memory import MemoryState
from keryx.server.problems import Problem
from keryx.server.schemas import Folder, Seq, Word

Places = Annotated[tuple[Seq, ...], Meta(max_length=1_000)]
MemoryText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]


class MemoryOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The event of a session that a memory comes from."""

    session_id: str
    seq: int
    turn_id: str | None
    call_id: str | None
    title: str | None
    """The title of the session; null: it was deleted."""


class RememberedItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is remembered; without origins, a person wrote it."""

    id: str
    text: str
    kind: MemoryKind
    about: MemoryAbout
    trust: Trust
    profile: str
    person: str | None
    """Whose it is, if it is that of a person of the gateway; null: the owner's."""
    workspace: str
    created_at: float
    state: MemoryState
    replaces: str | None
    conflicts_with: str | None
    """Another active memory, which had replaced the same one before."""
    sources: tuple[MemoryOrigin, ...]


class MemoryList(msgspec.Struct, frozen=True):
    """A page of the memories, the newest first; or with `q`, what has all these words."""

    memories: tuple[RememberedItem, ...]
    next: int | None


class NewMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A fact in a person's own words; about work it needs a workspace."""

    text: MemoryText
    about: MemoryAbout = "user"
    workspace: Folder | None = None
    profile: Word = DEFAULT


class MemoryEdit(msgspec.Struct, frozen=True):
    text: MemoryText


class MemoryConflict(Problem, frozen=True, kw_only=True):
    """The memory was replaced meanwhile; `newest` took its place, or nothing did."""

    newest: RememberedItem | None = None


class Erased(msgspec.Struct, frozen=True):
    """The ids of what is erased, and of what providers still have, or may have."""

    erased: tuple[str, ...]
    remaining: dict[str, tuple[str, ...]]


class ProviderShown(msgspec.Struct, frozen=True, kw_only=True):
    """How far a provider is behind; `stuck`: a person must look at it."""

    name: str
    waiting: int
    refused: int
    unknown: int
    behind: float | None
    """Seconds since the oldest waiting item was accepted; null: nothing waits."""
    failures: int
    """Failures in a row."""
    error: str
    retry_at: float
    stuck: bool
    left_out: str | None
    """Why it cannot be used at all, and what to do; null: it can."""


class FailureShown(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider refused, or may or may not have stored; a person decides."""

    place: int
    provider: str
    state: Literal["refused", "unknown"]
    text: str
    error: str
    attempts: int
    since: float


class MemoryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`hint` says how to turn the memory on if it is off, or what to do if it does not work."""

    on: bool
    hint: str = ""
    providers: tuple[ProviderShown, ...] = ()
    failures: tuple[FailureShown, ...] = ()


class RetryBody(msgspec.Struct, frozen=True):
    """The places of failures; null: all of them."""

    places: Places | None = None


class Retried(msgspec.Struct, frozen=True):
    retried: int
