"""Saves all that can be read of a damaged store into a new one.

Only the log counts: everything else is projected from it again. A session is saved up to its first
missing event, because later events may depend on the missing one. The old file is only read.
Blocking code; nobody may have the store open meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from keryx.errors import StoreError
from keryx.events import LoggedEvent, decode_logged
from keryx.ports.store import Blob, Commit, records_of
from keryx.store.projections import project
from keryx.store.sqlite.faults import as_store_error
from keryx.store.sqlite.files import open_for_writing
from keryx.store.sqlite.recovery.scan import column, scan_store
from keryx.store.sqlite.transaction import Transaction, set_meta
from keryx.store.sqlite.writes import append, claim


class CutSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session whose last events are lost."""

    session_id: str
    saved: int
    """How many events are saved."""
    lost: int | None
    """How many events are known to be lost; None if the number is unknown, and may be zero."""


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a salvage: what is complete, and what is lost."""

    complete: tuple[str, ...]
    cut: tuple[CutSession, ...]
    lost: tuple[str, ...]
    """Sessions whose ids are known, but nothing of them can be read."""
    unnamed: int
    """The count of lost sessions whose ids are lost too."""
    blobs_lost: tuple[str, ...]
    """The hashes of lost attachments, prompts and results of saved sessions."""
    pages_lost: int
    """How many pages could not be read completely. Some of them may have been empty."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing at all is lost."""
        return not (self.cut or self.lost or self.unnamed or self.blobs_lost or self.pages_lost)


class _ScannedSession(msgspec.Struct, frozen=True):
    """What the scan knows of one session."""

    session_id: str
    no: int
    last_seq: int | None
    """None if the session's own row is lost."""
    position: int


