"""The store in plain tables of one process, for tests: the same contract, and nothing survives.

Every method changes all it changes between two awaits, so nothing needs to be taken back: what
is refused is refused before the first change.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from keryx.errors import (
    AlreadyEnteredError,
    AlreadyTakenError,
    FencedError,
    KeyReusedError,
    RecordChangedError,
    ScopeClosedError,
    SequenceError,
)
from keryx.events import LoggedEvent
from keryx.ports.store import (
    Commit,
    InboxRow,
    OutboxRow,
    SessionRow,
    SessionState,
    TranscriptRow,
    UsageRow,
)
from keryx.store.projections import (
    OpenKey,
    Projection,
    Spent,
    as_delivered,
    project,
    state_of,
    usage_row,
)

_Shown = tuple[str | None, list[int]]
"""The turn of an entry of the transcript, and the facts that it is made of."""


@dataclass(slots=True)
class _Session:
    """Everything of one session."""

    epoch: int
    log: list[LoggedEvent] = field(default_factory=list[LoggedEvent])
    inbox: dict[str, InboxRow] = field(default_factory=dict[str, InboxRow])
    pending: dict[str, InboxRow] = field(default_factory=dict[str, InboxRow])
    claims: set[str] = field(default_factory=set[str])
    open: dict[OpenKey, list[int]] = field(default_factory=dict[OpenKey, list[int]])
    shown: dict[int, _Shown] = field(default_factory=dict[int, _Shown])
    usage: dict[str, list[Spent]] = field(default_factory=dict[str, list[Spent]])
    blobs: set[str] = field(default_factory=set[str])
    outbox: set[str] = field(default_factory=set[str])
    title: str = ""
    step_model: str = ""
    position: int = 0

    @property
    def state(self) -> SessionState:
        kinds = {kind for kind, _ in self.open}
        return state_of(turn="turn" in kinds, person=bool(kinds & {"approval", "question"}))


class MemoryStore:
    """Keeps the logs of all sessions until it is closed."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._blobs: dict[str, bytes] = {}
        self._outbox: dict[str, OutboxRow] = {}
        self._records: dict[str, tuple[int, bytes]] = {}
        self._position = 0
        self._floor = 0
        self._closed = False

    # -- writing

    async def claim(self, session_id: str) -> int:
        self._check_open()
        session = self._sessions.setdefault(session_id, _Session(self._floor))
        session.epoch += 1
        return session.epoch

    async def append(self, commit: Commit) -> int:
        self._check_open()
        session = self._sessions.get(commit.session_id)
        if session is None or session.epoch != commit.epoch:
            raise FencedError(f"someone else owns session {commit.session_id!r}")
        _check_sequence(session, commit)
        _check_inbox(session, commit)
        _check_free(commit.claims, session.claims)
        records = self._changed_records(commit)
        _check_free([row.id for row in commit.outbox], self._outbox)

        self._records.update(records)
        self._outbox.update({row.id: row for row in commit.outbox})
        self._blobs.update({blob.hash: blob.data for blob in commit.blobs})
        session.outbox |= {row.id for row in commit.outbox}
        session.claims |= set(commit.claims)
        session.inbox.update({row.key: row for row in commit.enters})
        for key in commit.consumes:
            del session.pending[key]
        changes = project(commit.events, session.step_model)
        session.blobs |= {*changes.blobs, *(blob.hash for blob in commit.blobs)}
        session.log.extend(commit.events)
        _apply(session, changes)
        self._position += 1
        session.position = self._position
        return self._position

    async def enter(self, session_id: str, row: InboxRow) -> bool:
        self._check_open()
        session = self._sessions.get(session_id)
        if session is None:
            raise FencedError(f"there is no session {session_id!r}")
        found = session.inbox.get(row.key)
        if found is not None and found != row:
            raise KeyReusedError(f"the key {row.key!r} was used for another command")
        if found is None:
            session.inbox[row.key] = session.pending[row.key] = row
        return found is None

    async def sent(self, ids: Sequence[str]) -> None:
        self._check_open()
        for id_ in ids:
            self._outbox.pop(id_, None)

    async def delete(self, session_id: str) -> bool:
        self._check_open()
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        self._floor = max(self._floor, session.epoch)
        for id_ in session.outbox:
            self._outbox.pop(id_, None)
        for hash_ in session.blobs.difference(*(other.blobs for other in self._sessions.values())):
            self._blobs.pop(hash_, None)
        return True

    def _changed_records(self, commit: Commit) -> dict[str, tuple[int, bytes]]:
        changed: dict[str, tuple[int, bytes]] = {}
        for change in commit.records:
            version, _ = changed.get(change.key) or self._records.get(change.key) or (0, b"")
            if version != change.version:
                raise RecordChangedError(f"record {change.key!r} has version {version}")
            changed[change.key] = (version + 1, change.value)
        return changed

    # -- reading

    async def pending(self, session_id: str) -> list[InboxRow]:
        session = self._find(session_id)
        return [] if session is None else list(session.pending.values())

    async def command(self, session_id: str, key: str) -> InboxRow | None:
        session = self._find(session_id)
        return None if session is None else session.inbox.get(key)

    async def events(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[LoggedEvent]:
        session = self._find(session_id)
        found = [] if session is None else session.log[max(after, 0) :]
        return found[:limit]

    async def sessions(self, *, limit: int = 50, before: int | None = None) -> list[SessionRow]:
        self._check_open()
        rows = [
            _session_row(session_id, session)
            for session_id, session in self._sessions.items()
            if session.log and (before is None or session.position < before)
        ]
        return sorted(rows, key=lambda row: -row.position)[:limit]

    async def session(self, session_id: str) -> SessionRow | None:
        session = self._find(session_id)
        return None if session is None or not session.log else _session_row(session_id, session)

    async def unfinished(self) -> list[str]:
        self._check_open()
        found = [item for item in self._sessions.items() if item[1].open or item[1].pending]
        return [session_id for session_id, _ in sorted(found, key=lambda item: item[1].position)]

    async def transcript(
        self, session_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[TranscriptRow]:
        session = self._find(session_id)
        if session is None:
            return []
        places = sorted(seq for seq in session.shown if before is None or seq < before)
        return [_transcript_row(session, seq) for seq in places[max(0, len(places) - limit) :]]

    async def usage(self, session_id: str | None = None) -> list[UsageRow]:
        self._check_open()
        return [
            usage_row(name, model, session.usage[model])
            for name, session in self._sessions.items()
            if session_id in (None, name)
            for model in sorted(session.usage)
        ]

    async def blob(self, hash_: str) -> bytes | None:
        self._check_open()
        return self._blobs.get(hash_)

    async def outbox(self, topic: str, *, limit: int = 100) -> list[OutboxRow]:
        self._check_open()
        return [row for row in self._outbox.values() if row.topic == topic][:limit]

    async def record(self, key: str) -> tuple[int, bytes] | None:
        self._check_open()
        return self._records.get(key)

    async def records(self, prefix: str) -> list[bytes]:
        self._check_open()
        return [self._records[key][1] for key in sorted(self._records) if key.startswith(prefix)]

    async def close(self) -> None:
        self._closed = True

    def _find(self, session_id: str) -> _Session | None:
        self._check_open()
        return self._sessions.get(session_id)

    def _check_open(self) -> None:
        if self._closed:
            raise ScopeClosedError("the store is closed")


def _check_sequence(session: _Session, commit: Commit) -> None:
    for expected, event in enumerate(commit.events, len(session.log) + 1):
        if event.seq != expected or event.session_id != commit.session_id:
            raise SequenceError(f"event {expected} is next, not {event.seq}")


def _check_inbox(session: _Session, commit: Commit) -> None:
    entering: dict[str, InboxRow] = {}
    for row in commit.enters:
        found = session.inbox.get(row.key)
        if found == row:
            raise AlreadyEnteredError(f"the command {row.key!r} is in already")
        if found is not None or row.key in entering:
            raise KeyReusedError(f"the key {row.key!r} was used for another command")
        entering[row.key] = row
    for key in commit.consumes:
        if key not in session.inbox:
            raise SequenceError(f"no command {key!r} has entered")
    _check_free(commit.consumes, session.inbox.keys() - session.pending.keys())


def _check_free(names: Sequence[str], taken: Container[str]) -> None:
    if len(set(names)) < len(names) or any(name in taken for name in names):
        raise AlreadyTakenError(f"one of {names} was taken before")


def _apply(session: _Session, changes: Projection) -> None:
    session.step_model = changes.step_model
    session.title = session.title if changes.title is None else changes.title
    for message_id, seq in changes.changed:
        if ("message", message_id) in session.open:
            session.open["message", message_id].append(seq)
    for shown in changes.shown:
        sources = list(shown.sources)
        if shown.message_id is not None:
            sources = session.open.get(("message", shown.message_id), [])
        if sources:
            session.shown[shown.seq] = (shown.turn_id, sources)
    for key in changes.closed:
        session.open.pop(key, None)
    for key, sources in changes.opened.items():
        session.open.setdefault(key, sources)
    for turn_id in changes.undone:
        session.shown = {s: it for s, it in session.shown.items() if it[0] != turn_id}
    for spent in changes.spent:
        session.usage.setdefault(spent.model, []).append(spent)


def _session_row(session_id: str, session: _Session) -> SessionRow:
    return SessionRow(
        session_id=session_id,
        title=session.title,
        state=session.state,
        last_seq=len(session.log),
        created_at=session.log[0].at,
        changed_at=session.log[-1].at,
        position=session.position,
    )


def _transcript_row(session: _Session, seq: int) -> TranscriptRow:
    turn_id, sources = session.shown[seq]
    source, *later = [session.log[number - 1] for number in sources]
    return TranscriptRow(seq=seq, event=as_delivered(source, later, turn_id))
