"""Reads SQLite files that another program wrote. Nothing in them is believed or changed.

A view or a virtual table could run anything while it is read, so only plain tables are.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from keryx.errors import UserMustActError

MAGIC: Final = b"SQLite format 3\0"
_MOST_STEPS: Final = 500_000_000
"""Instructions of SQLite for one query. A plain read of a gigabyte needs fewer."""
_STEPS_AT_ONCE: Final = 100_000
_PLAIN_TABLE: Final = re.compile(r"\s*CREATE\s+TABLE\b", re.IGNORECASE)
# In the header: whether the newest pages are in a second file, for writers and for readers.
_WAL_MARKS: Final = slice(18, 20)
_WAL: Final = b"\2\2"
_NO_WAL: Final = b"\1\1"


def snapshot(path: Path) -> bytes:
    """Return the content of a database, with what its program has not moved into the file yet.

    The program may be running. `UserMustActError` if the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            is_wal = file.read(_WAL_MARKS.stop)[_WAL_MARKS] == _WAL
        # Without its second file a database in WAL mode is whole, and cannot be opened in a folder
        # that is only to be read. In any other, what a program writes now is kept out by a lock.
        is_whole = is_wal and not path.with_name(f"{path.name}-wal").exists()
        mode = "immutable=1" if is_whole else "mode=ro"
        with (
            closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as source,
            closing(sqlite3.connect(":memory:")) as copy,
        ):
            # The lock is taken here, and for a bounded time: a backup would wait for it for ever.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_master").fetchone()
            source.backup(copy)
            return copy.serialize()
    except (sqlite3.Error, OSError) as error:
        raise UserMustActError(
            f"{path}: the database cannot be read: {error}; close the program that it belongs to, "
            "and try again; nothing was imported"
        ) from error


class ForeignDatabase:
    """The tables of a database, in memory. For one thread."""

    def __init__(self, data: bytes) -> None:
        if data[_WAL_MARKS] == _WAL:
            data = data[: _WAL_MARKS.start] + _NO_WAL + data[_WAL_MARKS.stop :]
        self._connection = sqlite3.connect(":memory:")
        try:
            self._connection.deserialize(data)
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("PRAGMA query_only = ON")
            self._steps = 0
            self._connection.set_progress_handler(self._count_steps, _STEPS_AT_ONCE)
            self._columns = {name: self._columns_of(name) for name in self._plain_tables()}
        except sqlite3.Error as error:
            self.close()
            raise ValueError(f"the database cannot be read: {error}") from error

    def close(self) -> None:
        self._connection.close()

    def has(self, table: str, columns: Sequence[str]) -> bool:
        """Return whether there is such a table with at least these columns."""
        return set(columns) <= self._columns.get(table, set())

    def rows(
        self, table: str, columns: Sequence[str], order: str, where: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Return the rows, with those of these columns that the table has.

        `where`: the values that columns must have; a column that is missing has no condition.
        """
        names = [name for name in columns if name in self._columns[table]]
        conditions = {name: value for name, value in where.items() if name in self._columns[table]}
        query = f"SELECT {', '.join(names)} FROM {table}"  # noqa: S608 (names from the program)
        if conditions:
            query += " WHERE " + " AND ".join(f"{name} = ?" for name in conditions)
        self._steps = 0
        try:
            for row in self._connection.execute(
                f"{query} ORDER BY {order}", [*conditions.values()]
            ):
                yield dict(zip(names, row, strict=True))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise ValueError(f"the table {table} cannot be read: {error}") from error

    def _plain_tables(self) -> list[str]:
        rows = self._connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return [name for name, sql in rows if _PLAIN_TABLE.match(sql or "")]

    def _columns_of(self, table: str) -> set[str]:
        rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        return {name for (name,) in rows}

    def _count_steps(self) -> bool:
        """Return whether the query must end."""
        self._steps += _STEPS_AT_ONCE
        return self._steps > _MOST_STEPS
