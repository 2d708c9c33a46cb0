"""The table of the memories: how changes are applied and searched. Blocking code.

A memory that was replaced or removed stays readable, with the operation that ended it; only
`erase` deletes. Every search has its scope in the query: an empty scope finds nothing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from keryx.memory.changes.conflicts import rival_of
from keryx.ports.memory import Memory, MemoryScope, MemorySource

MAX_TERMS: Final = 32
MERGE: Final = "merge"
"""The name of an operation of a consolidation; `turn_id` names the consolidation."""
_COLUMNS: Final = (
    "id, text, kind, about, trust, profile, workspace, created_at, replaces, state, session_id"
)
_WORD: Final = re.compile(r"\w+")
_IN_SCOPE: Final = "m.profile = ? AND m.profile != '' AND m.workspace IN ('', ?)"


def add(connection: sqlite3.Connection, memory: Memory, *, operation: str) -> bool:
    """Add a memory that an operation made. False: it was added before."""
    source = memory.sources[0] if memory.sources else None
    cursor = connection.execute(
        "INSERT OR IGNORE INTO memories (id, text, kind, about, trust, profile, workspace,"
        " created_at, state, replaces, session_id, turn_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?,"
        " 'active', ?, ?, ?)",
        (
            memory.id,
            memory.text,
            memory.kind,
            memory.about,
            memory.trust,
            memory.profile,
            memory.workspace,
            memory.created_at,
            memory.replaces,
            "" if source is None else source.session_id,
            None if source is None else source.turn_id,
        ),
    )
    if not cursor.rowcount:
        return False
    connection.execute(
        "INSERT INTO words (rowid, text) VALUES (?, ?)", (cursor.lastrowid, memory.text)
    )
    connection.executemany(
        "INSERT OR IGNORE INTO sources VALUES (?, ?, ?, ?, ?)",
        [(memory.id, s.session_id, s.seq, s.turn_id, s.call_id) for s in memory.sources],
    )
    log(connection, operation, "add", memory.created_at, source)
    return True


def end(
    connection: sqlite3.Connection,
    memory_id: str,
    state: str,
    *,
    operation: str,
    at: float,
    source: MemorySource | None = None,
) -> bool:
    """End a memory as `replaced` or `removed`. False: it was not active, so nothing changes."""
    row = connection.execute(
        "SELECT no, text FROM memories WHERE id = ? AND state = 'active'", (memory_id,)
    ).fetchone()
    if row is None:
        return False
    connection.execute(
        "UPDATE memories SET state = ?, ended_by = ? WHERE no = ?", (state, operation, row[0])
    )
    unindex(connection, *row)
    log(connection, operation, state, at, source)
    return True


def activate(connection: sqlite3.Connection, no: int, text: str) -> None:
    """Let a memory that was ended count again."""
    connection.execute("UPDATE memories SET state = 'active', ended_by = NULL WHERE no = ?", (no,))
    connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (no, text))


def erase(
    connection: sqlite3.Connection, ids: Iterable[str], *, with_replaced: bool = True
) -> dict[str, str]:
    """Delete these memories and all that they replaced; return each id with its session."""
    erased: dict[str, str] = {}
    waiting = list(ids)
    while waiting:
        memory_id = waiting.pop()
        row = connection.execute(
            "SELECT no, text, state, replaces, session_id FROM memories WHERE id = ?", (memory_id,)
        ).fetchone()
        if row is None:
            continue
        if row[2] == "active":
            unindex(connection, row[0], row[1])
        if with_replaced:
            merged = connection.execute("SELECT id FROM memories WHERE ended_by = ?", (memory_id,))
            waiting += [name for (name,) in merged.fetchall()]
        connection.execute("DELETE FROM memories WHERE no = ?", (row[0],))
        connection.execute("DELETE FROM sources WHERE memory = ?", (memory_id,))
        connection.execute("DELETE FROM operations WHERE id = ?", (memory_id,))
        erased[memory_id] = row[4]
        if with_replaced and row[3] is not None:
            waiting.append(row[3])
    return erased


# -- reading


def get(connection: sqlite3.Connection, memory_id: str) -> Memory | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM memories WHERE id = ?",  # noqa: S608 (constants of ours)
        (memory_id,),
    ).fetchone()
    return None if row is None else memory_of(connection, row)


def find(
    connection: sqlite3.Connection, scope: MemoryScope, words: str, limit: int
) -> list[Memory]:
    """Return the active memories that have some of these words, the best first."""
    terms = terms_of(words)
    if not terms:
        return []
    query = " OR ".join(f'"{term}"' for term in terms)
    rows = connection.execute(
        f"SELECT {prefixed_columns()} FROM words JOIN memories AS m ON m.no = words.rowid"  # noqa: S608 (constants of ours)
        f" WHERE words MATCH ? AND {_IN_SCOPE} AND m.state = 'active'"
        " ORDER BY words.rank, m.no DESC LIMIT ?",
        (query, scope.profile, scope.workspace, limit),
    ).fetchall()
    return [memory_of(connection, row) for row in rows]


def for_context(
    connection: sqlite3.Connection, scope: MemoryScope, words: str, limit: int
) -> list[Memory]:
    """Return what fits the words, then the newest about the user."""
    best = find(connection, scope, words, limit)
    return [*best, *newest(connection, MemoryScope(scope.profile, ""), limit)]


def newest(
    connection: sqlite3.Connection,
    scope: MemoryScope,
    limit: int,
    *,
    before: float | None = None,
    states: Sequence[str] = ("active",),
) -> list[Memory]:
    """Return the memories of a scope, the newest first."""
    marks = ", ".join("?" * len(states))
    rows = connection.execute(
        f"SELECT {prefixed_columns()} FROM memories AS m WHERE {_IN_SCOPE} AND m.state IN ({marks})"  # noqa: S608 (constants of ours)
        " AND m.created_at < ? ORDER BY m.created_at DESC, m.no DESC LIMIT ?",
        (scope.profile, scope.workspace, *states, before or 1e18, limit),
    ).fetchall()
    return [memory_of(connection, row) for row in rows]


def everything(connection: sqlite3.Connection, profile: str | None = None) -> list[Memory]:
    """Return all active memories, the oldest first; of one profile, or of all."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM memories WHERE state = 'active' AND (?1 IS NULL OR profile = ?1)"  # noqa: S608 (constants of ours)
        " ORDER BY no",
        (profile,),
    ).fetchall()
    return [memory_of(connection, row) for row in rows]


