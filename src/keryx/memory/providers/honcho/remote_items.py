"""What of ours is at Honcho: a table in the file of the memories.

Honcho's conclusions have no room for an id of ours. So each one that is confirmed is written down
here with its id there. Only digests of texts are stored: an erased text must not stay.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeVar

import msgspec

from keryx.decoding import convert
from keryx.events import Trust
from keryx.memory import memories
from keryx.memory.memory_file import MemoryFile
from keryx.ports.memory import Memory

T = TypeVar("T")

EntryKind = Literal["conclusion", "turn", "unknown", "unknown turn"]
"""unknown: a conclusion, or a turn, that may be there, and nobody can find out."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS honcho_items (
  item TEXT PRIMARY KEY, kind TEXT NOT NULL, remote TEXT NOT NULL, remote_workspace TEXT NOT NULL,
  remote_session TEXT NOT NULL, session_id TEXT NOT NULL, workspace TEXT NOT NULL,
  trust TEXT NOT NULL, at REAL NOT NULL, digest BLOB NOT NULL, resent_at REAL,
  ended INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS honcho_by_remote ON honcho_items (remote_workspace, remote);
CREATE INDEX IF NOT EXISTS honcho_by_session ON honcho_items (remote_workspace, remote_session)
"""
_COLUMNS: Final = (
    "item, kind, remote, remote_workspace, remote_session, session_id, workspace, trust, at,"
    " digest, resent_at, ended"
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One item of ours at Honcho."""

    item: str
    kind: EntryKind
    remote: str
    """The id of the conclusion there; empty for a turn."""
    remote_workspace: str
    remote_session: str
    session_id: str
    workspace: str
    """The workspace that it is about; of a turn, that of its session."""
    trust: Trust
    at: float
    digest: bytes
    resent_at: float | None = None
    """When it was sent once more: its first copy may still turn up."""
    ended: bool = False
    """Whether it was withdrawn, and cannot be deleted there."""

    @property
    def is_turn(self) -> bool:
        return self.kind in ("turn", "unknown turn")


class RemoteItems:
    """The table, through the file of the memories."""

    def __init__(self, file: MemoryFile) -> None:
        self._file = file
        self._has_table = False

    async def add(self, entries: Sequence[Entry]) -> None:
        if entries:
            await self._write(lambda connection: _add(connection, entries))

    async def remove(self, items: Sequence[str]) -> None:
        await self._write(
            lambda connection: connection.executemany(
                "DELETE FROM honcho_items WHERE item = ?", [(item,) for item in items]
            )
        )

    async def end(self, items: Sequence[str]) -> None:
        """Mark turns that were withdrawn."""
        await self._write(
            lambda connection: connection.executemany(
                "UPDATE honcho_items SET ended = 1 WHERE item = ?", [(item,) for item in items]
            )
        )

    async def settled(self, remote_workspace: str, remote_session: str, before: float) -> None:
        """Forget that items were sent twice, if that was before this time."""
        await self._write(
            lambda connection: connection.execute(
                "UPDATE honcho_items SET resent_at = NULL WHERE remote_workspace = ? AND"
                " remote_session = ? AND resent_at < ?",
                (remote_workspace, remote_session, before),
            )
        )

    async def of_items(self, items: Iterable[str]) -> dict[str, Entry]:
        ids = list(items)
        rows = await self._read(lambda connection: _select_each(connection, "item = ?", ids))
        return {entry.item: entry for entry in rows}

    async def of_remotes(self, remote_workspace: str, ids: Sequence[str]) -> dict[str, Entry]:
        """Return the entries of these conclusions, by their ids there."""
        keys = [(remote_workspace, remote) for remote in ids]
        clause = "remote_workspace = ? AND remote = ?"
        rows = await self._read(lambda connection: _select_each(connection, clause, keys))
        return {entry.remote: entry for entry in rows}

    async def of_session(self, remote_workspace: str, remote_session: str) -> list[Entry]:
        clause = "remote_workspace = ? AND remote_session = ?"
        keys = [(remote_workspace, remote_session)]
        return await self._read(lambda connection: _select_each(connection, clause, keys))

    async def resent(
        self, remote_workspace: str, remote_session: str, before: float
    ) -> list[Entry]:
        """Return the items of a session that were sent again before this time."""
        entries = f"resent_at < {before!r} AND remote_workspace = ? AND remote_session = ?"
        keys = [(remote_workspace, remote_session)]
        return await self._read(lambda connection: _select_each(connection, entries, keys))

    async def of_keryx_sessions(self, ids: Sequence[str]) -> list[Entry]:
        return await self._read(lambda connection: _select_each(connection, "session_id = ?", ids))

    async def turn_sessions(self, remote_workspace: str, workspace: str, limit: int) -> list[str]:
        """Return Honcho's names of the newest sessions of a workspace without withdrawn turns."""
        query = (
            "SELECT remote_session FROM honcho_items WHERE remote_workspace = ? AND workspace = ?"
            " AND kind = 'turn' GROUP BY remote_session HAVING max(ended) = 0"
            " ORDER BY max(at) DESC LIMIT ?"
        )
        values = (remote_workspace, workspace, limit)
        rows = await self._read(lambda connection: connection.execute(query, values).fetchall())
        return [name for (name,) in rows]

    async def memories(self, ids: Iterable[str]) -> dict[str, Memory]:
        """Return those of these items that are memories of this home, in any state."""
        items = list(ids)

        def get(connection: sqlite3.Connection) -> dict[str, Memory]:
            rows = (memories.get(connection, item) for item in items)
            return {memory.id: memory for memory in rows if memory is not None}

        return await self._read(get)

    async def _write(self, change: Callable[[sqlite3.Connection], object]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            change(connection)

        await self._file.write(work)
        self._has_table = True

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        if not self._has_table:
            await self._write(lambda _connection: None)
        return await self._file.read(query)


def _add(connection: sqlite3.Connection, entries: Sequence[Entry]) -> None:
    marks = ", ".join("?" * len(msgspec.structs.fields(Entry)))
    connection.executemany(
        f"INSERT OR REPLACE INTO honcho_items ({_COLUMNS}) VALUES ({marks})",  # noqa: S608 (constants of ours)
        [(*msgspec.structs.astuple(entry)[:-1], int(entry.ended)) for entry in entries],
    )


def _select_each(
    connection: sqlite3.Connection, clause: str, keys: Sequence[str] | Sequence[tuple[str, str]]
) -> list[Entry]:
    query = f"SELECT {_COLUMNS} FROM honcho_items WHERE {clause} ORDER BY at"  # noqa: S608 (constants of ours)
    rows = [
        row
        for key in dict.fromkeys(keys)
        for row in connection.execute(query, key if isinstance(key, tuple) else (key,))
    ]
    names = [field.name for field in msgspec.structs.fields(Entry)]
    return [
        convert(dict(zip(names, (*row[:-1], bool(row[-1])), strict=True)), Entry) for row in rows
    ]
