"""One step of indexing: remove deleted sessions, then add a number of entries.

Each step is one transaction of the index over one state of the store, so two processes that index
the same store take turns. Blocking code.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from keryx.errors import StoreError
from keryx.store.search.searchable_text import texts_of
from keryx.store.search.tokenizer import words_of
from keryx.store.sqlite.index.index_file import (
    clear,
    clear_volume,
    create_volume,
    get_state,
    set_state,
    shrink,
)
from keryx.store.sqlite.queries import StoredEntry, read_entry
from keryx.store.sqlite.transaction import LAST_POSITION

# About 20 ms of work, after which other work may use the thread.
STEP_ENTRIES: Final = 500
# If something in a volume is deleted, the volume is indexed again: about a second.
VOLUME_ENTRIES: Final = 16_384
VOLUME_LETTERS: Final = 16 * 1024 * 1024

CHANGED: Final = (
    "SELECT no, session_id, last_seq, position FROM sessions WHERE archived = 0 AND position > ?1"
    " UNION ALL"
    " SELECT no, session_id, last_seq, position FROM sessions WHERE archived = 1 AND position > ?1"
    " ORDER BY position LIMIT ?2"
)


class IndexStep:
    """Reads one store and writes its index."""

    def __init__(self, path: Path, store: sqlite3.Connection, index: sqlite3.Connection) -> None:
        self._path = path
        self._store = store
        self._index = index

    def step(self, budget: int = STEP_ENTRIES) -> bool:
        """Index at most `budget` entries; return whether there may be more."""
        with self._transactions():
            self._forget_deleted()
            done = 0
            while done < budget and (refilled := self._refill(budget - done)):
                done += refilled
            is_more = done >= budget or self._fill_new(budget - done)
        if not is_more:
            shrink(self._index)
        self.purge()
        return is_more

    def forget(self) -> None:
        """Remove deleted sessions, and index nothing."""
        with self._transactions():
            self._forget_deleted()
        self.purge()

    def purge(self) -> None:
        """After a delete, empty this file's write-ahead log, which still has the old pages."""
        if get_state(self._index, "purge"):
            (is_blocked, *_) = self._index.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not is_blocked:
                set_state(self._index, "purge", 0)

    @contextmanager
    def _transactions(self) -> Generator[None]:
        try:
            self._index.execute("BEGIN IMMEDIATE")
            self._store.execute("BEGIN")
            yield
            self._index.execute("COMMIT")
        finally:
            for connection in (self._store, self._index):
                with suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")

    # -- deleted sessions

    def _forget_deleted(self) -> None:
        meta: dict[str, int] = dict(self._store.execute("SELECT name, value FROM meta").fetchall())
        (last,) = self._store.execute(LAST_POSITION).fetchone()
        is_other_store = get_state(self._index, "identity") != meta["identity"]
        # The store was replaced by an older copy, so its positions are used again.
        is_older_copy = get_state(self._index, "position") > max(last or 0, meta["position"])
        if is_other_store or is_older_copy:
            clear(self._index, meta["identity"])
        elif get_state(self._index, "deleted") != meta["deleted"]:
            self._forget_sessions()
        if get_state(self._index, "deleted") != meta["deleted"]:
            set_state(self._index, "deleted", meta["deleted"])

    def _forget_sessions(self) -> None:
        execute = self._index.execute
        existing = {no for (no,) in self._store.execute("SELECT no FROM sessions")}
        deleted = [no for (no,) in execute("SELECT no FROM sessions") if no not in existing]
        execute("CREATE TEMP TABLE IF NOT EXISTS gone (no INTEGER PRIMARY KEY)")
        execute("DELETE FROM gone")
        self._index.executemany("INSERT INTO gone VALUES (?)", [(no,) for no in deleted])
        touched = execute(
            "SELECT volume FROM volumes v WHERE EXISTS (SELECT 1 FROM entries"
            " WHERE id BETWEEN v.first AND v.last AND no IN (SELECT no FROM gone))"
        ).fetchall()
        execute("DELETE FROM entries WHERE no IN (SELECT no FROM gone)")
        execute("DELETE FROM sessions WHERE no IN (SELECT no FROM gone)")
        for (volume,) in touched:
            clear_volume(self._index, volume)
        if touched:
            set_state(self._index, "purge", 1)

    # -- new entries

    def _refill(self, budget: int) -> int:
        """Index volumes again that were cleared after a delete, the last one first."""
        row = self._index.execute(
            "SELECT volume, filled, last FROM volumes WHERE filled < last"
            " ORDER BY volume DESC LIMIT 1"
        ).fetchone()
        if row is None:
            return 0
        volume, filled, last = row
        entries = self._index.execute(
            "SELECT id, no, seq, text FROM entries WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
            (filled, last, budget),
        ).fetchall()
        for id_, no, seq, number in entries:
            for entry in self._entries("t.no = ? AND t.seq = ?", (no, seq)):
                for text in self._texts(entry)[number : number + 1]:
                    self._write(volume, id_, text)
        filled = entries[-1][0] if len(entries) == budget else last
        self._index.execute("UPDATE volumes SET filled = ? WHERE volume = ?", (filled, volume))
        if filled == last and not self._is_last(volume):
            self._seal(volume)
        return len(entries) or 1

    def _fill_new(self, budget: int) -> bool:
        """Index sessions that have changed, in the order of their changes."""
        position = get_state(self._index, "position")
        changed = self._store.execute(CHANGED, (position, budget)).fetchall()
        for no, session_id, last_seq, changed_at in changed:
            row = self._index.execute("SELECT seq FROM sessions WHERE no = ?", (no,)).fetchone()
            after = 0 if row is None else row[0]
            seq = after
            for entry in self._entries(
                "t.no = ? AND t.seq > ? ORDER BY t.seq LIMIT ?", (no, after, budget), session_id
            ):
                budget -= max(1, self._add(entry))
                seq = entry.seq
            is_complete = budget > 0
            self._index.execute(
                "INSERT OR REPLACE INTO sessions VALUES (?, ?)",
                (no, last_seq if is_complete else seq),
            )
            if not is_complete:
                return True
            set_state(self._index, "position", changed_at)
            budget -= 1
            if budget <= 0:
                return True
        return False

    def _entries(
        self, condition: str, values: tuple[int, ...], session_id: str = "?"
    ) -> Generator[StoredEntry]:
        """Yield one entry at a time: a reply can have megabytes, and they need not all be here."""
        # Undone turns too: they may be restored, and until then no hit of theirs is shown.
        rows = self._store.execute(
            "SELECT t.no, t.seq, t.turn_id, t.source, t.later, e.body FROM"  # noqa: S608 (texts of ours)
            " (SELECT * FROM transcript UNION ALL SELECT * FROM undone) t"
            f" JOIN events e ON e.no = t.no AND e.seq = t.source WHERE {condition}",
            values,
        )
        yield from (StoredEntry(session_id, *row) for row in rows)

    def _texts(self, entry: StoredEntry) -> list[str]:
        try:
            event = read_entry(self._store, self._path, entry)
        except StoreError:
            return []  # reading the session reports the damage; other sessions are still indexed
        return [text for _, text in texts_of(event)]

    def _add(self, entry: StoredEntry) -> int:
        """Index one entry of a transcript; return the number of its texts."""
        texts = [(number, text) for number, text in enumerate(self._texts(entry)) if text]
        for number, text in texts:
            volume, id_ = self._next_entry(len(text))
            self._index.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?)", (id_, entry.no, entry.seq, number)
            )
            self._write(volume, id_, text)
        return len(texts)

    def _next_entry(self, letters: int) -> tuple[int, int]:
        """Return the volume and the number for one more entry."""
        execute = self._index.execute
        row = execute(
            "SELECT volume, first, last, letters FROM volumes ORDER BY volume DESC LIMIT 1"
        ).fetchone()
        volume, first, last, letters_so_far = row or (0, 1, 0, VOLUME_LETTERS)
        if last - first + 1 >= VOLUME_ENTRIES or letters_so_far >= VOLUME_LETTERS:
            if volume:
                self._seal(volume)
            volume += 1
            create_volume(self._index, volume)
            execute("INSERT INTO volumes VALUES (?, ?, ?, ?, 0)", (volume, last + 1, last, last))
        execute(
            "UPDATE volumes SET last = ?1, filled = ?1, letters = letters + ?2 WHERE volume = ?3",
            (last + 1, letters, volume),
        )
        return volume, last + 1

    def _write(self, volume: int, id_: int, text: str) -> None:
        self._index.execute(
            f"INSERT INTO words_{volume} (rowid, words) VALUES (?, ?)",  # noqa: S608 (a number of ours)
            (id_, " ".join(words_of(text))),
        )

    def _seal(self, volume: int) -> None:
        """Optimize a volume that is full."""
        self._index.execute(f"INSERT INTO words_{volume} (words_{volume}) VALUES ('optimize')")  # noqa: S608 (a number of ours)

    def _is_last(self, volume: int) -> bool:
        (last,) = self._index.execute("SELECT max(volume) FROM volumes").fetchone()
        return bool(volume == last)
