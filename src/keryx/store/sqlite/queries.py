"""The queries of the store, one function for each method that reads.

Blocking code: it runs in a reader's thread, on a connection that cannot write. It refuses to
know about threads and files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from keryx.events import (
    ContextCompacted,
    LoggedEvent,
    ParentCall,
    SessionChanged,
    SessionOpened,
    StepReplied,
)
from keryx.ports.store import InboxRow, OutboxRow, SessionRow, TranscriptRow
from keryx.ports.tags import TagCount, tag_key
from keryx.ports.usage import UsageRow
from keryx.ports.view import RestingSession
from keryx.store.projections import as_delivered
from keryx.store.sqlite.faults import read_event
from keryx.store.sqlite.readers import snapshot
from keryx.store.sqlite.usage.queries import usage

_SESSION: Final = (
    "SELECT session_id, title, state, model, workspace, pinned, archived, failed_turn, last_seq,"
    " created_at, changed_at, position, parent, parent_call, (SELECT group_concat(name, char(10))"
    " FROM tags WHERE tags.no = sessions.no), person FROM sessions WHERE last_seq > 0"
)
_IN_SESSION: Final = "no = (SELECT no FROM sessions WHERE session_id = ?)"
# Larger than any seq or position, so that "before" always has a value.
_END: Final = 2**62


def pending(connection: sqlite3.Connection, session_id: str) -> list[InboxRow]:
    rows = connection.execute(
        f"SELECT key, body FROM inbox WHERE {_IN_SESSION} AND pending IS NOT NULL ORDER BY pending",  # noqa: S608 (a text of ours)
        (session_id,),
    )
    return [InboxRow(*row) for row in rows]


def command(connection: sqlite3.Connection, session_id: str, key: str) -> InboxRow | None:
    row = connection.execute(
        f"SELECT key, body FROM inbox WHERE {_IN_SESSION} AND key = ?",  # noqa: S608 (a text of ours)
        (session_id, key),
    ).fetchone()
    return None if row is None else InboxRow(*row)


def events(
    connection: sqlite3.Connection,
    path: Path,
    session_id: str,
    after: int,
    limit: int | None,
    size: int | None,
) -> list[LoggedEvent]:
    cursor = connection.execute(
        f"SELECT seq, body FROM events WHERE {_IN_SESSION} AND seq > ? ORDER BY seq LIMIT ?",  # noqa: S608 (a text of ours)
        (session_id, after, -1 if limit is None else limit),
    )
    # A cursor that is left open in the middle would keep its connection at an old state.
    with closing(cursor):
        page = cursor.fetchall() if size is None else list(_page(cursor, size))
    return [read_event(path, session_id, seq, body) for seq, body in page]


def _page(cursor: Iterable[tuple[int, bytes]], size: int) -> Iterator[tuple[int, bytes]]:
    """Yield rows of about `size` bytes, at least one."""
    for row in cursor:
        yield row
        size -= len(row[1])
        if size <= 0:
            return


def sessions(
    connection: sqlite3.Connection,
    *,
    limit: int,
    before: int | None,
    after: int | None,
    archived: bool | None,
    parent: str | None,
    tag: str | None,
    person: str | None,
) -> list[SessionRow]:
    # For both kinds SQLite reads the index twice and merges the results.
    kinds = (0, 1) if archived is None else (int(archived),)
    select = f"{_SESSION} AND archived = ? AND position < ? AND position > ?"
    matches: list[int | str] = [_END if before is None else before, -1 if after is None else after]
    if parent is not None:
        select += " AND parent = ?"
        matches.append(parent)
    if tag is not None:
        select += " AND no IN (SELECT no FROM tags WHERE key = ?)"
        matches.append(tag_key(tag))
    if person is not None:
        select += " AND person = ?"
        matches.append(person)
    rows = connection.execute(
        " UNION ALL ".join([select] * len(kinds)) + " ORDER BY position DESC LIMIT ?",
        (*(value for kind in kinds for value in (kind, *matches)), limit),
    )
    return [_session_row(row) for row in rows]


def tags(connection: sqlite3.Connection) -> list[TagCount]:
    rows = connection.execute(
        "SELECT min(name), sum(archived = 0), sum(archived = 1) FROM tags JOIN sessions USING (no)"
        " WHERE parent = '' GROUP BY key ORDER BY key"
    )
    return [TagCount(name=row[0], sessions=row[1], archived=row[2]) for row in rows]


def session(connection: sqlite3.Connection, session_id: str) -> SessionRow | None:
    row = connection.execute(f"{_SESSION} AND session_id = ?", (session_id,)).fetchone()
    return None if row is None else _session_row(row)


def _session_row(row: Sequence[Any]) -> SessionRow:
    return SessionRow(
        session_id=row[0],
        title=row[1],
        state=row[2],
        model=row[3],
        workspace=row[4],
        pinned=row[5] == 1,
        archived=row[6] == 1,
        failed=row[7] != "",
        last_seq=row[8],
        created_at=row[9],
        changed_at=row[10],
        position=row[11],
        parent=ParentCall(session_id=row[12], call_id=row[13]) if row[12] else None,
        tags=tuple(sorted(row[14].split("\n"), key=tag_key)) if row[14] else (),
        person=row[15] or None,
    )


def resting(connection: sqlite3.Connection, path: Path, session_id: str) -> RestingSession | None:
    with snapshot(connection):
        row = connection.execute(
            "SELECT no, last_seq FROM sessions s WHERE session_id = ? AND last_seq > 0"
            " AND NOT EXISTS (SELECT 1 FROM open WHERE no = s.no)"
            " AND NOT EXISTS (SELECT 1 FROM inbox WHERE no = s.no AND pending IS NOT NULL)",
            (session_id,),
        ).fetchone()
        if row is None:
            return None
        no, last_seq = row

        def read_events(condition: str) -> list[LoggedEvent]:
            rows = connection.execute(
                f"SELECT seq, body FROM events WHERE no = ? AND {condition}",  # noqa: S608 (a text of ours)
                (no,),
            ).fetchall()
            return [read_event(path, session_id, seq, body) for seq, body in rows]

        settings = read_events("type IN ('session.opened', 'session.changed') ORDER BY seq")
        last_reply = next(
            iter(read_events("type = 'step.replied' ORDER BY seq DESC LIMIT 1")), None
        )
        # Only events after the last reply: a search of the whole log takes as long as reading it.
        since = 0 if last_reply is None else last_reply.seq
        compactions = read_events(
            f"type = 'context.compacted' AND seq > {since} ORDER BY seq DESC LIMIT 1"
        )
        compacted = next(iter(compactions), None)
    return RestingSession(
        seq=last_seq,
        settings=tuple(e for e in settings if isinstance(e, SessionOpened | SessionChanged)),
        last_reply=last_reply if isinstance(last_reply, StepReplied) else None,
        compacted=compacted if isinstance(compacted, ContextCompacted) else None,
    )


def unfinished(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT session_id FROM sessions WHERE no IN (SELECT no FROM open)"
        " OR no IN (SELECT no FROM inbox WHERE pending IS NOT NULL) ORDER BY position, no"
    )
    return [session_id for (session_id,) in rows]


def transcript(
    connection: sqlite3.Connection,
    path: Path,
    session_id: str,
    *,
    before: int | None,
    after: int | None,
    limit: int,
) -> list[TranscriptRow]:
    order = "DESC" if after is None else "ASC"
    with snapshot(connection):
        rows = connection.execute(
            "SELECT t.no, t.seq, t.turn_id, t.source, t.later, e.body FROM transcript t"  # noqa: S608 (a text of ours)
            f" JOIN events e ON e.no = t.no AND e.seq = t.source WHERE t.{_IN_SESSION}"
            f" AND t.seq < ? AND t.seq > ? ORDER BY t.seq {order} LIMIT ?",
            (session_id, _END if before is None else before, after or 0, limit),
        ).fetchall()
        entries: list[TranscriptRow] = []
        for no, seq, turn_id, source, later, body in sorted(rows, key=itemgetter(1)):
            entry = StoredEntry(session_id, no, seq, turn_id, source, later, body)
            entries.append(TranscriptRow(seq=seq, event=read_entry(connection, path, entry)))
    return entries


class StoredEntry(NamedTuple):
    """One row of the table of transcripts, with the body of its source event."""

    session_id: str
    no: int
    seq: int
    turn_id: str | None
    source: int
    later: str
    body: bytes


def read_entry(connection: sqlite3.Connection, path: Path, entry: StoredEntry) -> LoggedEvent:
    """Return the event that this entry shows, with its later changes."""
    later = entry.later.split()
    changes = _events_at(connection, path, entry.session_id, entry.no, later)
    source = read_event(path, entry.session_id, entry.source, entry.body)
    return as_delivered(source, changes, entry.turn_id)


def _events_at(
    connection: sqlite3.Connection, path: Path, session_id: str, no: int, seqs: Sequence[str]
) -> list[LoggedEvent]:
    events: list[LoggedEvent] = []
    for seq in seqs:
        row = connection.execute(
            "SELECT body FROM events WHERE no = ? AND seq = ?", (no, int(seq))
        ).fetchone()
        events.append(read_event(path, session_id, int(seq), row[0]))
    return events


def account(
    connection: sqlite3.Connection, session_id: str
) -> tuple[SessionRow, list[UsageRow]] | None:
    with snapshot(connection):
        row = session(connection, session_id)
        return None if row is None else (row, usage(connection, session_id, None))


def blob(connection: sqlite3.Connection, hash_: str) -> bytes | None:
    row = connection.execute("SELECT data FROM blobs WHERE hash = ?", (hash_,)).fetchone()
    return None if row is None else row[0]


def names_blob(connection: sqlite3.Connection, session_id: str, hash_: str) -> bool:
    row = connection.execute(
        f"SELECT 1 FROM names WHERE hash = ? AND {_IN_SESSION}",  # noqa: S608 (a text of ours)
        (hash_, session_id),
    ).fetchone()
    return row is not None


def outbox(connection: sqlite3.Connection, topic: str, limit: int) -> list[OutboxRow]:
    rows = connection.execute(
        "SELECT id, topic, body FROM outbox WHERE topic = ? ORDER BY place LIMIT ?", (topic, limit)
    )
    return [OutboxRow(*row) for row in rows]


def record(connection: sqlite3.Connection, key: str) -> tuple[int, bytes] | None:
    row = connection.execute("SELECT version, value FROM records WHERE key = ?", (key,)).fetchone()
    return None if row is None else (row[0], row[1])


def records(connection: sqlite3.Connection, prefix: str) -> dict[str, bytes]:
    rows = connection.execute(
        "SELECT key, value FROM records WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key",
        (prefix,),
    )
    return dict(rows)
