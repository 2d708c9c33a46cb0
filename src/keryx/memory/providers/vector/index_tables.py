"""The tables of the index: texts, their words, and their vectors. Blocking code.

The file follows from the memories and from what was delivered. Every query has its scope inside;
a row that is removed is deleted, with its words and its vector.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from keryx.events import Trust
from keryx.memory.memory_file import Schema
from keryx.ports.embedder import Embedder
from keryx.ports.memory import Memory, MemoryItem, MemoryScope, TurnMemory, Withdrawal

Kind = Literal["memory", "user", "assistant"]
"""What a text is: a memory, or who said it in a turn."""
Part = Literal["all", "memories", "turns"]
"""What is searched."""

INDEX: Final = Schema(
    1,
    """
CREATE TABLE texts (
  no INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, id TEXT NOT NULL,
  kind TEXT NOT NULL, text TEXT NOT NULL, trust TEXT NOT NULL, profile TEXT NOT NULL,
  workspace TEXT NOT NULL, session_id TEXT NOT NULL, turn_id TEXT, at REAL NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting'
) STRICT;
CREATE INDEX texts_waiting ON texts (no) WHERE state = 'waiting';
CREATE INDEX texts_by_turn ON texts (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX texts_by_session ON texts (session_id) WHERE turn_id IS NOT NULL;
CREATE TABLE models (
  no INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, dimension INTEGER NOT NULL,
  digest TEXT NOT NULL, UNIQUE (name, dimension, digest)
) STRICT;
CREATE TABLE vectors (
  place INTEGER PRIMARY KEY AUTOINCREMENT, text_no INTEGER NOT NULL UNIQUE, model INTEGER NOT NULL,
  profile TEXT NOT NULL, workspace TEXT NOT NULL, is_turn INTEGER NOT NULL, vector BLOB NOT NULL
) STRICT;
CREATE INDEX vectors_by_scope ON vectors (profile, workspace, model, place);
CREATE TABLE removals (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, text_no INTEGER NOT NULL
) STRICT;
CREATE TABLE filled (once INTEGER PRIMARY KEY) STRICT;
CREATE VIRTUAL TABLE words USING fts5 (
  text, content = 'texts', content_rowid = 'no', tokenize = "unicode61 remove_diacritics 2"
);
CREATE VIRTUAL TABLE terms USING fts5vocab (words, row);
""",
    advice=(
        "check the disk and the rights of the file; if it is damaged, move vectors.db, "
        "vectors.db-wal and vectors.db-shm away together and start Keryx again: the index is made "
        "anew from the memories, without the earlier turns"
    ),
)

MAX_TERMS: Final = 32
# Ranking takes as long as there are texts with the words. Words that would make it more than these
# are left out: they are in so many texts that they say little.
MAX_RANKED: Final = 5_000
_WORD: Final = re.compile(r"\w+")
_SCOPE: Final = "t.profile = ? AND t.profile != '' AND t.workspace IN ('', ?)"
_PARTS: Final = {
    "all": "",
    "memories": " AND t.turn_id IS NULL",
    "turns": " AND t.turn_id IS NOT NULL",
}
_COLUMNS: Final = "t.no, t.id, t.kind, t.text, t.trust, t.session_id, t.turn_id, t.at"


class IndexedText(msgspec.Struct, frozen=True):
    """A row of the index."""

    no: int
    id: str
    kind: Kind
    text: str
    trust: Trust
    session_id: str
    turn_id: str | None
    at: float


# -- changes


def apply(connection: sqlite3.Connection, items: Iterable[MemoryItem]) -> None:
    """Apply items in order. What is there already changes nothing."""
    for item in items:
        match item:
            case Memory():
                _put_memory(connection, item)
            case TurnMemory():
                _put_turn(connection, item)
            case Withdrawal():
                _remove(connection, item.items)


def fill(connection: sqlite3.Connection, memories: Iterable[Memory]) -> None:
    """Take all memories into a new file, once."""
    apply(connection, memories)
    connection.execute("INSERT OR IGNORE INTO filled VALUES (0)")


def _put_memory(connection: sqlite3.Connection, memory: Memory) -> None:
    session_id = memory.sources[0].session_id if memory.sources else ""
    row = (memory.id, memory.id, "memory", memory.text, memory.trust, memory.profile)
    _put(connection, (*row, memory.workspace, session_id, None, memory.created_at))


def _put_turn(connection: sqlite3.Connection, turn: TurnMemory) -> None:
    for text in turn.texts:
        # A person's words are theirs. Nobody noted what an answer was made from: so like a page.
        trust = "person" if text.by == "user" else "page"
        # Only within its session is the id of a message the only one.
        row = (f"{turn.id}/{text.id}", text.id, text.by, text.text, trust, turn.profile)
        _put(connection, (*row, turn.workspace, turn.session_id, turn.id, turn.at))


def _put(connection: sqlite3.Connection, row: Sequence[object]) -> None:
    cursor = connection.execute(
        "INSERT OR IGNORE INTO texts (key, id, kind, text, trust, profile, workspace, session_id,"
        " turn_id, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    if cursor.rowcount:
        connection.execute(
            "INSERT INTO words (rowid, text) VALUES (?, ?)", (cursor.lastrowid, row[3])
        )
    else:  # a person may have confirmed it meanwhile
        connection.execute("UPDATE texts SET trust = ? WHERE key = ?", (row[4], row[0]))


def _remove(connection: sqlite3.Connection, items: Sequence[str]) -> None:
    rows = [row for item in items for row in _rows_of(connection, item)]
    for no, text in rows:
        connection.execute(
            "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (no, text)
        )
        connection.execute("DELETE FROM vectors WHERE text_no = ?", (no,))
        connection.execute("DELETE FROM texts WHERE no = ?", (no,))
        connection.execute("INSERT INTO removals (text_no) VALUES (?)", (no,))


def _rows_of(connection: sqlite3.Connection, item: str) -> list[tuple[int, str]]:
    """Return the rows of a memory, of a turn, or of all turns of a session."""
    return connection.execute(
        "SELECT no, text FROM texts WHERE key = ?1 UNION SELECT no, text FROM texts WHERE"
        " turn_id = ?1 UNION SELECT no, text FROM texts WHERE session_id = ?1 AND"
        " turn_id IS NOT NULL",
        (item,),
    ).fetchall()


# -- vectors


def use_model(connection: sqlite3.Connection, embedder: Embedder) -> int:
    """Return the number of a model. Texts with a vector of another one wait for a new vector."""
    row = (embedder.name, embedder.dimension, embedder.digest)
    connection.execute(
        "INSERT OR IGNORE INTO models (name, dimension, digest) VALUES (?, ?, ?)", row
    )
    (model,) = connection.execute(
        "SELECT no FROM models WHERE name = ? AND dimension = ? AND digest = ?", row
    ).fetchone()
    connection.execute(
        "UPDATE texts SET state = 'waiting' WHERE state = 'failed' OR no IN"
        " (SELECT text_no FROM vectors WHERE model != ?)",
        (model,),
    )
    return int(model)


def waiting(connection: sqlite3.Connection, limit: int) -> list[tuple[int, str]]:
    """Return texts that have no vector yet, the newest first: they are asked for soonest."""
    return connection.execute(
        "SELECT no, text FROM texts WHERE state = 'waiting' ORDER BY no DESC LIMIT ?", (limit,)
    ).fetchall()


def put_vectors(
    connection: sqlite3.Connection, model: int, vectors: Sequence[tuple[int, bytes]]
) -> None:
    """Store vectors of texts that are still there."""
    for no, vector in vectors:
        connection.execute("DELETE FROM vectors WHERE text_no = ? AND model != ?", (no, model))
        # Another process of this home may have been faster.
        connection.execute(
            "INSERT OR IGNORE INTO vectors (text_no, model, profile, workspace, is_turn, vector)"
            " SELECT no, ?, profile, workspace, turn_id IS NOT NULL, ? FROM texts WHERE no = ?",
            (model, vector, no),
        )
        connection.execute("UPDATE texts SET state = 'embedded' WHERE no = ?", (no,))


def set_failed(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Find these texts by their words alone, until the model is loaded anew."""
    rows = [(no,) for no in numbers]
    connection.executemany("UPDATE texts SET state = 'failed' WHERE no = ?", rows)


# -- reading


def is_filled(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM filled").fetchone() is not None


def last_removal(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT ifnull(max(seq), 0) FROM removals").fetchone()[0])


def removed_since(connection: sqlite3.Connection, seq: int) -> list[int]:
    """Return the numbers of the texts that were removed after this removal."""
    rows = connection.execute("SELECT text_no FROM removals WHERE seq > ?", (seq,))
    return [no for (no,) in rows]


def get(
    connection: sqlite3.Connection, scope: MemoryScope, numbers: Sequence[int]
) -> list[IndexedText]:
    """Return these texts of a scope, in this order; those that are gone are left out."""
    texts: list[IndexedText] = []
    for no in numbers:
        row = connection.execute(
            f"SELECT {_COLUMNS} FROM texts AS t WHERE t.no = ? AND {_SCOPE}",  # noqa: S608 (constants of ours)
            (no, scope.profile, scope.workspace),
        ).fetchone()
        if row is not None:
            texts.append(IndexedText(*row))
    return texts


def find_words(
    connection: sqlite3.Connection,
    scope: MemoryScope,
    words: str,
    limit: int,
    part: Part,
    *,
    or_newest: bool = False,
) -> list[int]:
    """Return the texts that have some of these words, the best by BM25 first.

    `or_newest`: if all words are in a great many texts, the newest texts with the rarest word.
    """
    counts = _counts(connection, words)
    terms = _telling(counts)
    order = "words.rank, t.no DESC"
    if not terms and or_newest:
        terms, order = [term for term in counts if counts[term]][:1], "words.rowid DESC"
    if not terms or not scope.profile:
        return []
    rows = connection.execute(
        "SELECT t.no FROM words JOIN texts AS t ON t.no = words.rowid"  # noqa: S608 (constants of ours)
        f" WHERE words MATCH ? AND {_SCOPE}{_PARTS[part]} ORDER BY {order} LIMIT ?",
        (" OR ".join(f'"{term}"' for term in terms), scope.profile, scope.workspace, limit),
    )
    return [no for (no,) in rows]


def _counts(connection: sqlite3.Connection, words: str) -> dict[str, int]:
    """Return in how many texts each of these words is, the rarest first."""
    counts: dict[str, int] = {}
    for term in list(dict.fromkeys(_WORD.findall(words.lower())))[:MAX_TERMS]:
        row = connection.execute(
            "SELECT doc FROM terms WHERE term = ?", (_without_accents(term),)
        ).fetchone()
        counts[term] = 0 if row is None else int(row[0])
    return dict(sorted(counts.items(), key=lambda count: count[1]))


def _without_accents(term: str) -> str:
    """Return a word as the index has it."""
    return "".join(
        letter
        for letter in unicodedata.normalize("NFD", term)
        if unicodedata.category(letter) != "Mn"
    )


def _telling(counts: Mapping[str, int]) -> list[str]:
    """Return the rarest words, as many as can be ranked; none if the rarest has too many texts."""
    sums = itertools.accumulate(counts.values())
    terms = [term for term, texts in zip(counts, sums, strict=True) if texts <= MAX_RANKED]
    # Without any text, the others decide.
    return terms if any(counts[term] for term in terms) or len(terms) == len(counts) else []


def remaining(connection: sqlite3.Connection, items: Iterable[str]) -> list[str]:
    return [item for item in items if _rows_of(connection, item)]
