"""One step of indexing: what was deleted goes, then so many entries come in.

Each step is one transaction of the index over one state of the store, so whoever else indexes
the same store at the same time takes turns with it. Blocking code.
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
    empty,
    empty_volume,
    get,
    make_small,
    make_volume,
    put,
)
from keryx.store.sqlite.queries import Entry, read_entry
from keryx.store.sqlite.transaction import LAST_POSITION

# About 20 ms of work, after which others may have the thread.
STEP: Final = 500
# A volume is what is indexed again if something in it is deleted: about a second.
VOLUME_ENTRIES: Final = 16_384
VOLUME_LETTERS: Final = 16 * 1024 * 1024

CHANGED: Final = (
    "SELECT no, session_id, last_seq, position FROM sessions WHERE archived = 0 AND position > ?1"
    " UNION ALL"
    " SELECT no, session_id, last_seq, position FROM sessions WHERE archived = 1 AND position > ?1"
    " ORDER BY position LIMIT ?2"
)


class IndexStep:
    """A store that is read, and its index that is written."""

    def __init__(self, path: Path, store: sqlite3.Connection, index: sqlite3.Connection) -> None:
        self._path = path
        self._store = store
        self._index = index

    def step(self, most: int = STEP) -> bool:
        """Index so many entries at most; whether there may be more."""
        with self._together():
            self._forget_what_is_gone()
            done = 0
            while done < most and (again := self._fill_again(most - done)):
                done += again
            is_more = done >= most or self._fill_further(most - done)
        if not is_more:
            make_small(self._index)
        self.purge()
        return is_more

    def forget(self) -> None:
        """Remove what was deleted, and nothing else."""
        with self._together():
            self._forget_what_is_gone()
        self.purge()

    def purge(self) -> None:
        """If something was deleted, empty this file's log, which tells what pages were."""
        if get(self._index, "purge"):
            (is_held_back, *_) = self._index.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not is_held_back:
                put(self._index, "purge", 0)

    @contextmanager
    def _together(self) -> Generator[None]:
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

    # -- what is gone

    def _forget_what_is_gone(self) -> None:
        meta: dict[str, int] = dict(self._store.execute("SELECT name, value FROM meta").fetchall())
        (last,) = self._store.execute(LAST_POSITION).fetchone()
        is_another = get(self._index, "identity") != meta["identity"]
        # A copy of the store from before: what came since is gone, and its numbers come again.
        is_earlier = get(self._index, "position") > max(last or 0, meta["position"])
        if is_another or is_earlier:
            empty(self._index, meta["identity"])
        elif get(self._index, "deleted") != meta["deleted"]:
            self._forget_sessions()
        if get(self._index, "deleted") != meta["deleted"]:
            put(self._index, "deleted", meta["deleted"])

    def _forget_sessions(self) -> None:
        run = self._index.execute
        there = {no for (no,) in self._store.execute("SELECT no FROM sessions")}
        gone = [no for (no,) in run("SELECT no FROM sessions") if no not in there]
        run("CREATE TEMP TABLE IF NOT EXISTS gone (no INTEGER PRIMARY KEY)")
        run("DELETE FROM gone")
        self._index.executemany("INSERT INTO gone VALUES (?)", [(no,) for no in gone])
        touched = run(
            "SELECT volume FROM volumes v WHERE EXISTS (SELECT 1 FROM entries"
            " WHERE id BETWEEN v.first AND v.last AND no IN (SELECT no FROM gone))"
        ).fetchall()
        run("DELETE FROM entries WHERE no IN (SELECT no FROM gone)")
        run("DELETE FROM sessions WHERE no IN (SELECT no FROM gone)")
        for (volume,) in touched:
            empty_volume(self._index, volume)
        if touched:
            put(self._index, "purge", 1)

    # -- what comes in

    def _fill_again(self, most: int) -> int:
        """Volumes that were emptied because something in them was deleted, the last one first."""
        row = self._index.execute(
            "SELECT volume, filled, last FROM volumes WHERE filled < last"
            " ORDER BY volume DESC LIMIT 1"
        ).fetchone()
        if row is None:
            return 0
        volume, filled, last = row
        entries = self._index.execute(
            "SELECT id, no, seq, text FROM entries WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
            (filled, last, most),
        ).fetchall()
        for id_, no, seq, number in entries:
            for entry in self._entries("t.no = ? AND t.seq = ?", (no, seq)):
                for text in self._texts(entry)[number : number + 1]:
                    self._write(volume, id_, text)
        filled = entries[-1][0] if len(entries) == most else last
        self._index.execute("UPDATE volumes SET filled = ? WHERE volume = ?", (filled, volume))
        if filled == last and not self._is_last(volume):
            self._seal(volume)
        return len(entries) or 1

    def _fill_further(self, most: int) -> bool:
        """Sessions that have changed since, in the order in which they did."""
        position = get(self._index, "position")
        changed = self._store.execute(CHANGED, (position, most)).fetchall()
        for no, session_id, last_seq, changed_at in changed:
            row = self._index.execute("SELECT seq FROM sessions WHERE no = ?", (no,)).fetchone()
            after = 0 if row is None else row[0]
            entries = self._entries(
                "t.no = ? AND t.seq > ? ORDER BY t.seq LIMIT ?", (no, after, most), session_id
            )
            for entry in entries:
                most -= max(1, self._add(entry))
            is_whole = most > 0
            seq = last_seq if is_whole else entries[-1].seq
            self._index.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", (no, seq))
            if not is_whole:
                return True
            put(self._index, "position", changed_at)
            most -= 1
            if most <= 0:
                return True
        return False

    def _entries(self, where: str, values: tuple[int, ...], session_id: str = "?") -> list[Entry]:
        rows = self._store.execute(
            "SELECT t.no, t.seq, t.turn_id, t.source, t.later, e.body FROM transcript t"  # noqa: S608 (texts of ours)
            f" JOIN events e ON e.no = t.no AND e.seq = t.source WHERE {where}",
            values,
        ).fetchall()
        return [Entry(session_id, *row) for row in rows]

    def _texts(self, entry: Entry) -> list[str]:
        try:
            event = read_entry(self._store, self._path, entry)
        except StoreError:
            return []  # whoever reads the session is told; the others can be found all the same
        return [text for _, text in texts_of(event)]

    def _add(self, entry: Entry) -> int:
        """Index what one entry of a transcript says; how many texts that were."""
        texts = [(number, text) for number, text in enumerate(self._texts(entry)) if text]
        for number, text in texts:
            volume, id_ = self._place(len(text))
            self._index.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?)", (id_, entry.no, entry.seq, number)
            )
            self._write(volume, id_, text)
        return len(texts)

    def _place(self, letters: int) -> tuple[int, int]:
        """The volume and the number of one more entry."""
        run = self._index.execute
        row = run(
            "SELECT volume, first, last, letters FROM volumes ORDER BY volume DESC LIMIT 1"
        ).fetchone()
        volume, first, last, so_far = row or (0, 1, 0, VOLUME_LETTERS)
        if last - first + 1 >= VOLUME_ENTRIES or so_far >= VOLUME_LETTERS:
            if volume:
                self._seal(volume)
            volume += 1
            make_volume(self._index, volume)
            run("INSERT INTO volumes VALUES (?, ?, ?, ?, 0)", (volume, last + 1, last, last))
        run(
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
        """Nothing more comes into it: make it as small as it can be."""
        self._index.execute(f"INSERT INTO words_{volume} (words_{volume}) VALUES ('optimize')")  # noqa: S608 (a number of ours)

    def _is_last(self, volume: int) -> bool:
        (last,) = self._index.execute("SELECT max(volume) FROM volumes").fetchone()
        return bool(volume == last)