def terms_of(words: str) -> list[str]:
    """Return the words to search for, each of them once."""
    return list(dict.fromkeys(_WORD.findall(words.casefold())))[:MAX_TERMS]


def prefixed_columns() -> str:
    """Return the columns that `memory_of` reads, of the table `m`."""
    return ", ".join(f"m.{name}" for name in _COLUMNS.split(", "))


def memory_of(connection: sqlite3.Connection, row: Sequence[Any]) -> Memory:
    """Return the memory of a row."""
    sources = connection.execute(
        "SELECT session_id, seq, turn_id, call_id FROM sources WHERE memory = ?", (row[0],)
    )
    return Memory(
        id=row[0],
        text=row[1],
        kind=row[2],
        about=row[3],
        trust=row[4],
        profile=row[5],
        workspace=row[6],
        created_at=row[7],
        replaces=row[8],
        state=row[9],
        sources=tuple(MemorySource(*source) for source in sources),
        conflicts_with=rival_of(connection, row[0], row[8]) if row[9] == "active" else None,
    )


def unindex(connection: sqlite3.Connection, no: int, text: str) -> None:
    """Let no search by words find this memory any more."""
    connection.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (no, text))


def log(
    connection: sqlite3.Connection,
    operation: str,
    name: str,
    at: float,
    source: MemorySource | None,
) -> None:
    """Write an operation down; the first name of it counts."""
    session_id, turn_id = ("", None) if source is None else (source.session_id, source.turn_id)
    connection.execute(
        "INSERT OR IGNORE INTO operations VALUES (?, ?, ?, ?, ?)",
        (operation, name, at, session_id, turn_id),
    )
