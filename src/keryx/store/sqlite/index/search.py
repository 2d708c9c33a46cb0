"""Searching: the index names candidates, the log says whether and how well they match.

Many searches may run at once, each in a reader's thread with a connection of its own to the
index. A damaged index does not mean that the store is damaged. Blocking code.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from keryx.errors import StoreError
from keryx.ports.search import Covered, Found
from keryx.store.search.query import Query
from keryx.store.search.searchable_text import texts_of
from keryx.store.sqlite.index.index_file import get_state, index_path, read_index
from keryx.store.sqlite.queries import StoredEntry, read_entry
from keryx.store.sqlite.transaction import LAST_POSITION

# The best hits are chosen among so many of the newest matches. To rank all matches would take too
# long when there are many, and then people do not need the old ones.
MAX_MATCHES: Final = 200
# If a volume has at most so many entries with all full words, the log is asked which of them also
# have the prefixes. FTS5 would first collect all words with that prefix.
FEW_CANDIDATES: Final = 32

_Rank = tuple[int, int, int, int]
_Match = tuple[_Rank, Found, str]
_Candidate = tuple[int, int, int]


class IndexUnreadableError(StoreError):
    """The index is damaged. Nothing is lost: it can be rebuilt."""


class IndexSearch:
    """Searches one store by the index beside it, if there is one."""

    def __init__(self, store: Path) -> None:
        self._path = store
        self._index_path = index_path(store)
        self._idle: deque[sqlite3.Connection] = deque()

    def search(
        self, store: sqlite3.Connection, words: str, limit: int, person: str | None
    ) -> list[Found]:
        """Return the best hits. Raise `IndexUnreadableError` if the index is damaged."""
        query = Query(words)
        matches: list[_Match] = []
        with self._index() as index:
            if query and index is not None and limit > 0:
                store.execute("BEGIN")
                try:
                    chosen = None if person is None else _sessions_of(store, person)
                    self._collect(store, self._candidates(index, query, chosen), query, matches)
                finally:
                    store.execute("ROLLBACK")
        matches.sort(key=lambda match: match[0])
        return [
            msgspec.structs.replace(hit, snippet=query.snippet(text))
            for _, hit, text in matches[:limit]
        ]

    def covered(self, store: sqlite3.Connection) -> Covered:
        (last,) = store.execute(LAST_POSITION).fetchone()
        with self._index() as index:
            if index is None:
                return Covered(position=0, is_whole=not last)
            with self._index_errors():
                position = get_state(index, "position")
                row = index.execute("SELECT 1 FROM volumes WHERE filled < last").fetchone()
        return Covered(position=position, is_whole=row is None and position >= (last or 0))

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _index_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise IndexUnreadableError(
                f"{self._index_path} cannot be searched ({error}); "
                "remove the file, and it is built again"
            ) from error

    @contextmanager
    def _index(self) -> Generator[sqlite3.Connection | None]:
        """Yield a connection that sees one state of the index; None if there is no index."""
        with self._index_errors():
            connection = self._idle.pop() if self._idle else read_index(self._index_path)
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

    def _collect(
        self,
        store: sqlite3.Connection,
        candidates: Iterator[_Candidate],
        query: Query,
        matches: list[_Match],
    ) -> None:
        for candidate in candidates:
            match = self._check(store, query, candidate)
            if match is not None:
                matches.append(match)
                if len(matches) >= MAX_MATCHES:
                    return

    def _candidates(
        self, index: sqlite3.Connection, query: Query, chosen: str | None
    ) -> Iterator[_Candidate]:
        """Yield entries of the chosen sessions that may match, the newest first."""
        terms = " AND ".join(f'"{term}"' for term in query.terms)
        prefixes = " AND ".join(f'"{term}"*' for term in query.prefixes)
        all_words = " AND ".join(part for part in (terms, prefixes) if part)
        with self._index_errors():
            for volume in _volumes(index):
                if terms and prefixes:
                    candidates = _lookup(
                        index, volume, terms, chosen, FEW_CANDIDATES + 1
                    ).fetchall()
                    if len(candidates) <= FEW_CANDIDATES:
                        yield from candidates
                        continue
                yield from _lookup(index, volume, all_words, chosen, -1)

    def _check(
        self, store: sqlite3.Connection, query: Query, candidate: _Candidate
    ) -> _Match | None:
        no, seq, number = candidate
        row = store.execute(
            "SELECT s.session_id, s.position, t.turn_id, t.source, t.later, e.body"
            " FROM transcript t JOIN events e ON e.no = t.no AND e.seq = t.source"
            " JOIN sessions s ON s.no = t.no WHERE t.no = ? AND t.seq = ?",
            (no, seq),
        ).fetchone()
        if row is None:
            return None  # it was undone or deleted since
        session_id, position, turn_id, *columns = row
        try:
            event = read_entry(
                store, self._path, StoredEntry(session_id, no, seq, turn_id, *columns)
            )
        except StoreError:
            return None  # reading the session reports the damage
        texts = list(texts_of(event))
        kind, text = texts[number] if number < len(texts) else ("message", "")
        rank = query.rank(text)
        if rank is None:
            return None
        match = Found(
            session_id=session_id, seq=seq, turn_id=turn_id, kind=kind, at=event.at, snippet=()
        )
        return (rank, -position, -seq, number), match, text


def _volumes(index: sqlite3.Connection) -> list[int]:
    rows = index.execute("SELECT volume FROM volumes WHERE filled >= first ORDER BY volume DESC")
    return [volume for (volume,) in rows]


def _sessions_of(store: sqlite3.Connection, person: str) -> str:
    """Return the numbers of the sessions that are for a person, as a JSON array."""
    rows = store.execute("SELECT no FROM sessions WHERE person = ? AND person != ''", (person,))
    return json.dumps([no for (no,) in rows])


def _lookup(
    index: sqlite3.Connection, volume: int, words: str, chosen: str | None, limit: int
) -> sqlite3.Cursor:
    """Return the entries with these words; `chosen`: the numbers of the sessions, None: of all."""
    of_sessions = "" if chosen is None else " AND e.no IN (SELECT value FROM json_each(?2))"
    return index.execute(
        f"SELECT e.no, e.seq, e.text FROM words_{volume} w CROSS JOIN entries e ON e.id = w.rowid"  # noqa: S608 (a number and a text of ours)
        f" WHERE words_{volume} MATCH ?1{of_sessions} ORDER BY w.rowid DESC LIMIT ?3",
        (words, chosen, limit),
    )
