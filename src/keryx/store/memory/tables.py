"""The tables of one session in memory, and the changes that a commit makes to them.

A commit is checked before the first change, so nothing ever needs to be rolled back.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from keryx.errors import (
    AlreadyEnteredError,
    AlreadyTakenError,
    KeyReusedError,
    RecordChangedError,
    SequenceError,
)
from keryx.events import LoggedEvent, ParentCall
from keryx.ports.search import Found
from keryx.ports.store import Commit, InboxRow, SessionRow, SessionState, TranscriptRow
from keryx.ports.tags import TagCount, tag_key
from keryx.store.projections import as_delivered, state_of
from keryx.store.search.query import Query
from keryx.store.search.searchable_text import texts_of
from keryx.store.table_changes import (
    NEW_SESSION,
    OpenKey,
    Projection,
    SessionFields,
    ToolEntry,
    TurnEntry,
    UsageEntry,
)

_Entry = tuple[str | None, list[int]]
"""The turn of an entry of the transcript, and the numbers of its source events."""


@dataclass(slots=True)
class Session:
    """The tables of one session."""

    epoch: int
    log: list[LoggedEvent] = field(default_factory=list[LoggedEvent])
    inbox: dict[str, InboxRow] = field(default_factory=dict[str, InboxRow])
    pending: dict[str, InboxRow] = field(default_factory=dict[str, InboxRow])
    claims: set[str] = field(default_factory=set[str])
    open: dict[OpenKey, list[int]] = field(default_factory=dict[OpenKey, list[int]])
    transcript: dict[int, _Entry] = field(default_factory=dict[int, _Entry])
    undone: dict[int, _Entry] = field(default_factory=dict[int, _Entry])
    usage: list[UsageEntry] = field(default_factory=list[UsageEntry])
    tools: list[ToolEntry] = field(default_factory=list[ToolEntry])
    turns: list[TurnEntry] = field(default_factory=list[TurnEntry])
    blobs: set[str] = field(default_factory=set[str])
    outbox: set[str] = field(default_factory=set[str])
    fields: SessionFields = field(default_factory=lambda: NEW_SESSION)
    parent: ParentCall | None = None
    person: str | None = None
    tags: tuple[str, ...] = ()
    step_model: str = ""
    position: int = 0
    is_damaged: bool = False

    @property
    def state(self) -> SessionState:
        if self.is_damaged:
            return "damaged"
        kinds = {kind for kind, _ in self.open}
        return state_of(turn="turn" in kinds, person=bool(kinds & {"approval", "question"}))


def check_sequence(session: Session, commit: Commit) -> None:
    for expected, event in enumerate(commit.events, len(session.log) + 1):
        if event.seq != expected or event.session_id != commit.session_id:
            raise SequenceError(f"event {expected} is next, not {event.seq}")


def check_inbox(session: Session, commit: Commit) -> None:
    entering: dict[str, InboxRow] = {}
    for row in commit.enters:
        stored = session.inbox.get(row.key)
        if stored == row:
            raise AlreadyEnteredError(f"the command {row.key!r} was entered already")
        if stored is not None or row.key in entering:
            raise KeyReusedError(f"the key {row.key!r} was used for another command")
        entering[row.key] = row
    for key in commit.consumes:
        if key not in session.inbox:
            raise SequenceError(f"no command {key!r} has entered")
    check_free(commit.consumes, session.inbox.keys() - session.pending.keys())
    for key in commit.withdraws:
        if key not in session.pending:
            raise SequenceError(f"no command {key!r} waits, so it cannot be withdrawn")


def check_free(names: Sequence[str], used_names: Container[str]) -> None:
    if len(set(names)) < len(names) or any(name in used_names for name in names):
        raise AlreadyTakenError(f"one of {names} was taken before")


def apply(session: Session, changes: Projection) -> None:
    session.step_model = changes.step_model
    session.fields = changes.fields_after(session.fields)
    session.parent = session.parent or changes.parent
    session.person = session.person or changes.person
    session.tags = session.tags if changes.tags is None else changes.tags
    for message_id, seq in changes.changed:
        if ("message", message_id) in session.open:
            session.open["message", message_id].append(seq)
    for entry in changes.entries:
        sources = list(entry.sources)
        if entry.message_id is not None:
            sources = session.open.get(("message", entry.message_id), [])
        if sources:
            session.transcript[entry.seq] = (entry.turn_id, sources)
    for key in changes.closed:
        session.open.pop(key, None)
    for key, sources in changes.opened.items():
        session.open.setdefault(key, sources)
    _undo(session, changes)
    session.usage += changes.usages
    session.tools += changes.tools
    session.turns += changes.turns


def _undo(session: Session, changes: Projection) -> None:
    """Move what is read of turns aside, or back."""
    for turn_id, is_undone in changes.undone.items():
        source, target = session.transcript, session.undone
        if not is_undone:
            source, target = target, source
        for seq in [seq for seq, entry in source.items() if entry[0] == turn_id]:
            target[seq] = source.pop(seq)


def is_listed(
    session: Session,
    *,
    archived: bool | None,
    parent: str | None,
    tag: str | None = None,
    person: str | None = None,
) -> bool:
    """Return whether a session is in such a list; see `Store.sessions`."""
    opened_by = "" if session.parent is None else session.parent.session_id
    return (
        bool(session.log)
        and archived in (None, bool(session.fields.archived))
        and parent in (None, opened_by)
        and person in (None, session.person or "")
        and (tag is None or tag_key(tag) in map(tag_key, session.tags))
    )


def count_tags(sessions: Iterable[Session]) -> list[TagCount]:
    """Return the tags of these sessions, in the order of the alphabet."""
    names: dict[str, list[tuple[str, bool]]] = {}
    for session in sessions:
        if is_listed(session, archived=None, parent=""):
            for name in session.tags:
                uses = names.setdefault(tag_key(name), [])
                uses.append((name, bool(session.fields.archived)))
    return [
        TagCount(
            name=min(name for name, _ in uses),
            sessions=sum(not is_archived for _, is_archived in uses),
            archived=sum(is_archived for _, is_archived in uses),
        )
        for _, uses in sorted(names.items())
    ]


def ancestry(sessions: Mapping[str, Session], session_id: str) -> list[str]:
    """Return the session, the session that opened it as a child agent, and so on."""
    ids = [session_id]
    while (session := sessions.get(ids[-1])) and session.parent is not None:
        ids.append(session.parent.session_id)
    return ids


def session_row(session_id: str, session: Session) -> SessionRow:
    return SessionRow(
        session_id=session_id,
        title=session.fields.title or "",
        state=session.state,
        model=session.fields.model or "",
        workspace=session.fields.workspace or "",
        pinned=bool(session.fields.pinned),
        archived=bool(session.fields.archived),
        failed=bool(session.fields.failed_turn),
        last_seq=len(session.log),
        created_at=session.log[0].at,
        changed_at=session.log[-1].at,
        position=session.position,
        parent=session.parent,
        tags=session.tags,
        person=session.person,
    )


def transcript_row(session: Session, seq: int) -> TranscriptRow:
    turn_id, sources = session.transcript[seq]
    source, *later = [session.log[number - 1] for number in sources]
    return TranscriptRow(seq=seq, event=as_delivered(source, later, turn_id))


def hits_in(
    session_id: str, session: Session, query: Query
) -> Iterator[tuple[tuple[int, ...], Found]]:
    """Yield the places in one session that match, each with its rank."""
    for seq in sorted(session.transcript, reverse=True):
        event = transcript_row(session, seq).event
        for number, (kind, text) in enumerate(texts_of(event)):
            rank = query.rank(text)
            if rank is not None:
                yield (
                    (rank, -session.position, -seq, number),
                    Found(
                        session_id=session_id,
                        seq=seq,
                        turn_id=session.transcript[seq][0],
                        kind=kind,
                        at=event.at,
                        snippet=query.snippet(text),
                    ),
                )


def changed_records(
    records: Mapping[str, tuple[int, bytes]], commit: Commit
) -> dict[str, tuple[int, bytes]]:
    """Return the records that this commit changes; `RecordChangedError` if one is not as it was."""
    changed: dict[str, tuple[int, bytes]] = {}
    for change in commit.records:
        version, _ = changed.get(change.key) or records.get(change.key) or (0, b"")
        if version != change.version:
            raise RecordChangedError(f"record {change.key!r} has version {version}")
        changed[change.key] = (version + 1, change.value)
    return changed
