"""One transaction, and what is unique to the file: positions, numbers, the host that writes.

Blocking code, in the writer's thread.
"""

from __future__ import annotations

import sqlite3
from typing import Final

LAST_POSITION: Final = (
    "SELECT max(p) FROM (SELECT max(position) AS p FROM sessions WHERE archived = 0"
    " UNION ALL SELECT max(position) FROM sessions WHERE archived = 1)"
)
"""The position of the last change that is still there; each half is one look into the index."""


class Transaction:
    """One transaction, shared by all that is written together."""

    __slots__ = ("_position", "connection", "owes_purge")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.owes_purge = False
        self._position: int | None = None

    def position(self) -> int:
        """The global position of the last commit."""
        if self._position is None:
            self._position = last_position(self.connection)
        return self._position

    def next_position(self) -> int:
        """The global position of one more commit."""
        self._position = self.position() + 1
        return self._position


def get_meta(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return int(value)


def set_meta(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


def take_hold(connection: sqlite3.Connection, *, by_force: bool) -> int:
    """The number of the host that writes through this connection; by force a new one."""
    if by_force:
        set_meta(connection, "host", 1 + get_meta(connection, "host"))
    return get_meta(connection, "host")


def last_position(connection: sqlite3.Connection) -> int:
    # The table of what is unique to the file is only touched when a session goes.
    (position,) = connection.execute(LAST_POSITION).fetchone()
    return max(position or 0, get_meta(connection, "position"))
