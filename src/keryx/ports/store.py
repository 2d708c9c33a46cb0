"""The seam between sessions and where their logs are kept.

A session is an append-only log with one gapless sequence. Everything else that a store keeps
(inbox, blobs, projections, outbox, records) changes in the same transaction as the log, or not at
all. Every append is fenced: only the owner with the session's newest epoch can write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from keryx.events import LoggedEvent

SessionState = Literal["idle", "running", "waiting"]
"""running: a turn is under way. waiting: it waits for a person."""


def blob_hash(data: bytes) -> str:
    """The name of a blob with this content."""
    return hashlib.sha256(data).hexdigest()


class InboxRow(msgspec.Struct, frozen=True):
    """A command that was accepted: unique in its session by its key."""

    key: str
    body: bytes


class Blob(msgspec.Struct, frozen=True):
    """A large value, named by the hash of its content (`blob_hash`)."""

    hash: str
    data: bytes


class OutboxRow(msgspec.Struct, frozen=True):
    """Something to be done elsewhere, once, after the commit."""

    id: str
    topic: str
    body: bytes


class RecordChange(msgspec.Struct, frozen=True):
    """Compare and set: the record must have this version (0: not exist) and then gets the next."""

    key: str
    version: int
    value: bytes


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction of one session: all of it, or nothing."""

    session_id: str
    epoch: int
    events: tuple[LoggedEvent, ...] = ()
    enters: tuple[InboxRow, ...] = ()
    """Commands that enter and are consumed by this very commit."""
    consumes: tuple[str, ...] = ()
    """Keys of commands that had entered before."""
    claims: tuple[str, ...] = ()
    """Names that only the first commit can take: "first answer wins"."""
    blobs: tuple[Blob, ...] = ()
    outbox: tuple[OutboxRow, ...] = ()
    records: tuple[RecordChange, ...] = ()


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list: a projection of its log."""

    session_id: str
    title: str
    state: SessionState
    last_seq: int
    created_at: float
    changed_at: float
    position: int
    """The global commit position of its last change."""


class TranscriptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a transcript: the fact that it comes from, as it was logged.

    A message stands where it was delivered, and its event is its `message.accepted` as it was
    then: what `message.changed` had made of it, in the turn that it was delivered to.
    """

    seq: int
    """Its place in the log."""
    event: LoggedEvent


class UsageRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one session spent with one model; unknown cost is None, never 0."""

    session_id: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost: float | None


class Store(Protocol):
    """Keeps the logs of all sessions of one host."""

    async def claim(self, session_id: str) -> int:
        """Become the owner: raise the session's epoch and return it. Earlier owners are fenced.

        The first claim makes the session, which is in no list before its first event.
        """
        ...

    async def append(self, commit: Commit) -> int:
        """Make it durable; returns the global position. Raises without any effect otherwise:

        `FencedError` (someone else owns the session now, or it was deleted), `SequenceError` (the
        events do not follow the log, or a command to be consumed never entered),
        `AlreadyEnteredError` (a command with this key and body is in already), `KeyReusedError`
        (the same key with another body), `AlreadyTakenError` (a claim, a command to be consumed or
        the id of an outbox row is taken), `RecordChangedError`, `StoreError` (disk full, read-only,
        damaged).

        It is done or refused even if who awaits it is cancelled.
        """
        ...

    async def enter(self, session_id: str, row: InboxRow) -> bool:
        """Put a command into the inbox of a session that someone else owns. False: it was in.

        `KeyReusedError` if it was in with another body; `FencedError` if there is no such session.
        """
        ...

    async def pending(self, session_id: str) -> list[InboxRow]:
        """Commands that entered and were not consumed, oldest first."""
        ...

    async def command(self, session_id: str, key: str) -> InboxRow | None:
        """A command that ever entered with this key."""
        ...

    async def events(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[LoggedEvent]:
        """The log, in order."""
        ...

    async def sessions(self, *, limit: int = 50, before: int | None = None) -> list[SessionRow]:
        """The list, last changed first; `before` is the position that the page ends before."""
        ...

    async def session(self, session_id: str) -> SessionRow | None: ...

    async def unfinished(self) -> list[str]:
        """Sessions with a turn under way, messages queued, or commands pending: to be resumed.

        Also those where a call that a person ran has not ended, or an answer is still awaited.
        """
        ...

    async def transcript(
        self, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[TranscriptRow]:
        """What a person reads, paged from the end, oldest first within the page."""
        ...

    async def usage(self, session_id: str | None = None) -> list[UsageRow]: ...

    async def blob(self, hash_: str) -> bytes | None: ...

    async def outbox(self, topic: str, *, limit: int = 100) -> list[OutboxRow]:
        """What is to be done and not `sent`, oldest first."""
        ...

    async def sent(self, ids: Sequence[str]) -> None:
        """Those rows of the outbox are done."""
        ...

    async def record(self, key: str) -> tuple[int, bytes] | None:
        """A record's version and value."""
        ...

    async def records(self, prefix: str) -> list[bytes]:
        """The values of all records whose key begins so, in the order of keys."""
        ...

    async def delete(self, session_id: str) -> bool:
        """Everything of the session is gone, blobs that nobody else names too. False: it was."""
        ...

    async def close(self) -> None: ...
