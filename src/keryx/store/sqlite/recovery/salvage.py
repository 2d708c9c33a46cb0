"""A damaged store, read as far as it can be read, into a new one.

The log is all that counts: everything else is made of it again. A session is kept up to the first
of its facts that is missing, because nothing that comes after a gap can be trusted to follow. The
old file is only read. Blocking code; nobody may have the store open meanwhile.
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
from keryx.store.sqlite.recovery.scan import column, find
from keryx.store.sqlite.transaction import Transaction, set_meta
from keryx.store.sqlite.writes import append, claim


class CutSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of which the end is lost."""

    session_id: str
    kept: int
    """How many facts are kept."""
    lost: int | None
    """How many are lost, as far as anything tells; None if nothing does, and it may be none."""


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a damaged store."""

    whole: tuple[str, ...]
    cut: tuple[CutSession, ...]
    lost: tuple[str, ...]
    """Sessions that are known to have been, and of which nothing can be read."""
    nameless: int
    """So many more were, but even their names are lost."""
    blobs_lost: tuple[str, ...]
    """Attachments, prompts or results that kept sessions name, by their hashes."""
    pages_lost: int
    """How many pages of the file could not be read as a whole. Not all of them held something."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing at all is lost."""
        return not (self.cut or self.lost or self.nameless or self.blobs_lost or self.pages_lost)


class _Group(msgspec.Struct, frozen=True):
    """What was found of one session."""

    session_id: str
    no: int
    last_seq: int | None
    """None if its row in the list is lost."""
    position: int


def salvage(path: Path, into: Path) -> Salvaged:
    """Read what can be read of the store at `path` into a new one; say what is lost.

    `StoreError` if there is nothing at `path` or something at `into`.
    """
    if not path.is_file():
        raise StoreError(f"there is no file at {path}")
    if into.exists():
        raise StoreError(f"{into} is there already; choose another name for the repaired store")
    try:
        found, pages_lost = find(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    try:
        with closing(found), closing(open_for_writing(into, "normal")) as made:
            made.execute("BEGIN IMMEDIATE")
            salvaged = _Salvage(found, made).run(pages_lost)
            made.execute("COMMIT")
    except sqlite3.Error as error:
        raise as_store_error(into, error) from error
    return salvaged


class _Salvage:
    """From what was found to what is made."""

    def __init__(self, found: sqlite3.Connection, made: sqlite3.Connection) -> None:
        self._found = found
        self._made = made
        self._blobs_lost: set[str] = set()

    def run(self, pages_lost: int) -> Salvaged:
        self._go_on_counting()
        whole: list[str] = []
        cut: list[CutSession] = []
        lost: list[str] = []
        transaction = Transaction(self._made)
        for group in self._groups():
            events = list(self._log(group))
            if events or group.last_seq == 0:
                self._keep(transaction, group, events)
            if not events:
                lost += [group.session_id] * (group.last_seq != 0)
            elif len(events) == group.last_seq:
                whole.append(group.session_id)
            else:
                missing = self._last_seq(group) - len(events)
                cut.append(
                    CutSession(session_id=group.session_id, kept=len(events), lost=missing or None)
                )
        self._keep_records(lost)
        return Salvaged(
            whole=tuple(whole),
            cut=tuple(cut),
            lost=tuple(lost),
            nameless=self._nameless(),
            blobs_lost=tuple(sorted(self._blobs_lost)),
            pages_lost=pages_lost,
        )

    def _groups(self) -> list[_Group]:
        """All sessions with a name, in the order of their last change as far as it is known."""
        rows = self._found.execute(
            "SELECT session_id, no, last_seq, position FROM sessions UNION ALL"
            " SELECT session_id, no, NULL, 0 FROM events e WHERE NOT EXISTS"
            " (SELECT 1 FROM sessions s WHERE s.session_id = e.session_id) GROUP BY session_id"
            " ORDER BY position, no"
        )
        return [_Group(*row) for row in rows.fetchall()]

    def _log(self, group: _Group) -> Iterator[LoggedEvent]:
        """Its facts up to the first that is missing."""
        rows = self._found.execute(
            "SELECT seq, body FROM events WHERE no = ? AND session_id = ? ORDER BY seq",
            (group.no, group.session_id),
        )
        for expected, (seq, body) in enumerate(rows, 1):
            if seq != expected:
                return
            yield decode_logged(body)

    def _last_seq(self, group: _Group) -> int:
        row = self._found.execute("SELECT seq FROM traces WHERE no = ?", (group.no,)).fetchone()
        return max(group.last_seq or 0, row[0] if row else 0)

    def _nameless(self) -> int:
        (count,) = self._found.execute(
            "SELECT count(*) FROM traces WHERE no NOT IN (SELECT no FROM sessions)"
            " AND no NOT IN (SELECT no FROM events)"
        ).fetchone()
        return int(count)

    def _go_on_counting(self) -> None:
        # No position and no epoch that was ever given comes again.
        for name, table_column in (("position", "position"), ("floor", "epoch")):
            (value,) = self._found.execute(
                f"SELECT max(coalesce((SELECT max({table_column}) FROM sessions), 0),"  # noqa: S608 (names of ours)
                " coalesce((SELECT value FROM meta WHERE name = ?), 0))",
                (name,),
            ).fetchone()
            set_meta(self._made, name, value)

    def _keep_records(self, gone: list[str]) -> None:
        """All but those that belong to sessions that are lost."""
        rows = self._found.execute("SELECT key, version, value FROM records").fetchall()
        begin = tuple(map(records_of, gone))
        kept = [row for row in rows if not str(row[0]).startswith(begin)]
        self._made.executemany("INSERT INTO records VALUES (?, ?, ?)", kept)

    def _keep(self, transaction: Transaction, group: _Group, events: list[LoggedEvent]) -> None:
        epoch = claim(transaction, group.session_id)
        if events:
            names = column(
                self._found.execute("SELECT hash FROM names WHERE no = ?", (group.no,)).fetchall()
            )
            blobs = tuple(self._blobs({*names, *project(events, "").blobs}))
            append(
                transaction,
                Commit(session_id=group.session_id, epoch=epoch, events=tuple(events), blobs=blobs),
            )
        (no,) = self._made.execute(
            "SELECT no FROM sessions WHERE session_id = ?", (group.session_id,)
        ).fetchone()
        for table, columns in (
            ("inbox", "key, body, pending"),
            ("claims", "name"),
        ):
            rows = self._found.execute(
                f"SELECT ?, {columns} FROM {table} WHERE no = ?",  # noqa: S608 (names of ours)
                (no, group.no),
            ).fetchall()
            marks = ", ".join("?" * (columns.count(",") + 2))
            self._made.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)  # noqa: S608 (names of ours)
        rows = self._found.execute(
            "SELECT id, ?, topic, body FROM outbox WHERE no = ? ORDER BY place", (no, group.no)
        ).fetchall()
        self._made.executemany(
            "INSERT OR IGNORE INTO outbox (id, no, topic, body) VALUES (?, ?, ?, ?)", rows
        )

    def _blobs(self, hashes: set[str]) -> Iterator[Blob]:
        for hash_ in sorted(hashes):
            row = self._found.execute("SELECT data FROM blobs WHERE hash = ?", (hash_,)).fetchone()
            if row is None:
                self._blobs_lost.add(hash_)
            else:
                yield Blob(hash_, row[0])
