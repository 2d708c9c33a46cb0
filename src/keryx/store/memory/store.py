"""The store in plain tables of one process, for tests: the same contract, and nothing survives.

Every method raises before its first change and makes all changes between two awaits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from keryx.errors import (
    AlreadyTakenError,
    FencedError,
    KeyReusedError,
    ScopeClosedError,
)
from keryx.events import ContextCompacted, LoggedEvent, SessionChanged, SessionOpened, StepReplied
from keryx.ports.search import Covered, Found
from keryx.ports.store import (
    Commit,
    InboxRow,
    OutboxRow,
    SessionRow,
    TranscriptRow,
    records_of,
)
from keryx.ports.tags import TagCount
from keryx.ports.usage import UsageRow
from keryx.ports.view import RestingSession
from keryx.store.memory.tables import (
    Session,
    apply,
    changed_records,
    check_free,
    check_inbox,
    check_sequence,
    count_tags,
    hits_in,
    is_listed,
    session_row,
    transcript_row,
)
from keryx.store.memory.usage import MemoryUsage
from keryx.store.projections import project
from keryx.store.search.query import Query
from keryx.store.table_changes import UsageEntry

MAX_PAGE: Final = 500  # the most events in a page, whatever its size in bytes


class MemoryStore(MemoryUsage):
    """Stores the logs of all sessions until it is closed."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._deleted_usage: list[UsageEntry] = []
        self._blobs: dict[str, bytes] = {}
        self._outbox: dict[str, OutboxRow] = {}
        self._records: dict[str, tuple[int, bytes]] = {}
        self._position = 0
        self._floor = 0
        self._closed = False

    # -- writing

    async def claim(self, session_id: str) -> int:
        self._check_open()
        session = self._sessions.setdefault(session_id, Session(self._floor))
        session.epoch += 1
        return session.epoch

    async def create(self, commit: Commit) -> int:
        self._check_open()
        if commit.session_id in self._sessions:
            raise AlreadyTakenError(f"there is a session {commit.session_id!r}")
        epoch = await self.claim(commit.session_id)
        await self.append(msgspec.structs.replace(commit, epoch=epoch))
        return epoch

    async def append(self, commit: Commit) -> int:
        self._check_open()
        session = self._sessions.get(commit.session_id)
        if session is None or session.epoch != commit.epoch:
            raise FencedError(f"someone else owns session {commit.session_id!r}")
        check_sequence(session, commit)
        check_inbox(session, commit)
        check_free(commit.claims, session.claims)
        records = changed_records(self._records, commit)
        check_free([row.id for row in commit.outbox], self._outbox)

        self._records.update(records)
        self._outbox.update({row.id: row for row in commit.outbox})
        self._blobs.update({blob.hash: blob.data for blob in commit.blobs})
        session.outbox |= {row.id for row in commit.outbox}
        session.claims |= set(commit.claims)
        session.inbox.update({row.key: row for row in commit.enters})
        for key in commit.consumes:
            del session.pending[key]
        for key in commit.withdraws:
            del session.pending[key], session.inbox[key]
        changes = project(commit.events, session.step_model)
        session.blobs |= {*changes.blobs, *(blob.hash for blob in commit.blobs)}
        session.log.extend(commit.events)
        apply(session, changes)
        if not commit.only_records:
            session.is_damaged = False
            self._position += 1
            session.position = self._position
        return self._position

    async def enter(self, session_id: str, row: InboxRow) -> bool:
        self._check_open()
        session = self._sessions.get(session_id)
        if session is None:
            raise FencedError(f"there is no session {session_id!r}")
        stored = session.inbox.get(row.key)
        if stored is not None and stored != row:
            raise KeyReusedError(f"the key {row.key!r} was used for another command")
        if stored is None:
            session.inbox[row.key] = session.pending[row.key] = row
        return stored is None

    async def sent(self, ids: Sequence[str]) -> None:
        self._check_open()
        for id_ in ids:
            self._outbox.pop(id_, None)

    async def mark_damaged(self, session_id: str) -> None:
        self._check_open()
        if (session := self._sessions.get(session_id)) is not None:
            self._position += 1
            session.is_damaged, session.position = True, self._position

    async def keep_record(self, key: str, value: bytes) -> None:
        self._check_open()
        self._records[key] = (self._records.get(key, (0, b""))[0] + 1, value)

    async def drop_record(self, key: str) -> bool:
        self._check_open()
        return self._records.pop(key, None) is not None

    async def delete(self, session_id: str) -> bool:
        self._check_open()
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        self._floor = max(self._floor, session.epoch)
        self._deleted_usage += session.usage
        for key in [key for key in self._records if key.startswith(records_of(session_id))]:
            del self._records[key]
        for id_ in session.outbox:
            self._outbox.pop(id_, None)
        for hash_ in session.blobs.difference(*(s.blobs for s in self._sessions.values())):
            self._blobs.pop(hash_, None)
        return True

    # -- reading

    async def pending(self, session_id: str) -> list[InboxRow]:
        session = self._find(session_id)
        return [] if session is None else list(session.pending.values())

    async def command(self, session_id: str, key: str) -> InboxRow | None:
        session = self._find(session_id)
        return None if session is None else session.inbox.get(key)

    async def events(
        self, session_id: str, *, after: int = 0, limit: int | None = None, size: int | None = None
    ) -> list[LoggedEvent]:
        session = self._find(session_id)
        events = [] if session is None else session.log[max(after, 0) :]
        return events[:limit] if size is None else events[: min(limit or size, MAX_PAGE)]

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
        self._check_open()
        rows = [
            session_row(session_id, session)
            for session_id, session in self._sessions.items()
            if is_listed(session, archived=archived, parent=parent, tag=tag, person=person)
            and (before is None or session.position < before)
            and (after is None or session.position > after)
        ]
        return sorted(rows, key=lambda row: -row.position)[:limit]

    async def tags(self) -> list[TagCount]:
        self._check_open()
        return count_tags(self._sessions.values())

    async def session(self, session_id: str) -> SessionRow | None:
        session = self._find(session_id)
        return None if session is None or not session.log else session_row(session_id, session)

    async def resting(self, session_id: str) -> RestingSession | None:
        session = self._find(session_id)
        if session is None or not session.log or session.open or session.pending:
            return None
        last_reply = next((e for e in reversed(session.log) if isinstance(e, StepReplied)), None)
        since = session.log[0 if last_reply is None else last_reply.seq :]
        return RestingSession(
            seq=len(session.log),
            settings=tuple(
                event for event in session.log if isinstance(event, SessionOpened | SessionChanged)
            ),
            last_reply=last_reply,
            compacted=next((e for e in reversed(since) if isinstance(e, ContextCompacted)), None),
        )

    async def unfinished(self) -> list[str]:
        self._check_open()
        items = [item for item in self._sessions.items() if item[1].open or item[1].pending]
        return [session_id for session_id, _ in sorted(items, key=lambda item: item[1].position)]

    async def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
    ) -> list[TranscriptRow]:
        session = self._find(session_id)
        if session is None:
            return []
        seqs = sorted(
            seq
            for seq in session.transcript
            if (before is None or seq < before) and (after is None or seq > after)
        )
        page = seqs[max(0, len(seqs) - limit) :] if after is None else seqs[:limit]
        return [transcript_row(session, seq) for seq in page]

    async def account(self, session_id: str) -> tuple[SessionRow, list[UsageRow]] | None:
        row = await self.session(session_id)
        return None if row is None else (row, await self.usage(session_id))

    async def blob(self, hash_: str) -> bytes | None:
        self._check_open()
        return self._blobs.get(hash_)

    async def names_blob(self, session_id: str, hash_: str) -> bool:
        session = self._find(session_id)
        return session is not None and hash_ in session.blobs

    async def search(
        self, words: str, *, limit: int = 20, person: str | None = None
    ) -> list[Found]:
        self._check_open()
        query = Query(words)
        if not query:
            return []
        hits = [
            hit
            for session_id, session in self._sessions.items()
            if person in (None, session.person)
            for hit in hits_in(session_id, session, query)
        ]
        return [hit for _, hit in sorted(hits, key=lambda ranked: ranked[0])[:limit]]

    async def covered(self) -> Covered:
        self._check_open()
        return Covered(position=self._position, is_whole=True)

    async def outbox(self, topic: str, *, limit: int = 100) -> list[OutboxRow]:
        self._check_open()
        return [row for row in self._outbox.values() if row.topic == topic][:limit]

    async def record(self, key: str) -> tuple[int, bytes] | None:
        self._check_open()
        return self._records.get(key)

    async def records(self, prefix: str) -> dict[str, bytes]:
        self._check_open()
        keys = sorted(key for key in self._records if key.startswith(prefix))
        return {key: self._records[key][1] for key in keys}

    async def close(self) -> None:
        self._closed = True

    def _find(self, session_id: str) -> Session | None:
        self._check_open()
        return self._sessions.get(session_id)

    def _check_open(self) -> None:
        if self._closed:
            raise ScopeClosedError("the store is closed")
