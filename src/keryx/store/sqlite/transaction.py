"""One transaction, the values that the file has once (positions, counters, the host's number), and
records that belong to no session.

Blocking code, in the writer's thread.
"""

from __future__ import annotations

import sqlite3
from typing import Final

_POSITIONS: Final = (
    "SELECT max(position) AS p FROM sessions WHERE archived = 0"
    " UNION ALL SELECT max(position) FROM sessions WHERE archived = 1"
)
LAST_POSITION: Final = f"SELECT max(p) FROM ({_POSITIONS})"  # noqa: S608 (constants of ours)
"""The last position of any session; each half reads one entry of the index."""
_LAST_EVER: Final = (
    f"SELECT max(p) FROM ({_POSITIONS} UNION ALL SELECT value FROM meta WHERE name = 'position')"  # noqa: S608 (constants of ours)
)
"""The same, with the sessions that were deleted."""


class Transaction:
    """One transaction, shared by all changes that are committed together."""

    __slots__ = ("_position", "connection", "needs_purge")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.needs_purge = False
        self._position: int | None = None

    def position(self) -> int:
        """Return the global position of the last commit."""
        if self._position is None:
            self._position = last_position(self.connection)
        return self._position

    def next_position(self) -> int:
        """Return the global position for one more commit."""
        self._position = self.position() + 1
        return self._position


def get_meta(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return int(value)


def set_meta(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


def host_number(connection: sqlite3.Connection, *, take_over: bool) -> int:
    """Return the number of the host that writes; `take_over` gives this host a new number."""
    if take_over:
        set_meta(connection, "host", 1 + get_meta(connection, "host"))
    return get_meta(connection, "host")


def last_position(connection: sqlite3.Connection) -> int:
    (position,) = connection.execute(_LAST_EVER).fetchone()
    return int(position)


def keep_record(transaction: Transaction, key: str, value: bytes) -> None:
    transaction.connection.execute(
        "INSERT INTO records (key, version, value) VALUES (?, 1, ?)"
        " ON CONFLICT (key) DO UPDATE SET version = version + 1, value = excluded.value",
        (key, value),
    )


def drop_record(transaction: Transaction, key: str) -> bool:
    cursor = transaction.connection.execute("DELETE FROM records WHERE key = ?", (key,))
    return cursor.rowcount > 0
