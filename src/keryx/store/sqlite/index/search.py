"""Searching: the index names entries, the log says whether and how well they fit.

Many searches may run at once, each in a reader's thread with a connection of its own to the
index. A damaged index is no damage of the store. Blocking code.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import StoreError
from keryx.ports.store import Covered, Found
from keryx.store.search.query import Query
from keryx.store.search.searchable_text import texts_of
from keryx.store.sqlite.index.index_file import beside, get, read_index
from keryx.store.sqlite.queries import Entry, read_entry
from keryx.store.sqlite.transaction import LAST_POSITION

# The best are chosen among so many of the last that fit. To weigh all of them would take as long
# as there are many, and of more than these nobody wants an old one.
MOST_WEIGHED: Final = 200
# If a volume has no more entries than this with all the whole words, the log is asked which of
# them also have the word that is only begun. FTS5 would first put together all that begin so.
FEW: Final = 32

_Rank = tuple[int, int, int, int]
_Fitting = tuple[_Rank, Found, str]
_Place = tuple[int, int, int]


class IndexUnreadableError(StoreError):
    """The index is damaged. Nothing is lost by it: it can be made anew."""


class IndexSearch:
    """Searches one store by the index beside it, if there is one."""

    def __init__(self, store: Path) -> None:
        self._path = store
        self._shelf = beside(store)
        self._idle: deque[sqlite3.Connection] = deque()

    def search(self, store: sqlite3.Connection, words: str, limit: int) -> list[Found]:
        """`IndexUnreadableError` if the index is damaged."""
        wanted = Query(words)
        found: list[_Fitting] = []
        with self._index() as index:
            if wanted and index is not None and limit > 0:
                store.execute("BEGIN")
                try:
                    self._weigh(store, self._named(index, wanted), wanted, found)
                finally:
                    store.execute("ROLLBACK")
        found.sort(key=lambda each: each[0])
        return [
            msgspec.structs.replace(each, snippet=wanted.snippet(text))
            for _, each, text in found[:limit]
        ]

    def covered(self, store: sqlite3.Connection) -> Covered:
        (last,) = store.execute(LAST_POSITION).fetchone()
        with self._index() as index:
            if index is None:
                return Covered(position=0, is_whole=not last)
            with self._named_if_unreadable():
                position = get(index, "position")
                row = index.execute("SELECT 1 FROM volumes WHERE filled < last").fetchone()
        return Covered(position=position, is_whole=row is None and position >= (last or 0))

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _named_if_unreadable(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise IndexUnreadableError(
                f"{self._shelf} cannot be searched ({error}); it is made anew when it is removed"
            ) from error

    @contextmanager
    def _index(self) -> Generator[sqlite3.Connection | None]:
        """A connection that sees one state of the index; None if there is none to be read."""
        with self._named_if_unreadable():
            connection = self._idle.pop() if self._idle else read_index(self._shelf)
        if connection is None:
            yield None
            return
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)

    # -- one search

    def _weigh(
        self,
        store: sqlite3.Connection,
        named: Iterator[_Place],
        wanted: Query,
        found: list[_Fitting],
    ) -> None:
        for place in named:
            fitting = self._look_up(store, wanted, place)
            if fitting is not None:
                found.append(fitting)
                if len(found) >= MOST_WEIGHED:
                    return

    def _named(self, index: sqlite3.Connection, wanted: Query) -> Iterator[_Place]:
        """Entries that may fit, the last first."""
        whole = " AND ".join(f'"{term}"' for term in wanted.terms)
        begun = " AND ".join(f'"{term}"*' for term in wanted.beginnings)
        every = " AND ".join(part for part in (whole, begun) if part)
        with self._named_if_unreadable():
            for volume in _volumes(index):
                if whole and begun:
                    few = _ask(index, volume, whole, FEW + 1).fetchall()
                    if len(few) <= FEW:
                        yield from few
                        continue
                yield from _ask(index, volume, every, -1)

    def _look_up(self, store: sqlite3.Connection, wanted: Query, place: _Place) -> _Fitting | None:
        no, seq, number = place
        row = store.execute(
            "SELECT s.session_id, s.position, t.turn_id, t.source, t.later, e.body"
            " FROM transcript t JOIN events e ON e.no = t.no AND e.seq = t.source"
            " JOIN sessions s ON s.no = t.no WHERE t.no = ? AND t.seq = ?",
            (no, seq),
        ).fetchone()
        if row is None:
            return None  # it was undone or deleted since
        session_id, position, turn_id, *rest = row
        try:
            event = read_entry(store, self._path, Entry(session_id, no, seq, turn_id, *rest))
        except StoreError:
            return None  # whoever reads the session is told
        texts = list(texts_of(event))
        kind, text = texts[number] if number < len(texts) else ("message", "")
        closeness = wanted.closeness(text)
        if closeness is None:
            return None
        found = Found(
            session_id=session_id, seq=seq, turn_id=turn_id, kind=kind, at=event.at, snippet=()
        )
        return (closeness, -position, -seq, number), found, text


def _volumes(index: sqlite3.Connection) -> list[int]:
    rows = index.execute("SELECT volume FROM volumes WHERE filled >= first ORDER BY volume DESC")
    return [volume for (volume,) in rows]


def _ask(index: sqlite3.Connection, volume: int, words: str, most: int) -> sqlite3.Cursor:
    return index.execute(
        f"SELECT e.no, e.seq, e.text FROM words_{volume} w CROSS JOIN entries e ON e.id = w.rowid"  # noqa: S608 (a number of ours)
        f" WHERE words_{volume} MATCH ? ORDER BY w.rowid DESC LIMIT ?",
        (words, most),
    )