def salvage(path: Path, into: Path) -> Salvaged:
    """Save all that can be read of the store at `path` into a new one; return what is lost.

    Raise `StoreError` if there is no file at `path`, or if there is one at `into`.
    """
    if not path.is_file():
        raise StoreError(f"there is no file at {path}")
    if into.exists():
        raise StoreError(f"{into} is there already; choose another name for the repaired store")
    try:
        scan, pages_lost = scan_store(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    try:
        with closing(scan), closing(open_for_writing(into, "normal")) as target:
            target.execute("BEGIN IMMEDIATE")
            salvaged = _Salvage(scan, target).run(pages_lost)
            target.execute("COMMIT")
    except sqlite3.Error as error:
        raise as_store_error(into, error) from error
    return salvaged


class _Salvage:
    """Writes the rows of the scan into the new store."""

    def __init__(self, scan: sqlite3.Connection, target: sqlite3.Connection) -> None:
        self._scan = scan
        self._target = target
        self._blobs_lost: set[str] = set()

    def run(self, pages_lost: int) -> Salvaged:
        self._continue_counters()
        complete: list[str] = []
        cut: list[CutSession] = []
        lost: list[str] = []
        transaction = Transaction(self._target)
        for session in self._sessions():
            events = list(self._log(session))
            if events or session.last_seq == 0:
                self._write_session(transaction, session, events)
            if not events:
                lost += [session.session_id] * (session.last_seq != 0)
            elif len(events) == session.last_seq:
                complete.append(session.session_id)
            else:
                missing = self._last_seq(session) - len(events)
                cut.append(
                    CutSession(
                        session_id=session.session_id, saved=len(events), lost=missing or None
                    )
                )
        self._write_records(lost)
        return Salvaged(
            complete=tuple(complete),
            cut=tuple(cut),
            lost=tuple(lost),
            unnamed=self._count_unnamed(),
            blobs_lost=tuple(sorted(self._blobs_lost)),
            pages_lost=pages_lost,
        )

    def _sessions(self) -> list[_ScannedSession]:
        """Return all sessions with an id, in the order of their last change if it is known."""
        rows = self._scan.execute(
            "SELECT session_id, no, last_seq, position FROM sessions UNION ALL"
            " SELECT session_id, no, NULL, 0 FROM events e WHERE NOT EXISTS"
            " (SELECT 1 FROM sessions s WHERE s.session_id = e.session_id) GROUP BY session_id"
            " ORDER BY position, no"
        )
        return [_ScannedSession(*row) for row in rows.fetchall()]

    def _log(self, session: _ScannedSession) -> Iterator[LoggedEvent]:
        """Yield the events of a session up to the first missing one."""
        rows = self._scan.execute(
            "SELECT seq, body FROM events WHERE no = ? AND session_id = ? ORDER BY seq",
            (session.no, session.session_id),
        )
        for expected, (seq, body) in enumerate(rows, 1):
            if seq != expected:
                return
            yield decode_logged(body)

    def _last_seq(self, session: _ScannedSession) -> int:
        row = self._scan.execute("SELECT seq FROM traces WHERE no = ?", (session.no,)).fetchone()
        return max(session.last_seq or 0, row[0] if row else 0)

    def _count_unnamed(self) -> int:
        (count,) = self._scan.execute(
            "SELECT count(*) FROM traces WHERE no NOT IN (SELECT no FROM sessions)"
            " AND no NOT IN (SELECT no FROM events)"
        ).fetchone()
        return int(count)

    def _continue_counters(self) -> None:
        # No position and no epoch may be used twice.
        for name, table_column in (("position", "position"), ("floor", "epoch")):
            (value,) = self._scan.execute(
                f"SELECT max(coalesce((SELECT max({table_column}) FROM sessions), 0),"  # noqa: S608 (names of ours)
                " coalesce((SELECT value FROM meta WHERE name = ?), 0))",
                (name,),
            ).fetchone()
            set_meta(self._target, name, value)

    def _write_records(self, lost_sessions: list[str]) -> None:
        """Write all records except those of lost sessions."""
        rows = self._scan.execute("SELECT key, version, value FROM records").fetchall()
        prefixes = tuple(map(records_of, lost_sessions))
        records = [row for row in rows if not str(row[0]).startswith(prefixes)]
        self._target.executemany("INSERT INTO records VALUES (?, ?, ?)", records)

    def _write_session(
        self, transaction: Transaction, session: _ScannedSession, events: list[LoggedEvent]
    ) -> None:
        epoch = claim(transaction, session.session_id)
        if events:
            names = column(
                self._scan.execute("SELECT hash FROM names WHERE no = ?", (session.no,)).fetchall()
            )
            blobs = tuple(self._blobs({*names, *project(events, "").blobs}))
            append(
                transaction,
                Commit(
                    session_id=session.session_id, epoch=epoch, events=tuple(events), blobs=blobs
                ),
            )
        (no,) = self._target.execute(
            "SELECT no FROM sessions WHERE session_id = ?", (session.session_id,)
        ).fetchone()
        for table, columns in (
            ("inbox", "key, body, pending"),
            ("claims", "name"),
        ):
            rows = self._scan.execute(
                f"SELECT ?, {columns} FROM {table} WHERE no = ?",  # noqa: S608 (names of ours)
                (no, session.no),
            ).fetchall()
            placeholders = ", ".join("?" * (columns.count(",") + 2))
            self._target.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({placeholders})", rows)  # noqa: S608 (names of ours)
        rows = self._scan.execute(
            "SELECT id, ?, topic, body FROM outbox WHERE no = ? ORDER BY place", (no, session.no)
        ).fetchall()
        self._target.executemany(
            "INSERT OR IGNORE INTO outbox (id, no, topic, body) VALUES (?, ?, ?, ?)", rows
        )

    def _blobs(self, hashes: set[str]) -> Iterator[Blob]:
        for hash_ in sorted(hashes):
            row = self._scan.execute("SELECT data FROM blobs WHERE hash = ?", (hash_,)).fetchone()
            if row is None:
                self._blobs_lost.add(hash_)
            else:
                yield Blob(hash_, row[0])
