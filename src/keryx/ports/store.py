"""The seam between sessions and the store of their logs.

A session is an append-only log with one gapless sequence. Everything else that a store keeps
(inbox, blobs, projections, outbox, records) changes in the same transaction as the log, or not at
all. Every append is fenced: only the owner with the session's newest epoch can write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from keryx.events import LoggedEvent, ParentCall
from keryx.ports.search import Covered, Found
from keryx.ports.tags import TagCount
from keryx.ports.usage import UsageRow, UsageSums
from keryx.ports.view import RestingSession

SessionState = Literal["idle", "running", "waiting", "damaged"]
"""running: a turn is under way. waiting: it waits for a person. damaged: it cannot be read."""


def blob_hash(data: bytes) -> str:
    """Return the name of a blob with this content."""
    return hashlib.sha256(data).hexdigest()


def records_of(session_id: str) -> str:
    """Return the key prefix of the records of one session, which are deleted with it."""
    return f"session/{session_id}/"


class InboxRow(msgspec.Struct, frozen=True):
    """A command that was accepted: unique in its session by its key."""

    key: str
    body: bytes


class Blob(msgspec.Struct, frozen=True):
    """A large value, named by the hash of its content (`blob_hash`)."""

    hash: str
    data: bytes


class OutboxRow(msgspec.Struct, frozen=True):
    """Work that is done elsewhere, once, after the commit."""

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
    bodies: tuple[bytes, ...] = ()
    """The encoded events, if the caller has encoded them already."""
    enters: tuple[InboxRow, ...] = ()
    """Commands that enter and are consumed in this commit."""
    consumes: tuple[str, ...] = ()
    """Keys of commands that had entered before."""
    withdraws: tuple[str, ...] = ()
    """Keys of commands that had entered before and were refused: they may come again."""
    claims: tuple[str, ...] = ()
    """Names that only the first commit can take: "first answer wins"."""
    blobs: tuple[Blob, ...] = ()
    outbox: tuple[OutboxRow, ...] = ()
    records: tuple[RecordChange, ...] = ()

    @property
    def only_records(self) -> bool:
        """Whether only records change, so that the session keeps its place in the list."""
        commands = self.enters or self.consumes or self.withdraws
        said = self.events or commands or self.claims or self.outbox
        return bool(self.records) and not said


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session in the list: a projection of its log."""

    session_id: str
    title: str
    state: SessionState
    model: str
    workspace: str
    pinned: bool
    archived: bool
    failed: bool
    """The last turn ended `failed` or `parked`, and none was started since."""
    last_seq: int
    created_at: float
    changed_at: float
    position: int
    """The global commit position of its last change."""
    parent: ParentCall | None = None
    """The call that this session was opened by, if it is a child agent's."""
    tags: tuple[str, ...] = ()
    person: str | None = None
    """For whom it is; None: for the owner of the home."""


class TranscriptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a transcript: the fact that it comes from, as it was logged, and its place.

    A message stands where it was delivered, as `message.changed` had made it by then.
    """

    seq: int
    event: LoggedEvent


class Store(UsageSums, Protocol):
    """Stores the logs of all sessions of one host."""

    async def claim(self, session_id: str) -> int:
        """Become the owner: raise the session's epoch and return it. Earlier owners are fenced.

        The first claim makes the session; it is in no list before its first event."""
        ...

    async def create(self, commit: Commit) -> int:
        """Make a session with its first events and own it; returns its epoch, whatever the commit
        says. `AlreadyTakenError` if there is such a session."""
        ...

    async def append(self, commit: Commit) -> int:
        """Make it durable; returns the global position. Raises without any effect otherwise:

        `FencedError` (someone else owns the session now, or it was deleted), `SequenceError` (the
        events do not follow the log, or a command never entered), `AlreadyEnteredError` (this key
        with this body is in), `KeyReusedError` (with another body), `AlreadyTakenError` (a claim, a
        command or an outbox id is taken), `RecordChangedError`, `StoreError` (full, read-only,
        damaged). It is done or refused even if who awaits it is cancelled.
        """
        ...

    async def enter(self, session_id: str, row: InboxRow) -> bool:
        """Put a command into the inbox of a session that someone else owns. False: it was in.
        `KeyReusedError`: it was, with another body; `FencedError`: there is no such session."""
        ...

    async def pending(self, session_id: str) -> list[InboxRow]:
        """Return the commands that are not consumed yet, oldest first."""
        ...

    async def command(self, session_id: str, key: str) -> InboxRow | None:
        """Return the command that entered with this key, if there is one."""
        ...

    async def events(
        self, session_id: str, *, after: int = 0, limit: int | None = None, size: int | None = None
    ) -> list[LoggedEvent]:
        """Return the log in order; with `size` about so many bytes, at least one event."""
        ...

    async def sessions(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        after: int | None = None,
        archived: bool | None = False,
        parent: str | None = "",
        tag: str | None = None,
        person: str | None = None,
    ) -> list[SessionRow]:
        """Return sessions, last changed first: those that are archived, or not, or both (None).

        They were changed before the position `before`, and after the position `after`. `parent` is
        a session whose child agents' sessions are listed; empty: only sessions of no agent; None:
        all sessions. With `tag`, only those that have it, in any case. `person` is the one for whom
        they are; empty: only sessions of the owner of the home; None: of everybody.
        """
        ...

    async def tags(self) -> list[TagCount]:
        """Return the tags that sessions have, in the order of the alphabet."""
        ...

    async def session(self, session_id: str) -> SessionRow | None: ...

    async def resting(self, session_id: str) -> RestingSession | None:
        """Return a session without work, if it is in the list; fast for a log of any length."""
        ...

    async def unfinished(self) -> list[str]:
        """Sessions to be resumed: with a turn or a person's call under way, messages queued,
        commands pending, or an answer awaited."""
        ...

    async def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
    ) -> list[TranscriptRow]:
        """What a person reads, paged from the end, oldest first within the page.
        It ends before the seq `before`; with `after` it begins behind that one instead."""
        ...

    async def account(self, session_id: str) -> tuple[SessionRow, list[UsageRow]] | None:
        """A session in the list, and all that was spent in it up to the row's `last_seq`."""
        ...

    async def search(
        self, words: str, *, limit: int = 20, person: str | None = None
    ) -> list[Found]:
        """Where all these words stand, in what was said, answered and done with tools.

        With a `person`, only the sessions that are for them are searched; None: all.

        Case, accents and signs do not matter. The last word may be the beginning of one, unless
        something follows it. Best first: where the words stand as they were typed; then the order
        of the list of sessions, last facts first. What was undone or deleted is not found. What was
        committed is found at once, as long as little is still to be indexed (see `covered`).
        """
        ...

    async def covered(self) -> Covered:
        """Return up to which commit a search finds everything."""
        ...

    async def blob(self, hash_: str) -> bytes | None: ...

    async def names_blob(self, session_id: str, hash_: str) -> bool:
        """Return whether this session names the blob: only then may it be shown there."""
        ...

    async def outbox(self, topic: str, *, limit: int = 100) -> list[OutboxRow]:
        """Return the rows of the outbox that are not `sent`, oldest first."""
        ...

    async def sent(self, ids: Sequence[str]) -> None:
        """Remove rows of the outbox that are done."""
        ...

    async def record(self, key: str) -> tuple[int, bytes] | None:
        """Return a record's version and value."""
        ...

    async def records(self, prefix: str) -> dict[str, bytes]:
        """Return the values of all records with this key prefix, in the order of keys."""
        ...

    async def keep_record(self, key: str, value: bytes) -> None:
        """Write a record that belongs to no session; durable once this returns."""
        ...

    async def drop_record(self, key: str) -> bool:
        """Remove a record of any version. Return False if there was none."""
        ...

    async def mark_damaged(self, session_id: str) -> None:
        """Show the session as damaged in the list, until an append succeeds again."""
        ...

    async def delete(self, session_id: str) -> bool:
        """Everything of the session is gone: its log, its records (`records_of`), the words that it
        was found by, and blobs that nobody else names. False: it was."""
        ...

    async def close(self) -> None: ...
